#!/usr/bin/env node
// `npm start`: serves the bundled demo model; in a checkout that has none yet, the programmed model of the tests, which only says what
// was written beforehand. Options go on to `truewire serve`.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";

const bundled = existsSync("models/demo") && readdirSync("models/demo").some((name) => name.endsWith(".gguf"));
const targets = [];
if (!bundled) {
  execFileSync("npm", ["run", "--silent", "tools"], { stdio: ["ignore", "inherit", "inherit"] });
  const { writeProgrammedModel } = await import("../.cache/tools/test/fixtures/programmed-model.js");
  writeProgrammedModel(".cache/programmed.gguf");
  targets.push("demo=.cache/programmed.gguf");
  console.log("There is no demo model in models/demo, so this is the programmed model of the tests.");
}
process.argv.splice(2, 0, "serve", ...targets);
await import("../dist/cli/main.js");
