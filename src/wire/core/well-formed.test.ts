import fc from "fast-check";
import { expect, test } from "vitest";
import { accumulate } from "./accumulate.ts";
import type { GenerationEvent } from "./events.ts";
import { objectIn } from "./json.ts";
import { WellFormedEvents, wellFormed } from "./well-formed.ts";

// Halves of surrogate pairs were sent as they came: an upstream, a program or an AI SDK model that cuts its text between two UTF-16 units
// made the clients of each API show two wrong characters, or fail. The texts of the tests were cut at characters.

const loneSurrogate = /\p{Surrogate}/u;
const unit = fc.constantFrom("a", " ", "é", "\ud83d", "\ude00", "😀", "👩‍🚀");
const words = fc.array(unit, { maxLength: 6 }).map((units) => units.join(""));

function deltas(choice: number): fc.Arbitrary<GenerationEvent> {
  const logprobs = fc.option(
    fc.array(words.map((token) => ({ token, logprob: -1, bytes: null, top: [{ token, logprob: -2, bytes: null }] }))),
    { nil: undefined },
  );
  return fc.oneof(
    fc.record({ type: fc.constant("text-delta" as const), choice: fc.constant(choice), text: words, logprobs }),
    fc.record({ type: fc.constant("reasoning-delta" as const), choice: fc.constant(choice), text: words }),
    fc.record({
      type: fc.constant("reasoning-delta" as const),
      choice: fc.constant(choice),
      text: words,
      summary: fc.nat(1),
    }),
    fc.record({ type: fc.constant("refusal-delta" as const), choice: fc.constant(choice), text: words }),
    fc.record({
      type: fc.constant("tool-call-delta" as const),
      choice: fc.constant(choice),
      index: fc.nat(1),
      arguments: words,
    }),
  ) as fc.Arbitrary<GenerationEvent>;
}

const other: fc.Arbitrary<GenerationEvent> = fc.oneof(
  fc.constant<GenerationEvent>({ type: "tokens", choice: 0, tokens: [1] }),
  words.map((name): GenerationEvent => ({ type: "extra", place: "chunk", value: { [name]: [name] } })),
  words.map((name): GenerationEvent => ({ type: "tool-call-start", choice: 0, index: 0, id: "c", name })),
);
const events = fc.array(fc.oneof({ weight: 4, arbitrary: fc.oneof(deltas(0), deltas(1)) }, other), { maxLength: 20 });
const end: GenerationEvent = { type: "end", end: { kind: "done" } };

/** The texts of a choice in their order, each with its kind. */
function textsOf(all: readonly GenerationEvent[], choice: number): string[] {
  const texts: string[] = [];
  let last = "";
  for (const event of all) {
    if (!("choice" in event) || event.choice !== choice || event.type === "tokens") {
      if (!("choice" in event) || event.choice === undefined) last = "";
      continue;
    }
    const text = "arguments" in event ? event.arguments : "text" in event ? event.text : null;
    const key =
      text === null ? "" : [event.type, "index" in event && event.index, "summary" in event && event.summary].join();
    if (text !== null && text !== "") {
      if (key !== last) texts.push("");
      texts.push(`${texts.pop() ?? ""}${text}`);
      last = key;
    } else if (text === null || key !== last) last = "";
  }
  return texts;
}

test("for every cut of every text, all members are well-formed, and the texts of each choice are the same but for lone halves", () => {
  fc.assert(
    fc.property(events, (all) => {
      const reader = new WellFormedEvents();
      const read = [...all, end].flatMap((event) => reader.read([event]));
      expect(JSON.stringify(read)).not.toMatch(/\\ud[89a-f]/i);
      expect(loneSurrogate.test(JSON.stringify(read))).toBe(false);
      for (const choice of [0, 1]) {
        const shown = textsOf(all, choice).map((text) => text.replace(/\p{Surrogate}/gu, "\ufffd"));
        expect(textsOf(read, choice)).toEqual(shown);
      }
      expect(new WellFormedEvents().read([...all, end])).toEqual(read);
    }),
    { numRuns: 500 },
  );
});

test("events without halves are passed on as they are", () => {
  const batch: GenerationEvent[] = [{ type: "text-delta", choice: 0, text: "a 😀" }, end];
  expect(new WellFormedEvents().read(batch)).toBe(batch);
  const value = { a: ["😀", 1, null], b: { c: "d" } };
  expect(wellFormed(value)).toBe(value);
});

test("an emoji whose halves come in two deltas is one character, also between the tokens of another choice", () => {
  const reader = new WellFormedEvents();
  const text = (choice: number, words: string): GenerationEvent => ({ type: "text-delta", choice, text: words });
  expect(reader.read([text(0, "a\ud83d")])).toEqual([text(0, "a")]);
  expect(reader.read([text(1, "x"), { type: "usage", usage: { promptTokens: 1, completionTokens: 1 } }])).toHaveLength(
    2,
  );
  expect(reader.read([text(0, "\ude00b")])).toEqual([text(0, "😀b")]);
  expect(reader.read([text(0, "\ud83d"), end])).toEqual([text(0, "\ufffd"), end]);
});

test("200,000 choices that end in a half are read in linear time", () => {
  const reader = new WellFormedEvents();
  for (let choice = 0; choice < 200_000; choice++) reader.read([{ type: "text-delta", choice, text: "\ud83d" }]);
  expect(accumulate(reader.read([end])).choices).toHaveLength(200_000);
});

test("the arguments of a call that are read as an object have well-formed texts, and are not nested too deeply to be written", () => {
  expect(objectIn('{"a":"\\ud83d","b":["\\ud83d\\ude00"]}')).toEqual({ a: "\ufffd", b: ["😀"] });
  expect(objectIn(`${'{"a":'.repeat(900)}1${"}".repeat(900)}`)).toBeDefined();
  expect(objectIn(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)).toBeUndefined();
  expect(objectIn(`{"a":"${"{[".repeat(100_000)}"}`)).toBeDefined();
  expect([objectIn("[]"), objectIn("1"), objectIn("{")]).toEqual([undefined, undefined, undefined]);
});
