import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { descriptionsOf, sdks, shapesOf } from "./compare.ts";
import { missing, shapeOfSchema } from "./shape.ts";
import type { Declaration, Declarations, Members } from "./shape.ts";
import type { SdkName } from "./names.ts";
import { namesOf, readSource, treatmentOfName } from "./names.ts";
import { wireWordsOf } from "./wire-words.ts";
import { kindOf, treatmentOf } from "./treatment.ts";

// What the vendors' newest SDKs declare that is new, and what Truewire does with it.
//
//   npm run drift
//   npm run drift -- openai@6.49.0 @anthropic-ai/sdk@0.120.0
//
// Installs the newest version of each SDK, and of each package of a client, from the registry into a temporary folder, and compares it with an
// older version: that of the arguments, else the newest that package.json pins. Shows what their changelogs say. Of an SDK: one table per object
// with the type and the doc comment of each new member, and one of the new endpoints, headers, betas, models and errors. Of a client: the new
// words in its code that may be on the wire. Of the packages of `npm run interop`: their newest versions. Exit code 1 if something new is
// neither described in `src/wire/apis/` nor known in `src/`, nor listed in `test/sdk/gaps.ts` or `test/sdk/name-reasons.ts`.
const folder = mkdtempSync(join(tmpdir(), "truewire-drift-"));
/** The packages of clients that package.json pins, without the SDKs. */
const clients = [
  "ai",
  "@ai-sdk/anthropic",
  "@ai-sdk/openai",
  "@ai-sdk/openai-compatible",
  "@langchain/anthropic",
  "@langchain/core",
  "@langchain/openai",
  "@openai/agents",
];
/** A longer type or doc comment is cut, in characters. */
const maxShown = 300;
const source = readSource();
/** Names that LangChain and bundlers make for themselves. */
const ofClientsOwn = /^l[cs]_|_exports$/;
let unknown = 0;
try {
  writeFileSync(join(folder, "package.json"), "{}");
  const older = new Map(process.argv.slice(2).map((argument) => [argument.replace(/@[^@/]+$/, ""), argument]));
  execFileSync(
    "npm",
    [
      ..."install --silent --no-audit --no-fund --ignore-scripts --force".split(" "),
      ...[...Object.keys(sdks), ...clients].map((name) => `${name}@latest`),
      ...Array.from(older, ([name, version]) => `${olderName(name)}@npm:${version}`),
    ],
    { cwd: folder, stdio: ["ignore", "ignore", "inherit"] },
  );
  for (const [sdk, packages] of Object.entries(sdks)) {
    const newest = join(folder, "node_modules", sdk);
    const before = older.has(sdk) ? join(folder, "node_modules", olderName(sdk)) : installed(packages.at(-1) ?? sdk);
    console.log(`\n## ${sdk} ${versionIn(newest)} after ${versionIn(before)}`);
    console.log(`\nTested here: ${packages.map((name) => versionIn(installed(name))).join(", ")}.`);
    for (const line of changesSince(versionIn(before), newest)) console.log(line);
    report(sdk, newest, before);
    reportNames(sdk, newest, before);
  }
  for (const name of clients) {
    const newest = join(folder, "node_modules", name);
    const tested = packagesOf(name);
    const before = older.has(name) ? join(folder, "node_modules", olderName(name)) : installed(tested.at(-1) ?? name);
    console.log(`\n## ${name} ${versionIn(newest)} after ${versionIn(before)}`);
    console.log(`\nTested here: ${tested.map((each) => versionIn(installed(each))).join(", ")}.`);
    for (const line of changesSince(versionIn(before), newest)) console.log(line);
    reportWords(newest, before);
  }
  reportInterop();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(
  `\n${unknown} members, values, types, names or words are neither described or known in src/, nor listed in test/sdk/gaps.ts or test/sdk/name-reasons.ts.`,
);
if (unknown > 0) process.exitCode = 1;

/** Prints a table for each object of an API in which something is new or unknown. */
function report(sdk: string, newest: string, before: string): void {
  const olderShapes = shapesOf(sdk, before);
  const declarations: Declarations = new WeakMap();
  for (const [at, shape] of shapesOf(sdk, newest, declarations).entries()) {
    const description = descriptionsOf(sdk)[at];
    const older = olderShapes[at];
    if (!description || !shape) continue;
    const shown = new Map<string, string>();
    const note = (path: string, members: Members, member: string | undefined): void => {
      const known = declarations.get(members);
      const one = member === undefined ? undefined : known?.get(member);
      shown.set(path, one ? declared(one) : `{ ${[...members.keys()].join(", ")} }`);
    };
    const undescribed = new Set(missing(shape, shapeOfSchema(description.schema), note));
    const added = older ? missing(shape, older, note) : [];
    const rows = [...new Set([...added, ...undescribed])].flatMap((path) => {
      const treatment = treatmentOf(description, path, undescribed);
      if (treatment === undefined) unknown++;
      if (treatment !== undefined && !added.includes(path)) return [];
      const kind = kindOf(description, path);
      return [`| \`${path}\` | ${kind} | ${shown.get(path) ?? ""} | ${treatment ?? "**unknown**"} |`];
    });
    const gone = older ? missing(older, shape) : [];
    if (rows.length + gone.length === 0) continue;
    console.log(
      `\n### ${description.name}\n\n| new | | type and doc comment | what Truewire does |\n| --- | --- | --- | --- |`,
    );
    for (const row of [...rows, ...gone.map((path) => `| \`${path}\` | gone | | |`)]) console.log(row);
  }
}

/** Prints a table of the names that are new, gone or unknown. */
function reportNames(sdk: string, newest: string, before: string): void {
  const [all, known] = [newest, before].map((path) => namesOf(sdk, path)) as [readonly SdkName[], readonly SdkName[]];
  const within = (list: readonly SdkName[], { kind, name }: SdkName): boolean =>
    list.some((one) => one.kind === kind && one.name === name);
  const rows = all.flatMap((one) => {
    const treatment = treatmentOfName(sdk, one, source);
    if (treatment === undefined) unknown++;
    if (treatment !== undefined && within(known, one)) return [];
    return [`| \`${one.name}\` | ${one.kind} | ${cell(one.about)} | ${treatment ?? "**unknown**"} |`];
  });
  const gone = known.filter((one) => !within(all, one)).map(({ kind, name }) => `| \`${name}\` | ${kind}, gone | | |`);
  if (rows.length + gone.length === 0) return;
  console.log("\n### Names\n\n| new | | what the SDK says | what Truewire does |\n| --- | --- | --- | --- |");
  for (const row of [...rows, ...gone]) console.log(row);
}

/** Prints a table of a client's new words. */
function reportWords(newest: string, before: string): void {
  const known = wireWordsOf(before);
  const added = [...wireWordsOf(newest)].filter(([word]) => !known.has(word) && !ofClientsOwn.test(word));
  if (added.length === 0) return;
  console.log("\n| new word | in its code | what Truewire does |\n| --- | --- | --- |");
  for (const [word, line] of added) {
    const file = [...source].find(([, text]) => text.includes(word.toLowerCase()))?.[0];
    if (file === undefined) unknown++;
    console.log(`| \`${word}\` | \`${cell(line)}\` | ${file === undefined ? "**unknown**" : `in ${file}`} |`);
  }
}

/** Prints a table of the packages that `npm run interop` pins. Their versions are compared, not what is in them. */
function reportInterop(): void {
  const list = readFileSync("interop/clients/list.ts", "utf8");
  const pins = new Map(
    Array.from(
      list.matchAll(/"((@?[a-z][\w./-]*)(?:\[[\w,]+\])?(?:==|@)(\d[\w.]*))"/g),
      ([, pin = "", name = "", version = ""]) => [name, { version, newest: newestOf(name, pin.includes("==")) }],
    ),
  );
  console.log("\n## Packages of npm run interop\n\n| package | newest | tested there |\n| --- | --- | --- |");
  for (const [name, { version, newest }] of pins) console.log(`| ${name} | ${newest} | ${version} |`);
}

/** The newest version of a package in the registry of Python or of Node.js; "–" if the registry does not say. */
function newestOf(name: string, isPython: boolean): string {
  const [command, ...args] = isPython
    ? ["python3", "-m", "pip", "index", "versions", name]
    : ["npm", "view", name, "version"];
  const { stdout } = spawnSync(command ?? "", args, { encoding: "utf8" });
  const found = isPython ? /\(([^)]+)\)/.exec(stdout ?? "")?.[1] : stdout?.trim();
  return found || "–";
}

