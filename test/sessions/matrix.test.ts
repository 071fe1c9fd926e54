import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dailyPart } from "../support/runs.ts";
import { expectDone, runCells, smallestPrefix } from "./cells.ts";
import type { Cell } from "./cells.ts";
import { libraryClients, rawClients } from "./clients/every-client.ts";
import { changingSources, knownFailures } from "./known-failures.ts";
import type { Outcome } from "./session.ts";
import { serveSources, sources } from "./sources.ts";
import type { Running } from "./sources.ts";

/*
 * Sessions of four turns with tools: every client over every source, by one `truewire serve`. By day, each client has a third of the sources,
 * and each source a third of the clients. Before, no test had a second turn over a
 * server that signs its calls and reasoning, so it was not seen that agents stop there.
 */

const clients = [...rawClients, ...libraryClients];
// The same server with another account is another source only after a switch.
const single = sources.filter(({ name }) => !name.endsWith("account B"));
let running: Running;
let outcomes: ReadonlyMap<string, Outcome>;

const cellName = (client: string, source: string): string => `${client} | ${source}`;

beforeAll(async () => {
  running = await serveSources(single);
  const cells = clients.flatMap((client, at) =>
    dailyPart(single, 3, at).map((source): Cell => ({
      name: cellName(client.name, source.name),
      client,
      models: Array.from({ length: 4 }, () => source.name),
    })),
  );
  outcomes = await runCells(cells, running.server.url);
});
afterAll(() => running.close());

test("every turn of every client over every source is done", () => expectDone(outcomes, knownFailures));

test("no call is lost on the way to a source", () => {
  const lost = [...running.doubles].flatMap(([name, double]) =>
    double.lost.flatMap((what) => (what.includes("call ") ? [`${name}: ${what}`] : [])),
  );
  expect(lost).toEqual([]);
});

test("each prompt begins with the prompt before it", () => {
  const shares: Record<string, number> = {};
  for (const [name, { session = "" }] of outcomes) {
    const [, source = ""] = name.split(" | ");
    const share = smallestPrefix(running.doubles.get(source)?.prompts.get(session) ?? []);
    if (share < 0.99 && !(source in changingSources)) shares[name] = share;
  }
  expect(shares).toEqual({});
});

// `TRUEWIRE_RUNS=2 npx vitest run test/sessions/matrix.test.ts -u` writes the table anew.
test("docs/sessions.md says what works", async () => {
  const page = readFileSync(new URL("../../docs/sessions.md", import.meta.url), "utf8");
  const [before = "", rest = ""] = page.split("<!-- table -->\n");
  const [table = "", after = ""] = rest.split("<!-- end of the table -->");
  const written = table
    .trim()
    .split("\n")
    .map((line) => line.slice(2, -2).split(" | "));
  const cellOf = (client: string, source: string, inTable: string): string => {
    const outcome = outcomes.get(cellName(client, source));
    if (outcome === undefined) return inTable;
    const { turnsDone, turnsTried } = outcome;
    return turnsDone === turnsTried ? "✓" : `${turnsDone} of ${turnsTried}`;
  };
  const rows = clients.map(({ name }, row) => [
    name,
    // What is not tried by day stays as it is.
    ...single.map((source, column) => cellOf(name, source.name, written[row + 2]?.[column + 1] ?? "")),
  ]);
  const head = ["client", ...single.map(({ name }) => name.replace(", account A", ""))];
  const lines = [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |\n`).join("");
  const expected = `${before}<!-- table -->\n\n${lines}\n<!-- end of the table -->${after}`;
  await expect(expected).toMatchFileSnapshot("../../docs/sessions.md");
});
