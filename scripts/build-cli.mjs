#!/usr/bin/env node
// Bundles the command, the workers of a server, the process of a model with its thread and the thread of a program with rolldown:
// dist/cli/main.js, dist/cli/serve-action.js, dist/serve/app/worker-main.js, dist/engines/llama/process/main.js,
// dist/engines/llama/preparing/thread.js, dist/engines/program/worker.js and dist/chunks. Node spends most of a start on finding, reading
// and linking modules; a gateway has 700. The packages that every start needs are part of the bundle; the others are imported when they
// are used. What `serve` and its workers need at every start is one file, apart from the files of the other commands, which would
// otherwise share it in eighty parts. It is a script in place of a module, and so is what a model's process or a program's thread needs:
// Node 20 keeps compiled code of scripts only (load-compiled.mjs). All other files of dist stay as tsc wrote them: the library, and the
// entries of other threads and child processes. Nothing is written that has not changed: a server may be reading it.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, resolve } from "node:path";
import { rolldown } from "rolldown";

const bundled = [
  "@noble/hashes",
  "@opentelemetry/api",
  "commander",
  "picocolors",
  "prom-client",
  "undici",
  "ws",
  "zod",
];
/** Packages that `ws` uses where they are installed. */
const optional = new Set(["bufferutil", "utf-8-validate"]);
/** What a gateway imports when it starts: the entry, and what it imports with `import()`. */
const ofStart = [
  "src/serve/cli/serve-action.ts",
  "src/serve/app/open-upstream-model.ts",
  "src/engines/upstream/undici-transport.ts",
  "src/engines/upstream/background/background.ts",
  "src/serve/server/metrics/open-metrics.ts",
  "src/serve/server/tracing/tracing.ts",
  "src/serve/server/tracing/export-traces.ts",
].map((file) => resolve(file));
/** What a model's process and its thread import when they start. */
const ofModel = ["src/engines/llama/process/main.ts", "src/engines/llama/preparing/thread.ts"].map((file) =>
  resolve(file),
);
/** What the thread of a program imports when it starts. */
const ofProgram = [resolve("src/engines/program/worker.ts")];
/** Filled by `importedBy`. */
const closures = new Map();
/**
 * Modules of packages that no gateway uses, by what imports them: HTTP/2, and metrics that are pushed or gathered from processes. They load
 * Node's HTTP/2, TLS and cluster, a tenth of a start.
 */
const unused = [
  { importer: /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client\.js$/, id: "./client-h2.js" },
  { importer: /[\\/]prom-client[\\/]index\.js$/, id: "./lib/pushgateway" },
  { importer: /[\\/]prom-client[\\/]index\.js$/, id: "./lib/cluster" },
];
const leftOut = new Set();
const without = {
  name: "without what no gateway uses",
  resolveId(id, importer = "") {
    const found = unused.find((one) => one.id === id && one.importer.test(importer));
    if (found) leftOut.add(found);
    return found && "\0unused";
  },
  load(id) {
    return id === "\0unused" ? "module.exports = undefined;" : undefined;
  },
};

const output = [
  ...(await bundle({ "cli/main": "src/serve/cli/main.ts" }, [
    {
      // From dist/cli, and from dist/chunks.
      name: "serve is another bundle",
      resolveId: (id) => (id === "./serve-action.ts" ? { id: "../cli/serve-action.js", external: true } : undefined),
    },
  ])),
  ...(await bundle(
    { "cli/serve-action": "src/serve/cli/serve-action.ts", "serve/app/worker-main": "src/serve/app/worker-main.ts" },
    [],
    { name: "server", has: (id, graph) => importedBy(ofStart, graph).has(id) },
  )),
  ...(await bundle(
    { "engines/llama/process/main": ofModel[0], "engines/llama/preparing/thread": ofModel[1] },
    [],
    // The entries stay in files of their own.
    { name: "model", has: (id, graph) => !ofModel.includes(id) && importedBy(ofModel, graph).has(id) },
  )),
  ...(await bundle(
    { "engines/program/worker": ofProgram[0] },
    [
      {
        // It imports the user's module, and finds the library from its own place.
        name: "what imports is no part of a script",
        resolveId: (id) => (id === "./import-module.ts" ? { id: "./import-module.js", external: true } : undefined),
      },
    ],
    { name: "program", has: (id, graph) => !ofProgram.includes(id) && importedBy(ofProgram, graph).has(id) },
  )),
];
if (leftOut.size < unused.length) throw new Error("A package has changed: correct `unused` in scripts/build-cli.mjs.");
const files = new Map(output.map(({ fileName, code }) => [fileName, code]));
files.set("chunks/load-compiled.js", readFileSync("scripts/load-compiled.mjs", "utf8"));
files.set("chunks/LICENSES.txt", licences(output.flatMap(({ moduleIds }) => moduleIds)));
for (const name of files.keys()) mkdirSync(dirname(`dist/${name}`), { recursive: true });
for (const [name, text] of files) if (textOf(`dist/${name}`) !== text) writeFileSync(`dist/${name}`, text);
for (const name of readdirSync("dist/chunks")) if (!files.has(`chunks/${name}`)) rmSync(`dist/chunks/${name}`);

