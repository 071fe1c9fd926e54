import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { IncrementalJson } from "./incremental-json.ts";

/** As `JSON.stringify` tells two values apart, and more: the order of members, -0, own members of any name. */
function told(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(told).join()}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, member]) => `${JSON.stringify(name)}:${told(member)}`)
      .join()}}`;
  return Object.is(value, -0) ? "-0" : typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** What a reader makes of it, or that it refuses it. */
function outcome(read: () => unknown): string {
  try {
    return told(read());
  } catch {
    return "refused";
  }
}

function inChunks(bytes: Uint8Array, chunkSize: number): unknown {
  const steps = new IncrementalJson(bytes, chunkSize).read();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads it in chunks of every size. */
function expectSame(text: string | Uint8Array): void {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const wanted = outcome(() => JSON.parse(strict.decode(bytes)));
  for (let size = 1; size <= bytes.length + 1; size++) {
    const got = outcome(() => inChunks(bytes, size));
    if (got !== wanted) expect(`${size} bytes: ${got}`, String(text)).toBe(`${size} bytes: ${wanted}`);
  }
}

test.each([
  '{"a":1,"b":{"c":[1,2,3,{"d":"e"}]},"a":{"f":2}}',
  '{"__proto__":{"x":1},"constructor":{"__proto__":null},"y":1,"__proto__":[2]}',
  '{"2":"b","1":"a","x":{"2":"b","1":"a"},"0":0}',
  "[-0,0,-0.0,1e400,-1e400,1e-400,12345678901234567890,0.1,1E+2,2e-2]",
  '"\\ud83d\\ude00 \\ud800 \\udc00\\ud800 \\u0000 \\/ \\"\\\\"',
  '{"😀😀😀":"😀äöü\u2028\ufeff","\\ud83d\\ude00":"\\\\\\\\\\""}',
  '{"a long name indeed": ["a long text indeed"], "another long name":"\\"" , "":""}',
  '  \n\t[ [ ] , { } , [ [ ] ] , { "a" : { } } ]  \r\n',
  '{"name that is long" : 5, "name that is long, too" : {"deep":[]}, "name":[]}',
  "12345678901234567890",
  " true ",
  "null",
  '"x"',
  '""',
  "[]",
  "{}",
  "[[[[[[[[]]]]]]]]",
])("%s is read as JSON.parse reads it", (text) => {
  expect(outcome(() => JSON.parse(text))).not.toBe("refused");
  expectSame(text);
});

test.each([
  "",
  " ",
  "[",
  "]",
  "{",
  "}",
  "[}",
  "{]",
  "[1,2",
  "[1,2}",
  '{"a":[1,2}]',
  "[1,]",
  "[,1]",
  "[1,,2]",
  '{"a":1,}',
  '{,"a":1}',
  "1,2",
  "[],[]",
  "[][]",
  "[1][",
  "{}{}",
  "[1 2]",
  "[[1] 2]",
  "[[1] [2]]",
  '[{"a":1} "b"]',
  '["long text" 1]',
  '["long text" "long text"]',
  '[1 "long text"]',
  '["long text"[]]',
  "[-[]]",
  "[1[2]]",
  '{"a"}',
  '{"a" 1}',
  '{"a":}',
  '{"long name"}',
  '{"long name" 1}',
  '{"long name" "long name":1}',
  '{"a":1 "b":2}',
  '{"a":[1] "b":2}',
  '{"a" "long text"}',
  '{"a":"long text" "b":1}',
  '{"a":1 [2]}',
  "{1:2}",
  "{[]:1}",
  '{"a":1:2}',
  '{"long name"::2}',
  '"abc',
  '"a\\',
  '"a\\x"',
  '"a\\u12"',
  '"a\\u12',
  '"a\nb"',
  '"a long text\u0000"',
  "'a'",
  "nul",
  "[nul",
  "tru e",
  "01",
  "+1",
  "1.",
  ".5",
  "0x1",
  "NaN",
  "[Infinity]",
  "\ufeff[]",
  "[\ufeff]",
  "[1]\u0000",
  "/**/1",
])("%s is refused, as by JSON.parse", (text) => {
  expect(outcome(() => JSON.parse(text))).toBe("refused");
  expectSame(text);
});

test("bytes that are not UTF-8 are refused wherever they stand", () => {
  for (const wrong of [
    [0xff],
    [0xc3],
    [0x80],
    [0xe2, 0x82],
    [0xed, 0xa0, 0x80],
    [0xc0, 0xaf],
    [0x80, 0x80, 0x80, 0x80],
  ]) {
    for (const [before, after] of [
      ["", ""],
      ['["some text ', ' and more"]'],
      ['{"some name ', '":1}'],
      ["[1,", "]"],
    ]) {
      const bytes = [...new TextEncoder().encode(before), ...wrong, ...new TextEncoder().encode(after)];
      expectSame(new Uint8Array(bytes));
    }
  }
});

const names = fc.oneof(
  fc.constantFrom("__proto__", "a", "b", "1", "0", ""),
  fc.string({ unit: "binary", maxLength: 8 }),
);
const leaves = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.constantFrom("true", "false", "null", "-0", "1e999").map((text) => ({ text })),
);
const blanks = fc.constantFrom("", "", "", " ", "\n\t ", "\r\n");

/** A JSON text with everything that one may have: blanks anywhere, names that come twice, characters and their escapes. */
const texts: fc.Arbitrary<string> = fc.letrec<{ text: string }>((tie) => ({
  text: fc
    .tuple(
      blanks,
      fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        leaves.map((leaf) => (typeof leaf === "object" ? leaf.text : JSON.stringify(leaf))),
        fc.string({ unit: "binary", maxLength: 9 }).map(escaped),
        fc.array(tie("text"), { maxLength: 5 }).map((items) => `[${items.join()}]`),
        fc
          .array(fc.tuple(blanks, names, blanks, tie("text")), { maxLength: 5 })
          .map(
            (members) => `{${members.map(([a, name, b, text]) => a + JSON.stringify(name) + b + ":" + text).join()}}`,
          ),
      ),
      blanks,
    )
    .map((parts) => parts.join("")),
})).text;

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, "0"));
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
}

describe("for every text, in chunks of every size", () => {
  test("that is JSON", () => {
    fc.assert(fc.property(texts, (text) => void expectSame(text)));
  });

  test("that was spoiled in one place", () => {
    const chunk = fc.oneof(fc.constantFrom(...'[]{},:"\\ 0e-'), fc.string({ maxLength: 2 }));
    fc.assert(
      fc.property(texts, fc.nat(), fc.nat(3), chunk, (text, place, length, other) => {
        const at = place % (text.length + 1);
        expectSame(text.slice(0, at) + other + text.slice(at + length));
      }),
      { numRuns: 300 },
    );
  });

  test("that is any text", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...'[]{},:"\\ 1a\n\u00e9')), (parts) => void expectSame(parts.join(""))),
      {
        numRuns: 300,
      },
    );
  });
});

// If each level of nested lists were searched anew for 64 KiB, a body of 7 MB would take seconds.
test("a body of deeply nested lists is not searched once for each level", () => {
  const text = `${"[1,".repeat(900)}"${"x".repeat(70_000)}"${"]".repeat(900)}`;
  let examined = 0;
  const bytes = new Proxy(new TextEncoder().encode(text), {
    get(target, name) {
      if (typeof name === "string" && /^\d/.test(name)) examined++;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  expect(told(inChunks(bytes, 64 * 1024))).toBe(told(JSON.parse(text)));
  expect(examined / text.length).toBeLessThan(30);
});

// 30 MB of blanks held the event loop for 35 ms in one step.
test("blanks are skipped in steps", () => {
  const bytes = new TextEncoder().encode(`[${" ".repeat(100_000)}]`);
  const steps = new IncrementalJson(bytes, 1000).read();
  let count = 0;
  while (steps.next().done !== true) count++;
  expect(count).toBeGreaterThanOrEqual(100);
});
