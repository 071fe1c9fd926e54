#!/usr/bin/env node
// Writes the pages of docs/api/ from the docstrings of everything that the package exports, as the build's declaration files have them.
// `node scripts/api-page.mjs [--check] [folder of the build, default dist]`. --check: exit code 1 if a page differs from what it would write.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const pagesFolder = "docs/api";
/** Each entry of the package with its declaration file. */
const entries = [
  ["truewire", "index.d.ts"],
  ["truewire/server", "server.d.ts"],
  ["truewire/fetch", "fetch.d.ts"],
  ["truewire/rules", "rules.d.ts"],
];
/**
 * Each page with the modules of src/ whose exports it describes. The first pattern that matches a module decides. `brief`: the page says of
 * each type what it is; its declaration has the members.
 */
const pages = [
  {
    file: "reading.md",
    title: "Reading streams and answers",
    about: "From another server's bytes to events, and from events to a whole answer.",
    modules: /^library\/read-|^core\/accumulate/,
  },
  {
    file: "writing.md",
    title: "Writing streams and answers",
    about: "From events to the bytes that clients of an API expect.",
    modules: /^library\/write-|^check\/repair/,
  },
  {
    file: "message-types.md",
    brief: true,
    title: "Types of messages",
    about: "Messages, their parts, tools and calls, in a form that belongs to no API.",
    modules: /^core\/message/,
  },
  {
    file: "model-text.md",
    title: "The text of models",
    about: "Tool calls and reasoning in the text that models write, and descriptions of how they write them.",
    modules: /^library\/parse-|^formats\//,
  },
  {
    file: "programs.md",
    title: "Programs",
    about: "Your own function as a model. [Programs](../programs.md) explains it.",
    modules: /^engines\/program\//,
  },
  {
    file: "server.md",
    title: "Server and handler",
    about: "The server in your own process. [Serving](../serving.md#in-your-own-server) explains it.",
    modules: /^(app|server)\/|\/download-image|fit-media/,
  },
  {
    file: "configuration.md",
    brief: true,
    title: "Configuration",
    about:
      "The object that `createServer` and `createHandler` take. [Configuration](../configuration.md) explains its members.",
    modules: /^config\//,
  },
  {
    file: "rules.md",
    title: "Rules",
    about:
      "What `truewire check` tests, as pure functions. [Checking a server](../checking.md) explains them, and [rules.md](../rules.md) lists the rules.",
    modules: /^check\//,
  },
  {
    file: "events.md",
    brief: true,
    title: "Events",
    about: "What a model reports, in order, and how it fails.",
    modules: /^core\/(events|failure|json-mistake)/,
  },
  {
    file: "requests.md",
    brief: true,
    title: "Requests",
    about: "What a client asks of an engine, in a form that belongs to no API.",
    modules: /^core\/request|^apis\/(choices-answer|port)/,
  },
  {
    file: "observing.md",
    brief: true,
    title: "Observing a request",
    about: "What an engine reports in addition to events: attempts, repairs, prompts, cache misses.",
    modules: /^core\/(generation-observer|inspection|cache-miss)/,
  },
  {
    file: "engines.md",
    brief: true,
    title: "Engines",
    about: "The interface of everything that generates, for a source of your own.",
    modules: /^(core|apis)\//,
  },
];
const generated =
  "<!-- Written by scripts/api-page.mjs from the docstrings in src/: change them there, then run `npm run api`. -->";
/** Any JSON object. */
const internal = new Set(["Json"]);
const check = process.argv.includes("--check");
const folder = process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? "dist";
const exported = readExports(folder);
const bare = exported.filter(({ kind, example }) => (kind === "function" || kind === "class") && example === undefined);
if (bare.length > 0) throw new Error(`without an @example: ${bare.map(({ name }) => name).join(", ")}`);
const shown = new Map(exported.map((entry) => [entry.name, entry]));
const hidden = exported.flatMap(({ name, text }) =>
  typesIn(text)
    .filter((used) => !shown.has(used) && !isGlobal(used) && !internal.has(used))
    .map((used) => `${used} (in ${name})`),
);
if (hidden.length > 0) throw new Error(`used, but not exported: ${hidden.join(", ")}`);
const texts = new Map([["README.md", writeIndex()], ...pages.map((page) => [page.file, writePage(page)])]);
if (check) {
  const stale = [...texts].filter(([file, text]) => readOr(join(pagesFolder, file)) !== text).map(([file]) => file);
  const unknown = readdirSync(pagesFolder).filter((file) => !texts.has(file));
  if (stale.length > 0 || unknown.length > 0) {
    console.error(`out of date in ${pagesFolder}: ${[...stale, ...unknown].join(", ")}. Run npm run api`);
    process.exitCode = 1;
  }
} else {
  rmSync(pagesFolder, { recursive: true, force: true });
  mkdirSync(pagesFolder, { recursive: true });
  for (const [file, text] of texts) writeFileSync(join(pagesFolder, file), text);
}

