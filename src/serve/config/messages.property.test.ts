import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { ConfigError } from "./config-error.ts";
import type { ConfigProblem } from "./config-error.ts";
import type { TruewireConfig } from "./schema.ts";
import { readConfigFile } from "./read-config-file.ts";
import { configJsonSchema, parseConfig } from "./schema.ts";

type Schema = { readonly [key: string]: unknown };
type Path = readonly (string | number)[];

const isWrong = (() => {
  const validate = new Ajv2020({ validateFormats: false }).compile(configJsonSchema());
  return (config: unknown) => !validate(config);
})();

/** Every place of a configuration where a value stands, and how one with a value there looks. */
const places: readonly { readonly path: Path; with(value: unknown): unknown }[] = (() => {
  const found: { path: Path; with(value: unknown): unknown }[] = [];
  const visit = (schema: Schema, path: Path, around: (value: unknown) => unknown): void => {
    found.push({ path, with: around });
    for (const branch of branchesOf(schema)) {
      const required = requiredOf(branch);
      for (const [name, member] of Object.entries((branch.properties ?? {}) as Readonly<Record<string, Schema>>))
        visit(member, [...path, name], (value) => around({ ...required, [name]: value }));
      if (branch.items) visit(branch.items as Schema, [...path, 0], (value) => around([value]));
      // Within a description of a format, the format's own members are the places.
      if (typeof branch.additionalProperties === "object" && path.at(-1) !== "toolFormat")
        visit(branch.additionalProperties as Schema, [...path, "k"], (value) => around({ k: value }));
    }
  };
  visit(configJsonSchema() as Schema, [], (value) => value);
  return found;
})();

function branchesOf(schema: Schema): readonly Schema[] {
  const union = (schema.anyOf ?? schema.oneOf) as readonly Schema[] | undefined;
  return union ? union.flatMap(branchesOf) : [schema];
}

/** The members that the entry of a model, of its draft model, of a key, of a price, of an adapter, of a rule, or a hook, cannot be without, each with a right value. */
function requiredOf({ properties }: Schema): Schema {
  if (typeof properties === "object" && properties !== null && "hash" in properties)
    return { name: "x", hash: `sha256:${"0".repeat(64)}` };
  if (typeof properties === "object" && properties !== null && "cachedInput" in properties)
    return { input: 1, output: 1 };
  if (typeof properties === "object" && properties !== null && "expires" in properties) return { command: "x" };
  if (typeof properties === "object" && properties !== null && "weight" in properties) return { key: "x" };
  if (typeof properties === "object" && properties !== null && "share" in properties) return { to: "x" };
  if (typeof properties === "object" && properties !== null && "module" in properties) return { module: "x.ts" };
  if (typeof properties === "object" && properties !== null && "scale" in properties) return { path: "x.gguf" };
  if (typeof properties === "object" && properties !== null && "path" in properties && !("kind" in properties))
    return { path: "x.gguf" };
  const kind = ((properties ?? {}) as Readonly<Record<string, Schema>>).kind?.const;
  const own: Readonly<Record<string, Schema>> = {
    local: { path: "x.gguf" },
    upstream: { url: "http://x/v1" },
    program: { program: "x.ts" },
  };
  return typeof kind === "string" ? { kind, ...own[kind] } : {};
}

/** Each JSON type, of a value that is no setting's. */
const wrongs: readonly unknown[] = [null, true, -1.5, "", "no such value", [[]], [{ k: 1 }], { k: [1] }];

function problemsOf(config: unknown): readonly ConfigProblem[] {
  try {
    parseConfig(config as TruewireConfig);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** What a person cannot know: the words of the library that checks. */
const raw = /record|received|invalid input|invalid option|union|too (small|big)|undefined|nan|\bstring\b|\barray\b/i;

function expectPlain({ message }: ConfigProblem): void {
  expect(message).not.toMatch(raw);
  expect(message).toMatch(
    /^(?:is missing; )?expected \S|^there is no such setting(?:; did you mean \w+\?)?$|^must |needs/,
  );
}

describe("for every setting", () => {
  test("there are settings of every kind of model", () => {
    expect(places.length).toBeGreaterThan(100);
    for (const name of ["slots", "fallbacks", "watch", "topK", "ca"])
      expect(places.filter(({ path }) => path.includes(name))).not.toEqual([]);
  });

  test.each(places.map((place) => [JSON.stringify(place.path), place] as const))(
    "%s: a value of each wrong type is told with its place and what was expected",
    (_, { path, with: around }) => {
      let told = 0;
      for (const value of wrongs) {
        const config = around(value);
        const problems = problemsOf(config);
        if (isWrong(config)) expect(problems, JSON.stringify(value)).not.toEqual([]);
        for (const problem of problems) {
          told++;
          expect(problem.path.slice(0, path.length), JSON.stringify(value)).toEqual(path);
          expectPlain(problem);
        }
      }
      // Members that are sent along as they are may be anything.
      if (path.at(-2) !== "add") expect(told).toBeGreaterThan(2);
    },
  );

  test("whatever JSON stands there, what is said is in plain words", () => {
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.jsonValue(), ({ with: around }, value) => {
        const config = around(value);
        const problems = problemsOf(config);
        if (isWrong(config)) expect(problems).not.toEqual([]);
        for (const problem of problems) expectPlain(problem);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("in a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-messages-"));
  const file = join(folder, "config.yaml");
  afterAll(() => rmSync(folder, { recursive: true }));

  test("every message begins with the line and the path of its place", async () => {
    for (const { path, with: around } of places.filter((place) => place.path.length > 0)) {
      const config = around([[1]]);
      if (!isWrong(config)) continue;
      const text = `# a comment\n\n${stringify(config)}`;
      writeFileSync(file, text);
      const error: unknown = await readConfigFile(file, {}).catch((cause: unknown) => cause);
      if (!(error instanceof ConfigError)) throw new Error(`it was read: ${text}`);
      const last = path.findLast((part) => typeof part === "string") ?? "";
      for (const line of error.message.split("\n")) {
        const [, number, place] = /^.*config\.yaml:(\d+): ([^:]+): \S/.exec(line) ?? [];
        expect(place, line).toContain(last);
        expect(text.split("\n")[Number(number) - 1], line).toMatch(/^ *(- )*("?k"?|- |\w+)/);
      }
    }
  });
});
