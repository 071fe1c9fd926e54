import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { descriptionsOf, sdks, shapesOf } from "./compare.ts";
import { missing, shapeOfSchema } from "./shape.ts";
import { kindOf, treatmentOf } from "./treatment.ts";

// What the vendors' newest SDKs declare that is new, and what Truewire does with it.
//
//   npm run drift
//   npm run drift -- openai@6.49.0 @anthropic-ai/sdk@0.120.0
//
// Installs the newest version of each SDK from the registry into a temporary folder, and compares its types with those of an older version:
// that of the arguments, else the one that package.json pins. One table per API. Exit code 1 if something is neither described in
// `src/wire/apis/` nor listed in `test/sdk/gaps.ts`.
const folder = mkdtempSync(join(tmpdir(), "truewire-drift-"));
const clients = ["ai", "@openai/agents"];
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
    const before = older.has(sdk) ? join(folder, "node_modules", olderName(sdk)) : installed(packages[0] ?? sdk);
    console.log(`\n## ${sdk} ${versionIn(newest)} after ${versionIn(before)}`);
    console.log(`\nTested here: ${packages.map((name) => versionIn(installed(name))).join(", ")}.`);
    report(sdk, newest, before);
  }
  console.log("\n## Clients\n\n| package | newest | tested here |\n| --- | --- | --- |");
  const all = Object.entries({ ...pinned("dependencies"), ...pinned("devDependencies") });
  for (const name of clients) {
    const tested = all.flatMap(([key, version]) => {
      if (key === name) return [version];
      return version.startsWith(`npm:${name}@`) ? [version.slice(`npm:${name}@`.length)] : [];
    });
    console.log(`| ${name} | ${versionIn(join(folder, "node_modules", name))} | ${tested.join(", ")} |`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${unknown} members, values or types are neither described nor listed in test/sdk/gaps.ts.`);
if (unknown > 0) process.exitCode = 1;

/** Prints a table for each object of an API in which something is new or unknown. */
function report(sdk: string, newest: string, before: string): void {
  const olderShapes = shapesOf(sdk, before);
  for (const [at, shape] of shapesOf(sdk, newest).entries()) {
    const description = descriptionsOf(sdk)[at];
    const older = olderShapes[at];
    if (!description || !shape) continue;
    const undescribed = new Set(missing(shape, shapeOfSchema(description.schema)));
    const added = older ? missing(shape, older) : [];
    const rows = [...new Set([...added, ...undescribed])].flatMap((path) => {
      const treatment = treatmentOf(description, path, undescribed);
      if (treatment === undefined) unknown++;
      if (treatment !== undefined && !added.includes(path)) return [];
      return [`| \`${path}\` | ${kindOf(description, path)} | ${treatment ?? "**unknown**"} |`];
    });
    const gone = older ? missing(older, shape) : [];
    if (rows.length + gone.length === 0) continue;
    console.log(`\n### ${description.name}\n\n| new | | what Truewire does |\n| --- | --- | --- |`);
    for (const row of [...rows, ...gone.map((path) => `| \`${path}\` | gone | |`)]) console.log(row);
  }
}

function olderName(sdk: string): string {
  return `older-${sdk.replaceAll(/[@/]/g, "")}`;
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
