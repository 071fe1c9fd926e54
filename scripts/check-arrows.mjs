#!/usr/bin/env node
// Keeps the order of src/: a room imports only the rooms listed for it, pure rooms import no Node built-in, no clock and no randomness, no file
// imports itself through others, by type either, and no house has more lines than its ceiling. A room is a folder of a house (`wire/core`); the
// page is one room. Source of the order: docs/architecture.md, and README.md of each house, which says its ceiling. Exit code 1 with one line
// for each violation.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";

const wire = ["wire/core", "wire/apis"];
const engines = ["engines/lifecycle", "engines/llama", "engines/upstream", "engines/program"];
const belowApp = [
  ...wire,
  "text/formats",
  "text/templates",
  ...engines,
  "judge/inspect",
  "serve/config",
  "serve/kv",
  "serve/server",
  "serve/hosted",
];

/** Room → rooms that it may import. Files directly in src/ are the package's entries. */
const rooms = {
  "wire/core": [],
  "wire/apis": ["wire/core"],
  "wire/random": [],
  "text/formats": ["wire/core"],
  "text/templates": ["wire/core"],
  "engines/lifecycle": ["wire/core"],
  "engines/llama": ["wire/core", "text/formats", "text/templates", "engines/lifecycle", "wire/random"],
  "engines/upstream": [...wire, "text/formats", "text/templates", "engines/lifecycle", "wire/random"],
  "engines/program": [...wire, "text/formats", "engines/lifecycle", "wire/random"],
  "judge/check": [...wire, "wire/random"],
  "judge/capture": wire,
  "judge/between": [...wire, "wire/random", "judge/library", "judge/capture"],
  "judge/inspect": ["wire/core", "judge/capture"],
  "judge/library": [...wire, "text/formats", "text/templates", "wire/random"],
  "serve/kv": [],
  "serve/config": [...wire, "text/formats"],
  "serve/hosted": ["wire/core", "engines/lifecycle", "engines/upstream", "engines/program", "serve/config"],
  "serve/server": [...wire, "serve/kv", "judge/inspect", "wire/random"],
  "serve/app": [...belowApp, "judge/check", "judge/between"],
  "serve/cli": [
    ...belowApp,
    "serve/app",
    "judge/library",
    "judge/check",
    "judge/between",
    "judge/capture",
    "wire/random",
  ],
  page: [...wire, "judge/library", "judge/check", "judge/between", "judge/capture", "judge/inspect", "wire/random"],
  entry: [...belowApp, "serve/app", "judge/library", "judge/check"],
};
/** Rooms, or parts of them, that run in a browser as they are; the page runs nowhere else, and may use what browsers have. */
const pure = [...wire, "text/formats", "text/templates", "judge/check/rules"];

const root = "src";
const files = walk(root).filter((file) => /\.tsx?$/.test(file));
const problems = [];
/** File → files of src/ that it imports. */
const imports = new Map();
for (const file of files) {
  const here = roomOf(file);
  const text = readFileSync(file, "utf8");
  const isPure = pure.some((room) => file.startsWith(join(root, room) + sep)) && !file.endsWith(".test.ts");
  const targets = [];
  imports.set(file, targets);
  if (rooms[here] === undefined) problems.push(`${file}: room "${here}" is not listed in scripts/check-arrows.mjs`);
  for (const specifier of importsOf(text)) {
    if (specifier.startsWith("node:")) {
      if (isPure) problems.push(`${file}: a pure room imports ${specifier}`);
      if (here === "page" && !file.endsWith(".test.ts")) problems.push(`${file}: the page imports ${specifier}`);
      continue;
    }
    if (!specifier.startsWith(".")) continue;
    const target = normalize(join(dirname(file), specifier));
    if (!target.startsWith(root + sep)) {
      if (!file.endsWith(".test.ts")) problems.push(`${file}: imports ${specifier} from outside src/`);
      continue;
    }
    targets.push(target);
    const there = roomOf(target);
    if (there !== here && rooms[here] && !rooms[here].includes(there))
      problems.push(`${file}: room "${here}" must not import "${there}" (${specifier})`);
  }
  const code = text.replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
  if (isPure) {
    const impure = code.match(
      /\b(Math\.random|crypto\.|Date\.now|new Date\(\)|performance\.now|process\.|Buffer\.|setTimeout|setInterval)/,
    );
    if (impure) problems.push(`${file}: a pure room uses ${impure[1]}`);
  }
  if (!file.endsWith(".test.ts") && /\bMath\.random\b/.test(code))
    problems.push(
      `${file}: uses Math.random, whose results can be computed from earlier ones; wire/random/random.ts has others`,
    );
}
problems.push(...wrongRows(), ...wrongHouses());
for (const cycle of cyclesOf(imports)) problems.push(`import cycle: ${cycle.join(" → ")}`);

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`arrows: ${files.length} files, all imports point down, no cycles, no house above its ceiling`);

