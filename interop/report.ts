import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RealClient } from "./clients/client.ts";

const folder = "interop/results";
const clientFolder = join(folder, "clients");
const page = "docs/compatibility.md";

export interface Row {
  readonly trial: string;
  /** Null: the server or its model has no such thing. */
  readonly ok: boolean | null;
  readonly detail: string;
}

/** What came of the trials over one server. */
export interface Results {
  readonly server: string;
  readonly from: string;
  readonly version: string;
  readonly model: string;
  readonly date: string;
  readonly rows: readonly Row[];
}

/** Keeps the results of a server, in place of those of an earlier run. */
export function keep(id: string, results: Results): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${id}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

/** What came of the scenarios of one client. */
interface ClientResults {
  readonly client: string;
  readonly from: string;
  readonly version: string;
  readonly date: string;
  readonly rows: readonly Row[];
}

/** Keeps the results of a client, in place of those of an earlier run. What a scenario that is done says is only printed. */
export function keepClient({ id, name, from }: RealClient, version: string, rows: readonly Row[]): void {
  mkdirSync(clientFolder, { recursive: true });
  const results: ClientResults = {
    client: name,
    from,
    version,
    date: new Date().toISOString().slice(0, 10),
    rows: rows.map(({ trial, ok, detail }) => ({
      trial,
      ok,
      detail: ok === true ? "" : detail.replaceAll(/\s+/g, " ").slice(0, 400),
    })),
  };
  writeFileSync(join(clientFolder, `${id}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

function readResults<T>(from: string): T[] {
  if (!existsSync(from)) return [];
  return readdirSync(from)
    .filter((file) => file.endsWith(".json"))
    .toSorted()
    .map((file) => JSON.parse(readFileSync(join(from, file), "utf8")) as T);
}

/** Writes docs/compatibility.md from the results of the last runs. */
export function writeTable(): void {
  const results = readResults<Results>(folder).toSorted((one, other) => one.server.localeCompare(other.server));
  const text = [
    "# Compatibility",
    "",
    "The servers and clients that Truewire was tested with, on one machine and with small models, and the results. `npm run interop` makes these",
    "tables; `npm run interop -- install NAME` installs a server or a client in a folder of its own. ✓: done; ✗: not; –: the server, its model or",
    "the client has no such thing, or the line only reports.",
    "",
    ...clientTable(readResults<ClientResults>(clientFolder)),
    "## Servers",
    "",
    "Each trial runs with Truewire in front of the server, unless it says that it asks the server itself.",
    "",
    "What a server ignores stays ignored with Truewire in front, since Truewire sends each request once: where a server ignores",
    "`tool_choice: required` (mellea, OGX, Ollama, Transformers), `n` or `response_format` (Transformers), the answer is the one that its model gave.",
    "`truewire check` lists these members as errors (`request/required`, `body/n`).",
    "",
    "| server | version | model | date | done of tried |",
    "| --- | --- | --- | --- | --- |",
    ...results.map(({ server, from, version, model, date, rows }) => {
      const tried = rows.filter(({ ok }) => ok !== null);
      const done = tried.filter(({ ok }) => ok === true).length;
      return `| [${server}](#${anchorOf(server)}) (\`${from}\`) | ${version} | ${cell(model)} | ${date} | ${done} of ${tried.length} |`;
    }),
    ...results.flatMap(({ server, rows }) => [
      "",
      `### ${server}`,
      "",
      "| trial | | |",
      "| --- | --- | --- |",
      ...rows.map(lineOf),
    ]),
    "",
  ];
  writeFileSync(page, text.join("\n"));
}

const scenarios = ["stream", "tools", "structured", "error", "cancel", "reasoning"] as const;

/** The clients and their scenarios; below it, what is not done or not there. */
function clientTable(results: readonly ClientResults[]): string[] {
  if (results.length === 0) return [];
  const sorted = results.toSorted((one, other) => one.client.localeCompare(other.client));
  const notes = sorted.flatMap(({ client, rows }) =>
    rows.filter(({ ok }) => ok !== true).map(({ trial, detail }) => `- ${client}, ${trial}: ${detail}`),
  );
  return [
    "## Clients",
    "",
    "Each client talks to a scripted model: a stream, a loop with tools, structured output, an unknown model and a request that fails once, a",
    "client that leaves, and reasoning. Sessions are turns with tools over a program and over doubles of DeepSeek and Gemini 3, which demand the",
    "state of their turns back; the other clients' are in [sessions.md](sessions.md).",
    "",
    `| client | version | date | ${scenarios.join(" | ")} | sessions |`,
    `| --- | --- | --- | ${scenarios.map(() => "---").join(" | ")} | --- |`,
    ...sorted.map(({ client, from, version, date, rows }) => {
      const marks = scenarios.map((name) => {
        const row = rows.find(({ trial }) => trial === name);
        return row ? markOf(row) : "✗";
      });
      const sessions = rows.filter(({ trial }) => trial.startsWith("session over "));
      const tried = new Set(sessions.map(({ trial }) => trial));
      const failed = new Set(sessions.filter(({ ok }) => ok !== true).map(({ trial }) => trial));
      const done = tried.size === 0 ? "" : `${tried.size - failed.size} of ${tried.size}`;
      return `| ${client} (\`${from}\`) | ${version} | ${date} | ${marks.join(" | ")} | ${done} |`;
    }),
    "",
    ...(notes.length === 0 ? [] : [...notes, ""]),
  ];
}

const markOf = ({ ok }: Row): string => (ok === null ? "–" : ok ? "✓" : "✗");

function lineOf(row: Row): string {
  return `| ${cell(row.trial)} | ${markOf(row)} | ${cell(row.detail)} |`;
}

const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");
const cell = (text: string): string => text.replaceAll("|", "\\|");
