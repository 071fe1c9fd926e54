// node scripts/write-sbom.mjs
//
// Writes dist/sbom.cdx.json, the software bill of materials of what an installed Truewire consists of, in CycloneDX: the packages of
// `dependencies` and `optionalDependencies` with all that they depend on, and what is bundled into the page. The build runs this: npm does
// not run `prepack` where `ignore-scripts` is set, as it is here. Nothing happens while the file is newer than the lock file.
// The same lock file gives the same bytes: npm's time and serial number are left out.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const path = `${root}dist/sbom.cdx.json`;
const changedAt = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (changedAt(path) > Math.max(changedAt(`${root}package-lock.json`), changedAt(`${root}package.json`))) process.exit();

const { name, version, dependencies, optionalDependencies, devDependencies } = JSON.parse(
  readFileSync(`${root}package.json`, "utf8"),
);
const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--loglevel", "error"];
// npm is a script of another name on Windows, which only a shell finds.
const options = { cwd: root, encoding: "utf8", maxBuffer: 64 * 2 ** 20, shell: process.platform === "win32" };
const whole = JSON.parse(execFileSync("npm", args, options));

const dependsOn = new Map(whole.dependencies.map((entry) => [entry.ref, entry.dependsOn]));
const refs = (versions) => Object.entries(versions).map(([package_, at]) => `${package_}@${at}`);
const bundled = Object.fromEntries(
  ["diff", "highlight.js", "idb", "markdown-it", "preact", "temml"].map((name) => [name, devDependencies[name]]),
);
const required = refs({ ...dependencies, ...bundled });
const direct = [...required, ...refs(optionalDependencies)];
/** The packages that these depend on, and they themselves. */
const closure = (from) => {
  const reached = new Set();
  const walk = (ref) => {
    if (reached.has(ref)) return;
    reached.add(ref);
    for (const next of dependsOn.get(ref) ?? []) walk(next);
  };
  for (const ref of from) walk(ref);
  return reached;
};
const [reached, needed] = [closure(direct), closure(required)];

/** Licences of packages whose package.json names none of SPDX's list, by their LICENSE file. */
const licences = { "duck@0.1.12": "BSD-2-Clause" };
const licensed = (component) => {
  const id = licences[component["bom-ref"]];
  return id === undefined ? component : { ...component, licenses: [{ license: { id } }] };
};

const self = `${name}@${version}`;
const { serialNumber: _serialNumber, metadata, ...rest } = whole;
const { timestamp: _timestamp, ...facts } = metadata;
const sbom = {
  ...rest,
  metadata: { ...facts, component: { ...facts.component, name } },
  components: whole.components
    .filter((component) => reached.has(component["bom-ref"]))
    .map((component) => ({
      ...licensed(component),
      scope: needed.has(component["bom-ref"]) ? "required" : "optional",
    })),
  dependencies: [
    { ref: self, dependsOn: direct },
    ...whole.dependencies.filter(({ ref }) => ref !== self && reached.has(ref)),
  ],
};
mkdirSync(`${root}dist`, { recursive: true });
// Two packings at once must not read half a file.
writeFileSync(`${path}.${process.pid}`, `${JSON.stringify(sbom, null, 2)}\n`);
renameSync(`${path}.${process.pid}`, path);