/** The rooms whose row in the table of docs/architecture.md is missing, or lists other rooms than they may import. */
function wrongRows() {
  const page = "docs/architecture.md";
  const rows = [...readFileSync(page, "utf8").matchAll(/^\| `([\w/.]+?)\/?`[^|]*\|[^|]*\| ([^|]*) \|$/gm)];
  const listed = new Map(
    rows.map(([, name, cell]) => [
      name === "index.ts" ? "entry" : name,
      cell === "every room"
        ? "every room"
        : [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, room]) =>
            room.endsWith("/*") ? Object.keys(rooms).filter((one) => one.startsWith(room.slice(0, -1))) : room,
          ),
    ]),
  );
  return Object.entries(rooms).flatMap(([room, allowed]) => {
    const row = listed.get(room);
    if (row === undefined) return [`${page}: the table has no row for ${room}`];
    if (row === "every room" || row.toSorted().join() === allowed.toSorted().join()) return [];
    return [
      `${page}: ${room} may import ${allowed.join(", ") || "nothing"}, but its row has ${row.join(", ") || "nothing"}`,
    ];
  });
}

/** The houses whose README.md lists other houses than their rooms may import, or that have more lines than it says. Tests are not counted. */
function wrongHouses() {
  const names = [...new Set(Object.keys(rooms).map((room) => room.split("/")[0]))].filter((name) => name !== "entry");
  return names.flatMap((house) => {
    const page = join(root, house, "README.md");
    const text = readFileSync(page, "utf8");
    const ceiling = Number(/at most ([\d,]+) lines/.exec(text)?.[1].replaceAll(",", ""));
    const lines = files
      .filter((file) => file.startsWith(join(root, house) + sep) && !/\.test\.tsx?$/.test(file))
      .reduce((sum, file) => sum + readFileSync(file, "utf8").split("\n").length - 1, 0);
    const imported = Object.entries(rooms).flatMap(([room, others]) => (room.split("/")[0] === house ? others : []));
    const allowed = [...new Set(imported.map((room) => room.split("/")[0]))]
      .filter((other) => other !== house)
      .toSorted();
    const said = /It imports (.*)\./.exec(text)?.[1] ?? "";
    const listed = [...said.matchAll(/`(\w+)`/g)].map(([, name]) => name).toSorted();
    return [
      ...(lines <= ceiling
        ? []
        : [
            `${page}: the house has ${lines} lines, and may have at most ${ceiling}: remove some, or say there why it grows`,
          ]),
      ...(allowed.join() === listed.join()
        ? []
        : [
            `${page}: it imports ${allowed.join(", ") || "nothing"}, but the page says ${listed.join(", ") || "nothing"}`,
          ]),
    ];
  });
}

function walk(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? walk(path) : [path];
  });
}

function roomOf(file) {
  const [first, second] = file.split(sep).slice(1);
  if (first.endsWith(".ts")) return "entry";
  return first === "page" ? first : `${first}/${second}`;
}

function importsOf(text) {
  return [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\b[^"';]*?from\s*"([^"]+)"|import\(\s*"([^"]+)"\s*\)|(?:^|\n)import\s+"([^"]+)"/g,
    ),
  ].map((m) => m[1] ?? m[2] ?? m[3]);
}

/** One cycle for each file that closes one: the path of imports from the file back to itself. Depth-first search with three colours. */
function cyclesOf(graph) {
  const cycles = [];
  const state = new Map();
  const path = [];
  const visit = (file) => {
    state.set(file, "open");
    path.push(file);
    for (const target of graph.get(file) ?? []) {
      if (state.get(target) === "open") cycles.push([...path.slice(path.indexOf(target)), target]);
      else if (!state.has(target)) visit(target);
    }
    path.pop();
    state.set(file, "done");
  };
  for (const file of graph.keys()) if (!state.has(file)) visit(file);
  return cycles;
}
