#!/usr/bin/env node
// Keeps the arrows between the rooms of src/ pointing down: a room imports only the rooms listed for it, pure rooms import no Node
// built-in, no clock and no randomness, and no file imports itself through others, by type either. Source of the order:
// docs/architecture.md. Exit code 1 with one line a violation.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";

const engines = ["engines/lifecycle", "engines/llama", "engines/upstream", "engines/program"];
const belowApp = ["core", "formats", "templates", "apis", ...engines, "config", "kv", "inspect", "server"];

/** Room → rooms that it may import. A room is a folder of src/; files directly in src/ are the package's entries. */
const rooms = {
  core: [],
  formats: ["core"],
  templates: ["core"],
  apis: ["core"],
  kv: [],
  random: [],
  "engines/lifecycle": ["core"],
  "engines/llama": ["core", "formats", "templates", "engines/lifecycle", "random"],
  "engines/upstream": ["core", "formats", "templates", "apis", "engines/lifecycle", "random"],
  "engines/program": ["core", "formats", "apis", "engines/lifecycle", "random"],
  check: ["core", "apis", "random"],
  capture: ["core", "apis"],
  inspect: ["core", "capture"],
  config: ["core", "formats", "apis"],
  server: ["core", "apis", "kv", "inspect", "random"],
  library: ["core", "formats", "templates", "apis", "random"],
  app: [...belowApp, "check"],
  page: ["core", "apis", "library", "check", "capture", "inspect", "random"],
  cli: [...belowApp, "app", "library", "check", "capture", "random"],
  entry: [...belowApp, "app", "library", "check"],
};
/** Rooms, or parts of them, that run in a browser as they are; the page runs nowhere else, and may use what browsers have. */
const pure = ["core", "formats", "templates", "apis", "check/rules"];

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
      `${file}: uses Math.random, whose results can be computed from earlier ones; random/random.ts has others`,
    );
}
problems.push(...wrongRows());
for (const cycle of cyclesOf(imports)) problems.push(`import cycle: ${cycle.join(" → ")}`);

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`arrows: ${files.length} files, all imports point down, no cycles`);

/** The rooms whose row in the table of docs/architecture.md is missing, or lists other rooms than they may import. */
function wrongRows() {
  const page = "docs/architecture.md";
  const rows = [...readFileSync(page, "utf8").matchAll(/^\| `([\w/.]+?)\/?`[^|]*\|[^|]*\| ([^|]*) \|$/gm)];
  const listed = new Map(
    rows.map(([, name, cell]) => [
      name === "index.ts" ? "entry" : name,
      cell === "every room"
        ? "every room"
        : [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, room]) => (room === "engines/*" ? engines : room)),
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

function walk(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? walk(path) : [path];
  });
}

function roomOf(file) {
  const [first, second] = file.split(sep).slice(1);
  if (first.endsWith(".ts")) return "entry";
  return first === "engines" ? `${first}/${second}` : first;
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