function readOr(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * What the package exports, in the order of its entries: `{ name, entry, from, page, kind, text, doc, example }`. `kind` is "function", "class",
 * "const" or "type"; `text` the declaration; `doc` the docstring without its example; `example` the code of `@example`, or undefined.
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
      found.push({ name: as ?? own, entry, from, page: pageOf(from), ...declaration });
    }
  }
  return found.map((entry) => ({ ...entry, text: entry.text.replace(/\w+/g, (word) => renamed.get(word) ?? word) }));
}

/** The page of a module, such as "./library/read-chat-stream.ts". */
function pageOf(from) {
  const page = pages.find(({ modules }) => modules.test(from.replace(/^\.\/(?:(?:wire|text|serve|judge)\/)?/, "")));
  if (!page) throw new Error(`scripts/api-page.mjs: no page of "pages" describes what ${from} exports`);
  return page;
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
    // A declaration ends before the next line in the first column that does not close it.
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

function writePage(page) {
  const here = exported.filter((entry) => entry.page === page);
  const functions = here.filter(({ kind }) => kind !== "type");
  const types = here.filter(({ kind }) => kind === "type");
  const link = (entry) => linkTo(entry, entry.page === page ? "" : entry.page.file);
  const section = (entry) => {
    const used = typesIn(entry.text).filter((name) => name !== entry.name && shown.has(name));
    return [
      `### ${entry.name}`,
      entry.doc,
      fenced("typescript", entry.text),
      used.length === 0 ? "" : `Types: ${used.map((name) => link(shown.get(name))).join(", ")}`,
      entry.example === undefined ? "" : fenced("js", entry.example),
    ]
      .filter((part) => part !== "")
      .join("\n\n");
  };
  return `${[
    `# ${page.title}`,
    generated,
    `${page.about} Import from ${importsOf(here)}. [All pages of the library](README.md)`,
    ...(functions.length === 0
      ? []
      : ["## Functions and classes", functions.map(link).join(", "), ...functions.map(section)]),
    ...typeSections(),
  ].join("\n\n")}\n`;

  function typeSections() {
    if (types.length === 0) return [];
    if (!page.brief) return ["## Types", types.map(link).join(", "), ...types.map(section)];
    const rows = types.map(({ name, doc }) => `| \`${name}\` | ${firstSentence(doc).replaceAll("|", "\\|")} |`);
    return [
      "## Types",
      "The declarations of the package describe the members; editors show them.",
      ["| type | what it is |", "| --- | --- |", ...rows].join("\n"),
    ];
  }
}

/** The first sentence of a docstring, on one line. */
function firstSentence(doc) {
  return /^[^]*?[.:](?=\s|$)/.exec(doc.replaceAll("\n", " "))?.[0].replace(/:$/, ".") ?? doc;
}

function writeIndex() {
  const rows = pages.map((page) => {
    const here = exported.filter((entry) => entry.page === page);
    const functions = here.filter(({ kind }) => kind !== "type").map((entry) => linkTo(entry, page.file));
    return `| [${page.title}](${page.file}) | ${importsOf(here)} | ${functions.length > 0 ? functions.join(", ") : "types only"} |`;
  });
  return `${[
    "# The library",
    generated,
    "[In my own code](../guides/in-my-own-code.md) is a tour of five minutes. These pages describe every public function and type.",
    ["| page | import from | functions and classes |", "| --- | --- | --- |", ...rows].join("\n"),
    '`"truewire"`, `"truewire/fetch"` and `"truewire/rules"` need nothing of Node and run in browsers; `"truewire/server"` needs Node, Bun or Deno.',
    "In the examples, a line `// → …` is what the `console.log` before it prints; a test runs each example. The types of messages and " +
      "events are the same everywhere: each function takes what the others return.",
  ].join("\n\n")}\n`;
}

/** A link to the section of an export. GitHub numbers headings that differ only in capitals, such as `everyRule` and `EveryRule`. */
function linkTo({ name, kind, page }, file) {
  const twin = kind === "type" && exported.some((other) => other.page === page && other.kind !== "type" && same(other));
  const place = kind === "type" && page.brief ? "types" : name.toLowerCase();
  return `[\`${name}\`](${file}#${place}${twin ? "-1" : ""})`;
  function same(other) {
    return other.name.toLowerCase() === name.toLowerCase();
  }
}

/** The entries of the package that export something of a page. */
function importsOf(here) {
  const names = new Set(
    here.toSorted((a, b) => Number(a.kind === "type") - Number(b.kind === "type")).map(({ entry }) => entry),
  );
  return [...names].map((name) => `\`"${name}"\``).join(", ");
}

function fenced(language, text) {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
