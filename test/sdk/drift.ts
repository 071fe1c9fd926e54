import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { compareWith, sdks } from "./compare.ts";
import { gaps } from "./gaps.ts";

// What the newest SDKs of the vendors declare that Truewire does not describe.
//
//   npm run drift
//
// Installs the newest version of each SDK from the registry into a temporary folder, and compares its types with the descriptions of
// `src/apis/`. Prints one table per SDK: what is new since the pinned version, and what is listed as a gap in `test/sdk/gaps.ts`, with the
// reason. Exit code 1 if something is neither described nor listed.
const folder = mkdtempSync(join(tmpdir(), "truewire-drift-"));
let unknown = 0;
try {
  writeFileSync(join(folder, "package.json"), "{}");
  const packages = sdks.map((sdk) => `${sdk}@latest`);
  execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", ...packages], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  for (const sdk of sdks) {
    console.log(`\n## ${sdk} ${versionIn(folder, sdk)} (pinned: ${versionIn(resolve("."), sdk)})\n`);
    const pinned = new Map(compareWith(sdk, resolve("node_modules")).map(({ name, missing }) => [name, missing]));
    console.log("| object | not described | since | what Truewire does |");
    console.log("| --- | --- | --- | --- |");
    for (const { name, missing } of compareWith(sdk, join(folder, "node_modules"))) {
      for (const path of missing) {
        const reason = gaps[name]?.[path];
        if (reason === undefined) unknown++;
        const since = pinned.get(name)?.includes(path) ? "" : "newer than the pinned version";
        console.log(`| ${name} | \`${path}\` | ${since} | ${reason ?? "**unknown**"} |`);
      }
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${unknown} members, values or kinds are neither described nor listed in test/sdk/gaps.ts.`);
if (unknown > 0) process.exitCode = 1;

function versionIn(root: string, sdk: string): string {
  const text = readFileSync(join(root, "node_modules", sdk, "package.json"), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}
