import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileBody } from "./compile-statement.ts";
import { parseTemplate } from "./parse-template.ts";
import { TemplateSyntaxError } from "./tokenize.ts";
import { runs } from "../../../../test/support/runs.ts";

test.each<[source: string, message: string]>([
  ["{{ a", "expected '}}', got the end of the template (line 1, column 5)"],
  ["{{", "the template ends inside a tag (line 1, column 3)"],
  ["a\n{{ ) }}", "unexpected ')' (line 2, column 4)"],
  ["{{ (a] }}", "expected ')', got ']' (line 1, column 6)"],
  ["{{ a b }}", "expected '}}', got 'b' (line 1, column 6)"],
  ["{{ }}", "unexpected '}}' (line 1, column 4)"],
  ["{{ 'a }}", "the string has no end (line 1, column 4)"],
  ["{{ 'a\\x4' }}", "the escape '\\x4' is not complete (line 1, column 4)"],
  ["{{ '\\N{DASH}' }}", "escapes with a character's name (\\N) are not supported (line 1, column 4)"],
  ["{{ a ! b }}", "unexpected character '!' (line 1, column 6)"],
  ["{{ 😀 }}", "unexpected character '😀' (line 1, column 4)"],
  ["{{ ²a }}", "unexpected character '²' (line 1, column 4)"],
  ["{{ \u0301a }}", "'\u0301a' is not a name (line 1, column 4)"],
  ["{{ a.'b' }}", "expected a name or a number, got a string (line 1, column 6)"],
  ["{{ a[] }}", "'[]' needs a key (line 1, column 6)"],
  ["{{ f(a=1, b) }}", "this argument cannot follow the one before it (line 1, column 11)"],
  ["{{ a is b is c }}", "a test cannot follow a test (line 1, column 11)"],
  ["{{ {'a' 1} }}", "expected ':', got '1' (line 1, column 9)"],
  ["{# a", "the comment has no end '#}' (line 1, column 1)"],
  ["a\n\n {% raw %} b", "the raw block has no '{% endraw %}' (line 3, column 2)"],
  ["{% %}", "expected a name, got '%}' (line 1, column 4)"],
  ["{% include 'a' %}", "unknown tag 'include' (line 1, column 4)"],
  ["{% endif %}", "unknown tag 'endif' (line 1, column 4)"],
  ["{% if a %}\n{% endfor %}", "unknown tag 'endfor'; expected 'elif' or 'else' or 'endif' (line 2, column 4)"],
  ["{% for x in y %}a", "this block has no '{% endfor %}' or '{% else %}' (line 1, column 15)"],
  ["{% for x in y recursive %}{% endfor %}", "recursive loops are not supported (line 1, column 15)"],
  ["{% for 1 in y %}{% endfor %}", "this cannot be assigned to (line 1, column 8)"],
  ["{% set a.b.c = 1 %}", "expected '%}', got '.' (line 1, column 11)"],
  ["{% set true = 1 %}", "this cannot be assigned to (line 1, column 8)"],
  ["{% break %}", "'break' outside of a loop (line 1, column 4)"],
  [
    "{% for x in y %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}",
    "'continue' outside of a loop (line 1, column 35)",
  ],
  ["{% call m %}{% endcall %}", "a call block needs a call (line 1, column 9)"],
  [
    "{% macro m(a=1, b) %}{% endmacro %}",
    "'b' needs a default, as the parameter before it has one (line 1, column 18)",
  ],
])("%j is refused", (source, message) => {
  expect(refusal(source)?.message).toBe(message);
});

/** null: it is a template, and can be compiled. Any other error is thrown. */
function refusal(source: string): TemplateSyntaxError | null {
  try {
    compileBody(parseTemplate(source).body);
    return null;
  } catch (error) {
    if (error instanceof TemplateSyntaxError) return error;
    throw error;
  }
}

