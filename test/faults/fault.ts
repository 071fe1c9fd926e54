import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** A row of the table in docs/faults.md. */
export interface FaultRow {
  readonly fault: string;
  readonly clients: string;
  readonly log: string;
}

/** What a fault did, as a test saw it. */
export interface Seen {
  /** What clients saw, one after the other, in the words of `outcome`. */
  readonly clients: readonly string[];
  /** All that the server has written to its log. */
  readonly log: () => string;
}

/** The tables of faults, from the page. The attacks below them are those of `npm run bench attack`. */
export const rows: readonly FaultRow[] = (
  readFileSync("docs/faults.md", "utf8").split("\n## One client against")[0] ?? ""
)
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| fault") && !line.startsWith("| ---"))
  .map((line) => {
    const [, fault = "", clients = "", log = ""] = line.split("|").map((cell) => cell.trim());
    return { fault, clients, log };
  });

/** Compares what was seen with the row of this name: clients word for word; the log must say each `text` of its column. */
export async function expectRow(name: string, { clients, log }: Seen): Promise<void> {
  const row = rows.find(({ fault }) => fault === name);
  expect(clients.join("; ")).toBe(row?.clients);
  const said = [...(row?.log ?? "").matchAll(/`([^`]+)`/g)].map(([, words = ""]) => words);
  // A line comes a moment after what it tells of.
  for (const words of said) await expect.poll(log).toContain(words);
  // Warnings and errors.
  if (said.length === 0) expect(log()).not.toMatch(/"level":[456]0/);
}

/** A test that brings about the fault of a row. `can`: this machine has what it takes. */
export function fault(name: string, run: () => Promise<Seen>, can = true): void {
  if (!can) console.log(`skipped: ${name}: this machine does not have what the test takes`);
  test.skipIf(!can)(name, async () => expectRow(name, await run()));
}
