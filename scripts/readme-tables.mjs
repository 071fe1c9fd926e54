#!/usr/bin/env node
// Writes the tables of README.md, between their marks: the numbers and the features. What can be counted is counted from the files that
// tests and commands make; what was measured, with its command, date and machine, and the features are in docs/comparison.json. Rows, columns and
// tables without a value are left out. A test runs this with --check, which exits with 1 when README.md is out of date. Measure again, write the
// result there, and run: node scripts/readme-tables.mjs
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const read = (path) => readFileSync(path, "utf8");
const { speed, products, features, asOf } = JSON.parse(read("docs/comparison.json"));

const table = (rows) => {
  const [head, ...rest] = rows.map((cells) => `| ${cells.join(" | ")} |`);
  return [head, `|${" --- |".repeat(rows[0].length)}`, ...rest].join("\n");
};

const numbers = [["", "", "by"], recordings(), refusals(), sessions(), servers(), rules()];
const blocks = {
  numbers: [table(numbers), ...speed.map(speedTable)].filter((text) => text !== "").join("\n\n"),
  features: `${table([["", ...products], ...features])}\n\nAs their documentation said in ${asOf}; [docs/comparison.json](docs/comparison.json) is the source, and corrections are welcome.`,
};

let text = read("README.md");
for (const [name, block] of Object.entries(blocks)) {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`README.md has no ${begin} … ${end}`);
  text = `${text.slice(0, from + begin.length)}\n\n${block}\n\n${text.slice(to)}`;
}
if (text !== read("README.md")) {
  if (process.argv.includes("--check")) {
    console.error("README.md is out of date: node scripts/readme-tables.mjs");
    process.exitCode = 1;
  } else writeFileSync("README.md", text);
}

/** The recordings of vendors' answers, by test/sdk/wires.json. */
function recordings() {
  const kinds = Object.values(JSON.parse(read("test/sdk/wires.json")).recordings);
  const count = kinds.reduce((sum, kind) => sum + kind.count, 0);
  const newest = kinds
    .map((kind) => kind.newest)
    .toSorted()
    .at(-1);
  return [
    "[recorded answers](docs/wires.md) of the vendors' own servers, with which the descriptions of the APIs are tested",
    `**${count.toLocaleString("en")}**`,
    `\`npm run wires\`, ${newest}`,
  ];
}

/** The table of docs/parameters.md. */
function refusals() {
  const [, section = ""] = read("docs/parameters.md").split("## What profile exact refuses");
  const count = section.split("\n## ")[0].match(/^\| (?!API |-)/gm).length;
  return [
    "[mistakes](docs/parameters.md#what-profile-exact-refuses) that are refused in the vendors' words",
    `**${count}**`,
    "`npx vitest run src/wire/apis/parameters-page.test.ts`, each change",
  ];
}

/** The table of docs/sessions.md. */
function sessions() {
  const rows = read("docs/sessions.md")
    .split("<!-- table -->")[1]
    .split("<!-- end of the table -->")[0]
    .trim()
    .split("\n")
    .slice(2);
  const cells = rows.flatMap((row) =>
    row
      .split("|")
      .slice(2, -1)
      .map((cell) => cell.trim()),
  );
  const done = cells.filter((cell) => cell === "✓").length;
  return [
    `[sessions with tools](docs/sessions.md#what-works) that complete: ${rows.length} clients × ${cells.length / rows.length} servers`,
    `**${done} of ${cells.length}**`,
    "`npx vitest run test/sessions/matrix.test.ts`, each change",
  ];
}

/** The results of `npm run interop`. */
function servers() {
  const results = readdirSync("interop/results")
    .filter((name) => name.endsWith(".json"))
    .map((name) => JSON.parse(read(`interop/results/${name}`)));
  const trials = results.flatMap(({ rows }) => rows).filter(({ ok }) => ok !== null && ok !== undefined);
  const done = trials.filter(({ ok }) => ok).length;
  const newest = results
    .map(({ date }) => date)
    .toSorted()
    .at(-1);
  return [
    `trials in front of [real servers](docs/compatibility.md): ${results.length} products`,
    `**${done} of ${trials.length}**`,
    `\`npm run interop\`, ${newest}`,
  ];
}

/** The rules of docs/rules.md. */
function rules() {
  const count = read("docs/rules.md").match(/^\| `/gm).length;
  return [
    "[rules](docs/rules.md) by which it judges servers, itself included, each with its source",
    `**${count}**`,
    "`truewire check --list`, each change",
  ];
}

/** A table of what was measured, with other products: the rows that have Truewire's value, the columns that have one. */
function speedTable({ products: names, rows: all, by }) {
  const measured = all.filter(([, own]) => own !== "");
  const columns = names.map((_, at) => at + 1).filter((at) => measured.some((row) => row[at] !== ""));
  const pick = ([what, ...values]) => [what, ...columns.map((at) => values[at - 1] || "–")];
  return measured.length === 0
    ? ""
    : `${table([["", ...columns.map((at) => names[at - 1])], ...measured.map(pick)])}\n\n${by}`;
}
