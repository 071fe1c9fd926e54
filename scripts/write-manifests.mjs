#!/usr/bin/env node
// npm run manifests -- URL [folder]
//
// Fills in the templates of deploy/homebrew and deploy/winget for the archives that lie in the folder (default: this one): the package of
// `npm pack` for Homebrew, and the archive of `npm run bundle` on Windows for winget. URL: of the folder that the archives are published in, such
// as https://example.com/releases. The manifests are written next to the archives.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [, , url = "", folder = "."] = process.argv;
const root = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
if (!/^https?:\/\//.test(url))
  fail("Expected the URL of the folder with the archives: npm run manifests -- https://example.com/releases");

const archives = { homebrew: `truewire-${version}.tgz`, winget: `truewire-${version}-win32-x64.zip` };
const present = Object.entries(archives).filter(([, archive]) => existsSync(join(folder, archive)));
if (present.length === 0) fail(`There is neither ${Object.values(archives).join(" nor ")} in ${folder}. Run: npm pack`);
for (const [kind, archive] of present) {
  const sha256 = createHash("sha256")
    .update(readFileSync(join(folder, archive)))
    .digest("hex");
  const values = { VERSION: version, URL: `${url.replace(/\/+$/, "")}/${archive}`, SHA256: sha256 };
  for (const name of readdirSync(join(root, "deploy", kind))) {
    const template = readFileSync(join(root, "deploy", kind, name), "utf8").replace(/^# A template: .*\n/, "");
    const file = join(folder, name);
    writeFileSync(
      file,
      template.replaceAll(/\b(?:VERSION|URL|SHA256)\b/g, (word) => values[word]),
    );
    console.log(file);
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
