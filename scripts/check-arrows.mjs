#!/usr/bin/env node
// Keeps the arrows between the rooms of src/ pointing down: a room may import only the rooms listed for it, pure rooms import no
// Node built-in, no clock and no randomness. Source of the order: docs/architecture.md. Exit code 1 with one line a violation.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";

/** Room → rooms that it may import. A room is a folder of src/; files directly in src/ are the room "top". */
const rooms = {
  generation: [],
  formats: ["generation"],
  templates: ["generation"],
  wire: ["generation"],
  conversions: ["generation", "formats", "wire"],
  "engines/llama": ["generation", "formats", "templates"],
  "engines/upstream": ["generation", "formats", "templates", "wire"],
  "engines/program": ["generation", "formats", "wire"],
  check: ["generation", "wire"],
  config: ["generation", "formats", "wire"],
  server: ["generation", "wire"],
  top: [
    "generation",
    "formats",
    "templates",
    "wire",
    "conversions",
    "engines/llama",
    "engines/upstream",
    "engines/program",
    "check",
    "config",
    "server",
  ],
  cli: [
    "generation",
    "formats",
    "templates",
    "wire",
    "conversions",
    "engines/llama",
    "engines/upstream",
    "engines/program",
    "check",
    "config",
    "server",
    "top",
  ],
};
/** Rooms, or parts of them, that run in a browser as they are. */
const pure = ["generation", "formats", "templates", "wire", "conversions", "check/rules"];

const root = "src";
const files = walk(root).filter((file) => file.endsWith(".ts"));
const problems = [];
for (const file of files) {
  const here = roomOf(file);
  const text = readFileSync(file, "utf8");
  const isPure = pure.some((room) => file.startsWith(join(root, room) + sep)) && !file.endsWith(".test.ts");
  for (const specifier of importsOf(text)) {
    if (specifier.startsWith("node:")) {
      if (isPure) problems.push(`${file}: a pure room imports ${specifier}`);
      continue;
    }
    if (!specifier.startsWith(".")) continue;
    const target = normalize(join(dirname(file), specifier));
    if (!target.startsWith(root + sep)) {
      if (!file.endsWith(".test.ts")) problems.push(`${file}: imports ${specifier} from outside src/`);
      continue;
    }
    const there = roomOf(target);
    if (there === here) continue;
    if (rooms[here] === undefined) problems.push(`${file}: room "${here}" is not listed in scripts/check-arrows.mjs`);
    else if (!rooms[here].includes(there))
      problems.push(`${file}: room "${here}" must not import "${there}" (${specifier})`);
  }
  if (isPure) {
    const impure = text
      .replace(/\/\*[^]*?\*\/|\/\/.*/g, "")
      .match(/\b(Math\.random|Date\.now|new Date\(\)|performance\.now|process\.|Buffer\.|setTimeout|setInterval)/);
    if (impure) problems.push(`${file}: a pure room uses ${impure[1]}`);
  }
}

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`arrows: ${files.length} files, all imports point down`);

function walk(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? walk(path) : [path];
  });
}

function roomOf(file) {
  const [first, second] = file.split(sep).slice(1);
  if (first.endsWith(".ts")) return "top";
  return first === "engines" ? `${first}/${second}` : first;
}

function importsOf(text) {
  return [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\b[^"';]*?from\s*"([^"]+)"|import\(\s*"([^"]+)"\s*\)|(?:^|\n)import\s+"([^"]+)"/g,
    ),
  ].map((m) => m[1] ?? m[2] ?? m[3]);
}
