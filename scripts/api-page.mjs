#!/usr/bin/env node
// Writes docs/api.md from the docstrings of everything that the package exports, as the build's declaration files have them.
// `node scripts/api-page.mjs [--check] [folder of the build, default dist]`. --check: exit code 1 when the page is not what it would write.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const page = "docs/api.md";
/** Each entry of the package with its declaration file. */
const entries = [
  ["truewire", "index.d.ts"],
  ["truewire/server", "server.d.ts"],
  ["truewire/fetch", "fetch.d.ts"],
];
const check = process.argv.includes("--check");
const folder = process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? "dist";
const exported = readExports(folder);
const bare = exported.filter(({ kind, example }) => (kind === "function" || kind === "class") && example === undefined);
if (bare.length > 0) throw new Error(`without an @example: ${bare.map(({ name }) => name).join(", ")}`);
const shown = new Set(exported.map(({ name }) => name));
const hidden = exported.flatMap(({ name, text }) =>
  typesIn(text)
    .filter((used) => !shown.has(used) && !isGlobal(used))
    .map((used) => `${used} (in ${name})`),
);
if (hidden.length > 0) throw new Error(`used, but not exported: ${hidden.join(", ")}`);
const text = writePage(exported);
if (!check) writeFileSync(page, text);
else if (readFileSync(page, "utf8") !== text) {
  console.error(`${page} is stale: npm run api`);
  process.exitCode = 1;
}

/**
 * What the package exports, in the order of its entries: `{ name, entry, kind, text, doc, example }`. `kind` is "function", "class", "const" or
 * "type"; `text` the declaration; `doc` the docstring without its example; `example` the code of `@example`, undefined: it has none.
 */
function readExports(folder) {
  const found = [];
  const renamed = new Map();
  const statements = entries.flatMap(([entry, file]) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm)].map(
      ([, names, from]) => [entry, names, from],
    ),
  );
  for (const [entry, names, from] of statements) {
    const file = join(folder, from.replace(/\.(ts|js)$/, ".d.ts"));
    const declarations = readDeclarations(readFileSync(file, "utf8"));
    for (const [, own, as] of names.matchAll(/(\w+)(?: as (\w+))?/g)) {
      const declaration = declarations.get(own);
      if (!declaration) throw new Error(`${file} does not declare ${own}`);
      if (as) renamed.set(own, as);
      if (found.some(({ name }) => name === (as ?? own))) continue;
      found.push({ name: as ?? own, entry, ...declaration });
    }
  }
  return found.map((entry) => ({ ...entry, text: entry.text.replace(/\w+/g, (word) => renamed.get(word) ?? word) }));
}

/** The names of types that a declaration uses. */
function typesIn(text) {
  const code = text.replace(/\/\*[^]*?\*\//g, "").replace(/"[^"]*"/g, "");
  return [...new Set(code.match(/\b[A-Z]\w+/g))];
}

/** Whether everybody has the type: from the language, the web, or Node's http. */
function isGlobal(name) {
  const types =
    "Readonly Record Partial Omit Exclude Iterable AsyncIterable AsyncIterableIterator AsyncGenerator ErrorOptions IncomingMessage ServerResponse";
  return name in globalThis || types.split(" ").includes(name);
}

/** The exported declarations of one file. Each begins in the first column, with its docstring in the lines before it. */
function readDeclarations(source) {
  const declarations = new Map();
  let doc = "";
  const lines = source.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (line.startsWith("/**")) {
      const end = lines.findIndex((text, i) => i >= at && text.includes("*/"));
      doc = docText(lines.slice(at, end + 1).join("\n"));
      at = end;
      continue;
    }
    const declared = /^export (?:declare )?(?:abstract )?(function|class|interface|type|const) (\w+)/.exec(line);
    if (!declared) {
      if (line.trim() !== "") doc = "";
      continue;
    }
    // A declaration goes on until the next line in the first column that does not close it.
    let end = at + 1;
    while (end < lines.length && (/^[\s})]/.test(lines[end]) || lines[end] === "") && !lines[end].startsWith("/**"))
      end++;
    const text = lines
      .slice(at, end)
      .join("\n")
      .trim()
      .replace(/^export (declare )?/, "");
    const [prose, example] = doc.split(/^@example\n/m);
    const [, word, name] = declared;
    const kind = word === "interface" ? "type" : word;
    declarations.set(name, {
      kind,
      text,
      doc: prose.trim(),
      ...(example !== undefined && { example: example.trim() }),
    });
    doc = "";
    at = end - 1;
  }
  return declarations;
}

/** What a comment says, without its stars. */
function docText(comment) {
  return comment
    .replace(/^\/\*\*/, "")
    .replace(/\*\/$/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n")
    .trim();
}

function writePage(exported) {
  const of = (...kinds) => exported.filter(({ kind }) => kinds.includes(kind));
  const functionsOf = (one) => of("function", "class", "const").filter(({ entry }) => entry === one);
  const link = ({ name }) => `[\`${name}\`](#${name.toLowerCase()})`;
  const entry = ({ name, doc, text, example }) =>
    [`### ${name}`, doc, fenced("typescript", text), ...(example === undefined ? [] : [fenced("js", example)])]
      .filter((part) => part !== "")
      .join("\n\n");
  return `${[
    "# The library",
    "<!-- Written by scripts/api-page.mjs from the docstrings in src/: change them there, then run `npm run api`. -->",
    'A line `import` of an example names the entry. `"truewire"` and `"truewire/fetch"` need nothing of Node and run in browsers; ' +
      '`"truewire/server"` has what needs Node, and the types of its configuration. In the examples, a line `// → …` is what the `console.log` before it prints; a test ' +
      "runs each of them. The data types of messages and events are the same everywhere: what one function gives, the others take.",
    entries.map(([entry]) => `- \`"${entry}"\`: ${functionsOf(entry).map(link).join(", ")}`).join("\n"),
    "## Functions and classes",
    ...of("function", "class", "const").map(entry),
    "## Types",
    ...of("type").map(entry),
  ].join("\n\n")}\n`;
}

function fenced(language, text) {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
