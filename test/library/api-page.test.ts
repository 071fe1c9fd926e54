import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitMs } from "../support/hang.ts";

/** The pages of docs/api/ are up to date with the docstrings, and each of their examples prints what its comments promise. */

const run = promisify(execFile);
/** `TRUEWIRE_DIST` names another build than `npm run build`'s. */
const dist = resolve(process.env.TRUEWIRE_DIST ?? "dist");
const folder = resolve(".cache/api-examples");
const pages = (await readdir("docs/api")).map((file) => readFile(join("docs/api", file), "utf8"));
const text = (await Promise.all(pages)).join("\n");

const examples = [...text.matchAll(/^### (\w+)\n[^]*?(?=^###? |(?![^]))/gm)].flatMap(([section, name = ""]) => {
  const code = /```js\n([^]*?)```/.exec(section)?.[1];
  return code === undefined ? [] : [{ name, code }];
});

/** Runs the modules that it is given, one after the other, and tells what each printed and threw: a process each takes seconds. */
const runner = `
import { formatWithOptions } from "node:util";
import { writeSync } from "node:fs";
const told = {};
for (const file of process.argv.slice(2)) {
  const lines = [];
  console.log = (...values) => lines.push(...formatWithOptions({ colors: false }, ...values).split("\\n"));
  const error = await import(file).then(() => null, (error) => String(error?.stack ?? error));
  told[file] = { lines, error };
}
writeSync(1, JSON.stringify(told));
process.exit();
`;

let printed: Record<string, { readonly lines: readonly string[]; readonly error: string | null }>;
const urlOf = (name: string): string => pathToFileURL(join(folder, `${name}.mjs`)).href;

beforeAll(async () => {
  await mkdir(folder, { recursive: true });
  const entry = (name = "index"): string => `from ${JSON.stringify(pathToFileURL(join(dist, `${name}.js`)).href)}`;
  await writeFile(join(folder, "run-examples.mjs"), runner);
  for (const { name, code } of examples) {
    await writeFile(
      join(folder, `${name}.mjs`),
      code.replaceAll(/from "truewire(?:\/(\w+))?"/g, (_, name?: string) => entry(name)),
    );
  }
  const files = examples.map(({ name }) => urlOf(name));
  const { stdout } = await run(process.execPath, [join(folder, "run-examples.mjs"), ...files], { timeout: waitMs });
  printed = JSON.parse(stdout);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("docs/api/ is what the build's docstrings make it; every public function has an example", async () => {
  await run(process.execPath, ["scripts/api-page.mjs", "--check", dist]);
});

test("the pages have an example for each function", () => {
  expect(examples.length).toBeGreaterThan(30);
});

test.each(examples)("example of $name", ({ name, code }) => {
  const promised = [...code.matchAll(/^ *\/\/ →(.*)$/gm)].map(([, line = ""]) => line.trim());
  expect(promised.length).toBeGreaterThan(0);
  const { lines = [], error = "was not run" } = printed[urlOf(name)] ?? {};
  expect(error).toBeNull();
  expect(lines.map((line) => line.trim())).toEqual(promised);
});