/** A text for a cell of a table. */
function cell(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").trim();
  return line.length > maxShown ? `${line.slice(0, maxShown)}…` : line;
}

/** A declaration for a cell of a table. */
function declared({ type, doc }: Declaration): string {
  return [type, doc]
    .map(cell)
    .map((text, at) => (at === 0 && text !== "" ? `\`${text}\`` : text))
    .filter((text) => text !== "")
    .join(" – ");
}

/** The lines of a package's changelog after a version, without what concerns its repository only. */
function changesSince(version: string, folder: string): readonly string[] {
  const path = join(folder, "CHANGELOG.md");
  if (!existsSync(path)) return [];
  const [, ...sections] = readFileSync(path, "utf8").split(/^(?=## )/m);
  const end = sections.findIndex(
    (section) => section.startsWith(`## [${version}]`) || section.startsWith(`## ${version}`),
  );
  return sections.slice(0, Math.max(end, 0)).flatMap((section) => {
    const [title = "", ...lines] = section.split("\n");
    const name = /^## \[?([^\]\s(]+)/.exec(title)?.[1] ?? "";
    // The vendors' SDKs list changes by their room, the others by their commit.
    const changes = lines.filter((line) =>
      /^(?:\* \*\*(?:api|client|types)[^*]*\*\*|- (?!Updated dependencies))/.test(line),
    );
    return changes.map(
      (line) => `- ${name}: ${line.replace(/^. (?:.* Thanks \[.*?\)! - )?/, "").replace(/ \(\[.*$/, "")}`,
    );
  });
}

function olderName(sdk: string): string {
  return `older-${sdk.replaceAll(/[@/]/g, "")}`;
}

/** The packages of `node_modules` that are versions of a client, the newest one last. */
function packagesOf(name: string): readonly string[] {
  const all = Object.entries({ ...pinned("dependencies"), ...pinned("devDependencies") });
  const found = all.flatMap(([key, version]) => (key === name || version.startsWith(`npm:${name}@`) ? [key] : []));
  return found.sort((a, b) => versionIn(installed(a)).localeCompare(versionIn(installed(b)), "en", { numeric: true }));
}

function installed(name: string): string {
  return resolve("node_modules", name);
}

function manifest(path: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as Readonly<Record<string, unknown>>;
}

function versionIn(path: string): string {
  return String(manifest(path)["version"]);
}

function pinned(member: string): Readonly<Record<string, string>> {
  return manifest(".")[member] as Readonly<Record<string, string>>;
}
