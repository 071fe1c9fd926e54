import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = "interop/results";
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

/** Writes docs/compatibility.md from the results of the last runs. */
export function writeTable(): void {
  const results = readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")) as Results)
    .toSorted((one, other) => one.server.localeCompare(other.server));
  const text = [
    "# Compatibility",
    "",
    "The servers that Truewire was tested with, on one machine and with small models, and the results. `npm run interop` makes these tables;",
    "`npm run interop -- install NAME` installs a server in a folder of its own. Each trial runs with Truewire in front of the server, unless it",
    "says that it asks the server itself. ✓: done; ✗: not; –: the server or its model has no such thing, or the line only reports.",
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
      `## ${server}`,
      "",
      "| trial | | |",
      "| --- | --- | --- |",
      ...rows.map(lineOf),
    ]),
    "",
  ];
  writeFileSync(page, text.join("\n"));
}

function lineOf({ trial, ok, detail }: Row): string {
  return `| ${cell(trial)} | ${ok === null ? "–" : ok ? "✓" : "✗"} | ${cell(detail)} |`;
}

const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");
const cell = (text: string): string => text.replaceAll("|", "\\|");
