import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

type Versions = Readonly<Record<string, string>>;

const read = (path: string): string => readFileSync(path, "utf8");
const { dependencies, optionalDependencies, devDependencies } = JSON.parse(read("package.json")) as Readonly<
  Record<"dependencies" | "optionalDependencies" | "devDependencies", Versions>
>;
/** These are bundled into the page. */
const bundled = Object.fromEntries(
  ["diff", "highlight.js", "idb", "markdown-it", "preact", "temml"].map((name) => [name, devDependencies[name] ?? ""]),
);
const shipped: Versions = { ...dependencies, ...optionalDependencies, ...bundled };

const rows = [...read("docs/dependencies.md").matchAll(/^\| `(\S+)` \| (.*) \|$/gm)].map(([, name = "", rest = ""]) => {
  const [version = "", released = "", since = "", licence = "", ...words] = rest.split(" | ");
  return { name, version, released, since, licence, words };
});

test("the table of dependencies has every package of package.json, in its version", () => {
  expect(Object.fromEntries(rows.map(({ name, version }) => [name, version]))).toEqual(shipped);
});

test.each(rows)("$name: its licence is that of the installed package, and no column is empty", (row) => {
  const { name, licence, released, since, words } = row;
  const installed = JSON.parse(read(`node_modules/${name}/package.json`)) as { license: string };
  expect(licence).toBe(installed.license);
  expect(released).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(since).toMatch(/^\d{4}$/);
  expect(words.filter((text) => text.trim() !== "")).toHaveLength(3);
});