describe("nesting", () => {
  test.each<[what: string, nested: (depth: number) => string]>([
    ["brackets", (depth) => `{{ ${"(".repeat(depth)}1${")".repeat(depth)} }}`],
    ["lists", (depth) => `{{ ${"[".repeat(depth)}${"]".repeat(depth)} }}`],
    ["calls", (depth) => `{{ ${"f(".repeat(depth)}${")".repeat(depth)} }}`],
    ["members", (depth) => `{{ ${"a[".repeat(depth)}1${"]".repeat(depth)} }}`],
    ["not", (depth) => `{{ ${"not ".repeat(depth)}1 }}`],
    ["signs", (depth) => `{{ ${"- ".repeat(depth)}1 }}`],
    ["choices", (depth) => `{{ ${"1 if a else ".repeat(depth)}1 }}`],
    ["conditions", (depth) => `${"{% if true %}".repeat(depth)}${"{% endif %}".repeat(depth)}`],
    ["loops", (depth) => `${"{% for x in loop %}".repeat(depth)}${"{% endfor %}".repeat(depth)}`],
    ["targets", (depth) => `{% set ${"(".repeat(depth)}a${")".repeat(depth)} = 1 %}`],
  ])("of %s is taken up to a limit, and refused beyond it, not a stack overflow", (_, nested) => {
    expect(refusal(nested(150))).toBeNull();
    for (const depth of [201, 20_000]) {
      expect(() => parseTemplate(nested(depth))).toThrow(/nested more than 200 levels deep \(line 1, column \d+\)/);
    }
  });
});

test.each<[what: string, piece: string, before?: string, after?: string]>([
  ["a sum", "+ 1", "{{ 1 ", " }}"],
  ["a comparison", "< 1", "{{ 1 ", " }}"],
  ["a condition", "or b ", "{{ a ", " }}"],
  ["a chain", ".b", "{{ a", " }}"],
  ["calls", "()", "{{ a", " }}"],
  ["filters", "| string ", "{{ a ", " }}"],
  ["strings", "'a' ", "{{ ", " }}"],
  ["a list", "1, ", "{{ [", "] }}"],
  ["branches", "{% elif b %}", "{% if a %}", "{% endif %}"],
  ["statements", "{% set a = 1 %}\n"],
  ["comments", "{# a #}"],
  ["spaces", " ", "{{", "}}1"],
  ["open braces", "{"],
  ["open comments", "{#"],
  ["open raw blocks", "{% raw %}"],
  ["open strings", "{{ 'a"],
  ["digits", "1", "{{ ", " }}"],
  ["underscores", "1_", "{{ ", " }}"],
  ["escapes", "\\n", "{{ '", "' }}"],
])("%s of any length takes time in proportion, and no stack", (_, piece, before = "", after = "") => {
  // CPU time, as the machine may be busy with other things.
  const time = (count: number): number => {
    const source = before + piece.repeat(count) + after;
    const start = process.cpuUsage();
    refusal(source);
    return process.cpuUsage(start).user / 1000;
  };
  time(2_000);
  const short = Math.min(time(2_000), time(2_000), time(2_000));
  // Fifty times as long: quadratic work would take 2,500 times as long, which is seconds.
  expect(Math.min(time(100_000), time(100_000))).toBeLessThan(200 * short + 500);
});

test("any row of tokens is parsed, or refused with the one error", () => {
  const pieces = fc.constantFrom(
    ..."{{ }} {% %} {# #} - + ( ) [ ] { } , . : | = == ~ ** 'a' 1 1.5 a if else elif endif for in endfor set endset not is macro endmacro raw endraw".split(
      " ",
    ),
    " ",
    "\n",
    "{% if a %}",
    "{% for a in b %}",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (all) => {
      const source = all.join(" ");
      const line = refusal(source)?.line ?? 1;
      expect(line).toBeGreaterThan(0);
      expect(line).toBeLessThanOrEqual(source.split("\n").length);
    }),
    runs(500),
  );
});