/** Bundles the entries. `group`: the modules of the chunk that becomes a script. */
async function bundle(input, plugins, group) {
  const build = await rolldown({
    input,
    platform: "node",
    // A group joins modules that elsewhere are imported when they are used.
    checks: { ineffectiveDynamicImport: false },
    resolve: { alias: { undici$: resolve("scripts/undici-parts.mjs") } },
    external: (id, importer = "") => {
      if (/^(\.|\/|[A-Za-z]:\\|\0)/.test(id)) return false;
      if (isBuiltin(id) || optional.has(id)) return true;
      return !importer.includes("node_modules") && !bundled.some((name) => id === name || id.startsWith(`${name}/`));
    },
    plugins: [
      ...plugins,
      without,
      { name: "places", transform: { filter: { code: "import.meta.url" }, handler: withPlace } },
    ],
  });
  const { output } = await build.generate({
    format: "esm",
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    ...(group && {
      codeSplitting: {
        groups: [{ name: (id, graph) => (group.has(id, graph) ? group.name : null), debugName: group.name }],
      },
    }),
  });
  await build.close();
  const parts = await Promise.all(
    output.map((chunk) => (chunk.name === group?.name ? asScript(chunk, output) : [chunk])),
  );
  return parts.flat();
}

/**
 * Divides a chunk into a script, whose value is a function of `exports`, `require`, `import` and its place, and a module that loads it and has
 * the same exports. They are read once, so none may change after the load. The script is ASCII, which V8 reads in half the time.
 */
async function asScript({ name, fileName, exports, moduleIds }, output) {
  const texts = new Map(output.map((chunk) => [resolve("dist", chunk.fileName), chunk.code]));
  const path = resolve("dist", fileName);
  const build = await rolldown({
    input: path,
    platform: "node",
    plugins: [
      {
        name: "script",
        resolveId(id, importer, { kind }) {
          if (kind === "dynamic-import" || isBuiltin(id)) return { id, external: true };
          return importer === undefined ? id : resolve(dirname(importer), id);
        },
        load: (id) => texts.get(id),
      },
    ],
  });
  const [{ code: text }] = (await build.generate({ format: "cjs", comments: false })).output;
  await build.close();
  const body = text
    .replace(/\bimport\((?=")/g, "importModule(")
    .replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const script = `(function (exports, require, importModule, __filename) { "use strict"; ${body}\n})\n`;
  const scriptName = `${name}-${createHash("sha256").update(script).digest("hex").slice(0, 8)}.script.js`;
  const all = exports.map((one, at) => `const _${at} = all[${JSON.stringify(one)}];\n`).join("");
  const names = exports.map((one, at) => `_${at} as ${one}`).join(", ");
  const module = `import { load } from "./load-compiled.js";\nconst all = load("${scriptName}");\n${all}export { ${names} };\n`;
  return [
    { fileName, code: module, moduleIds: [] },
    { fileName: `chunks/${scriptName}`, code: script, moduleIds },
  ];
}

/** The entries with everything that they import statically. */
function importedBy(entries, graph) {
  const known = closures.get(entries.join());
  if (known !== undefined) return known;
  const modules = new Set(entries);
  const moved = entries.find((id) => !graph.getModuleInfo(id));
  if (moved !== undefined) throw new Error(`${moved} is not in the bundle: correct scripts/build-cli.mjs.`);
  for (const id of modules) for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) modules.add(imported);
  closures.set(entries.join(), modules);
  return modules;
}

/** A module finds its threads and child processes from the place that tsc gives it. Every file of the bundle is in a folder of dist. */
function withPlace(code, id) {
  const source = `${resolve("src").replaceAll("\\", "/")}/`;
  const path = id.replaceAll("\\", "/");
  if (!path.startsWith(source)) return undefined;
  const place = JSON.stringify(`../${path.slice(source.length).replace(/\.ts$/, ".js")}`);
  return code.replaceAll("import.meta.url", `new URL(${place}, import.meta.url).href`);
}

/** The licences of the packages that modules are from. */
function licences(modules) {
  const folders = modules.flatMap((id) => /^.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+/.exec(id) ?? []);
  const texts = [...new Set(folders)].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const notices = readdirSync(folder)
      .filter((file) => /^(licen[cs]e|notice)/i.test(file))
      .toSorted();
    return `${name} ${version} (${license})\n\n${notices.map((file) => readFileSync(`${folder}/${file}`, "utf8")).join("\n")}`;
  });
  return texts.toSorted().join("\n----\n\n");
}

function textOf(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
