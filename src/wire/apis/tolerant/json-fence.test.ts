import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type FencePart, JsonFence, jsonOf } from "./json-fence.ts";

interface Read {
  readonly text: string;
  readonly reasoning: string;
  readonly hasOtherText: boolean;
}

/** Reads chunks. `max`: the most characters that were held back. */
function read(chunks: readonly string[]): Read {
  const fence = new JsonFence();
  const parts = [...chunks.flatMap((chunk) => fence.push(chunk)), ...fence.end()];
  const joined = (type: FencePart["type"]): string =>
    parts.map((part) => (part.type === type ? part.text : "")).join("");
  return { text: joined("text"), reasoning: joined("reasoning"), hasOtherText: fence.hasOtherText };
}

const fences = fc.constantFrom("```", "````", "`````");
const languages = fc.constantFrom("", "json", "JSON", " json", "json5", "json title=x");
const spaces = fc.constantFrom("", " ", "\n", "\r\n", "\n\n  ");
/** Objects and lists whose strings have fences in them. */
const values = fc
  .jsonValue({ maxDepth: 3 })
  .chain((value) =>
    fc.constantFrom<unknown[]>(
      [value],
      { value },
      { code: "```json\n{}\n```", value },
      { "`": ["```", value, "\n```\n"] },
    ),
  );
const chunkings = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 });

/** The text in chunks of these lengths, again and again. */
function inChunks(text: string, lengths: readonly number[]): string[] {
  const chunks: string[] = [];
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    chunks.push(text.slice(at, at + length));
    at += length;
  }
  return chunks;
}

/**
 * Clients got the fence with the JSON and could not parse it, although `check` called the same answer an error: there was no rule that
 * both shared, and no test that demanded JSON of a model that writes Markdown.
 */
describe("for every JSON value, in every fence, in chunks of every length", () => {
  const fenced = fc.tuple(fences, languages, values, spaces, spaces, fc.constantFrom(0, 1, 2));

  test("what is left is the JSON", () => {
    fc.assert(
      fc.property(
        fenced,
        chunkings,
        fc.boolean(),
        ([ticks, language, value, before, after, indent], lengths, hasMark) => {
          const json = JSON.stringify(value, null, indent);
          const text = `${hasMark ? "\uFEFF" : ""}${before}${ticks}${language}\n${json}\n${ticks}${after}`;
          expect(read(inChunks(text, lengths))).toEqual({ text: json, reasoning: "", hasOtherText: false });
          expect(jsonOf(text)).toMatchObject({ text: json, isJson: true, hasRemoved: true, hasOtherText: false });
        },
      ),
    );
  });

  test("JSON without a fence is not changed", () => {
    fc.assert(
      fc.property(values, spaces, chunkings, fc.constantFrom(0, 2), (value, space, lengths, indent) => {
        const text = space + JSON.stringify(value, null, indent) + space;
        expect(read(inChunks(text, lengths))).toEqual({ text, reasoning: "", hasOtherText: false });
        expect(jsonOf(text)).toMatchObject({ text, isJson: true, hasRemoved: false });
      }),
    );
  });

  test("any text: the chunks do not matter, and without a fence nothing is lost", () => {
    const pieces = fc.constantFrom(
      "`",
      "```",
      "json",
      "\n",
      " ",
      "{",
      "}",
      '"',
      "\\",
      "a",
      "1",
      "<think>",
      "</think>",
      "\uFEFF",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), chunkings, (list, lengths) => {
        const text = list.join("");
        const whole = read([text]);
        expect(read(inChunks(text, lengths))).toEqual(whole);
        if (!/[`<\uFEFF]/.test(text)) expect(whole.text).toBe(text);
      }),
    );
  });
});

const json = '{"shelf": 3}';
test.each<[string, string, Read["text"], boolean]>([
  ["on the line of the fence", '```json{"shelf": 3}```', json, false],
  ["without a closing fence, as a stop string leaves it", `\`\`\`json\n${json}\n`, `${json}\n`, false],
  ["a cut closing fence", `\`\`\`json\n${json}\n\`\``, json, false],
  ["cut JSON", '```json\n{"shelf": "three', '{"shelf": "three', false],
  ["malformed JSON, whose string has no end", '```json\n{"shelf": "3}\n```', '{"shelf": "3}', false],
  ["a list of lines", '```json\n{"a":1}\n{"a":2}\n```', '{"a":1}\n{"a":2}', true],
  ["text after the fence", `\`\`\`json\n${json}\n\`\`\`\nAnything else?`, json, true],
  ["a number", "```\n12.5\n```", "12.5", false],
  ["no JSON", "I cannot do that.", "I cannot do that.", true],
  ["other text around plain JSON", `Here: ${json} Done.`, `Here: ${json} Done.`, true],
  ["code of a line", "`x`", "`x`", true],
])("%s", (_, text, expected, hasOtherText) => {
  expect(read([text])).toEqual({ text: expected, reasoning: "", hasOtherText });
  expect(read([...text])).toEqual({ text: expected, reasoning: "", hasOtherText });
});

test("reasoning in a tag before the fence, and before plain JSON", () => {
  for (const rest of [`\`\`\`json\n${json}\n\`\`\``, json]) {
    const text = `<think>Shelves <b>first</b>.</think>${rest}`;
    const expected = { text: json, reasoning: "Shelves <b>first</b>.", hasOtherText: false };
    expect(read([text])).toEqual(expected);
    expect(read([...text])).toEqual(expected);
  }
});

test("of several fences none is chosen, and the only one of a text is", () => {
  const block = `\`\`\`json\n${json}\n\`\`\``;
  expect(jsonOf(`Here it is:\n${block}\nAnything else?`)).toMatchObject({
    text: json,
    isJson: true,
    hasOtherText: true,
  });
  const two = `${block}\nOr:\n${block}`;
  expect(jsonOf(two)).toMatchObject({ text: two, isJson: false, hasOtherText: true });
  expect(jsonOf("See:\n```python\nprint(1)\n```")).toMatchObject({ isJson: false, hasOtherText: true });
});

test("nothing is held back without end, and each character is read a few times at most", () => {
  for (const unit of [
    " ",
    "\n",
    "`",
    "``",
    "\n`",
    "<",
    "<think>",
    "</think>",
    "```\n",
    '"',
    "\\",
    "{",
    "\uFEFF",
    "\n``` ",
  ]) {
    const fence = new JsonFence();
    let sent = 0;
    const text = unit.repeat(20_000);
    for (const character of text) for (const part of fence.push(character)) sent += part.text.length;
    const rest = fence.end().reduce((sum, part) => sum + part.text.length, 0);
    expect(rest).toBeLessThanOrEqual(1024);
    expect(sent + rest).toBeLessThanOrEqual(text.length);
  }
});
