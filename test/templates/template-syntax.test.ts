import { existsSync, readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { parseTemplate } from "../../src/text/templates/jinja/parse-template.ts";
import { TemplateSyntaxError } from "../../src/text/templates/jinja/tokenize.ts";
import { askJinja, hasJinja, type JinjaResult } from "./ask-jinja.ts";
import { times } from "../support/runs.ts";

// Published templates with something in them changed: each is parsed, or refused with one kind of error that says where. Where
// Python's Jinja is installed, it must accept and refuse the same ones.

const folder = new URL("../../../shared/chat-templates/", import.meta.url);
const files = existsSync(folder) ? readdirSync(folder) : [];

if (files.length === 0) console.log("skipped: no ../shared/chat-templates to change something in");

const pieces = fc.constantFrom(
  ..."{{ }} {% %} {# #} {%- -%} {{- -}} {%+ +%} ( ) [ ] { } ' \" \\ | . .. , : :: = == != < >= + - ~ * ** / // % ; ! é 0 1.5 1e3 0x1f 1_0 007".split(
    " ",
  ),
  ..."if else elif endif for in not is and or none true recursive set endset macro endmacro call filter do break generation raw endraw loop x".split(
    " ",
  ),
  "{% raw %}",
  "{% endraw %}",
  "{% endif %}",
  "{% endfor %}",
  " ",
  "\n",
  "\r\n",
);

/** What is done to a source, at places that are fractions of its length. */
const mutation = fc.oneof(
  fc.record({ kind: fc.constant("insert" as const), at: fc.double({ min: 0, max: 1, noNaN: true }), text: pieces }),
  fc.record({
    kind: fc.constant("replace" as const),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.integer({ min: 1, max: 12 }),
    text: fc.oneof(pieces, fc.constant("")),
  }),
  fc.record({ kind: fc.constant("cut" as const), at: fc.double({ min: 0, max: 1, noNaN: true }) }),
);
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutated(source: string, change: Mutation): string {
  const at = Math.floor(change.at * source.length);
  if (change.kind === "cut") return source.slice(0, at);
  const end = at + (change.kind === "replace" ? change.length : 0);
  return `${source.slice(0, at)} ${change.text} ${source.slice(end)}`;
}

/** null: it is a template. */
function refusal(source: string): TemplateSyntaxError | null {
  try {
    parseTemplate(source);
    return null;
  } catch (error) {
    if (error instanceof TemplateSyntaxError) return error;
    throw error;
  }
}

function changesOf(file: string): string[] {
  const source = readFileSync(new URL(file, folder), "utf8");
  const changes = fc.array(mutation, { minLength: 1, maxLength: 2 });
  return fc.sample(changes, { numRuns: times(10), seed: 11 }).map((all) => all.reduce(mutated, source));
}

describe.skipIf(files.length === 0)("changed templates (skipped without ../shared)", () => {
  const sources = new Map(files.map((file) => [file, changesOf(file)]));
  /** What Jinja says of all changed templates, in their order: one process for each file took minutes. */
  let results: readonly JinjaResult[] = [];
  beforeAll(() => {
    if (!hasJinja) return;
    results = askJinja([...sources.values()].flat().map((source) => ({ source, jobs: ["null"] }))).flat();
  });

  test.each(files)("%s", (file) => {
    const changed = sources.get(file) ?? [];
    const refusals = changed.map((source) => {
      const error = refusal(source);
      if (error !== null) {
        const line = source.split(/\r\n?|\n/)[error.line - 1] ?? "";
        expect(error.message).toContain(`(line ${error.line}, column ${error.column})`);
        expect(error.column).toBeLessThanOrEqual(line.length + 1);
      }
      return error;
    });
    if (!hasJinja) return;
    const first = files.slice(0, files.indexOf(file)).reduce((sum, one) => sum + (sources.get(one)?.length ?? 0), 0);
    const theirs = results.slice(first, first + changed.length);
    expect(theirs).toHaveLength(changed.length);
    const different = theirs.flatMap(({ error }, index) => {
      const ours = refusals[index]?.message;
      return (error === undefined) === (ours === undefined) ? [] : [{ ours, error }];
    });
    expect(different).toEqual([]);
  });
});
