import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs as tries, times } from "../../../../test/support/runs.ts";
import { captureOf, doubles } from "../../../../test/upstream/double-server.ts";
import { orderViolation } from "../../../../test/upstream/legal-order.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { chatReader } from "../chat/read.ts";
import { completionReader } from "../completions/read.ts";
import type { EventReader } from "../source-port.ts";
import type { FrameSink } from "../sse/frame-reader.ts";
import type { AnswerReaderOptions } from "../source-port.ts";

// A reader matches most chunks of a stream against one that it has parsed ("known chunks"). The tests for broken streams used streams too
// short for that, and those for known chunks used exact streams, so neither saw that the two ways gave different events: "null" as a
// fragment vanished wherever the fast path was not taken.

/** Counts the chunks that took the fast path: a property over streams that never take it would say nothing. */
let fastChunks = 0;
/** Counts how often chunks that follow a known one were read with it. */
let runs = 0;

type Api = "chat" | "completions";
type Reader = (options: AnswerReaderOptions) => EventReader & Required<Pick<FrameSink, "take">>;
const create: Readonly<Record<Api, Reader>> = { chat: chatReader, completions: completionReader };

/** A reader that parses every chunk. */
function slow(api: Api): Reader {
  return (options) => Object.assign(create[api](options), { take: () => -1 });
}

/** A reader as servers use it. */
function fast(api: Api): Reader {
  return (options) => {
    const reader = create[api](options);
    const take = reader.take.bind(reader);
    return Object.assign(reader, {
      take(text: string, start: number, end: number): number {
        const last = take(text, start, end);
        if (last !== -1) fastChunks++;
        if (last > end) runs++;
        return last;
      },
    });
  };
}

interface Read {
  readonly events: readonly GenerationEvent[];
  readonly repairs: readonly unknown[];
}

/** `keepsPlaces`: the places of repairs, for which each chunk is read alone. */
function read(open: Reader, pieces: Iterable<string | Uint8Array>, keepsPlaces = true): Read {
  let made = 0;
  const reader = open({ newCallId: () => `call_made_${made++}` });
  const places = keepsPlaces ? reader.repairs.keepPlaces() : [];
  const events: GenerationEvent[] = [];
  for (const piece of pieces) events.push(...reader.push(piece));
  events.push(...reader.end());
  return { events, repairs: [...reader.repairs.list(), ...places] };
}

/** Reads a stream in both ways, whole and in the pieces that `cuts` make of its bytes. All must give the same events and repairs. */
function expectSame(api: Api, stream: string, cuts: readonly number[] = []): readonly GenerationEvent[] {
  const expected = read(slow(api), [stream]);
  expect(read(fast(api), [stream])).toEqual(expected);
  expect(read(fast(api), [stream], false)).toEqual(read(slow(api), [stream], false));
  if (cuts.length > 0) {
    const pieces = cutAt(stream, cuts);
    expect(read(fast(api), pieces).events).toEqual(expected.events);
    expect(read(fast(api), pieces, false).events).toEqual(expected.events);
    expect(read(slow(api), pieces).events).toEqual(expected.events);
  }
  expect(orderViolation(expected.events)).toBeNull();
  return expected.events;
}

/** `cuts`: places in the bytes, each between 0 (the beginning) and 1 (the end). */
function cutAt(stream: string, cuts: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(stream);
  const places = [...cuts.map((cut) => Math.round(cut * bytes.length)), bytes.length].toSorted((a, b) => a - b);
  let from = 0;
  return places.map((to) => bytes.subarray(from, (from = to)));
}

const someCuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });

/** What varies from chunk to chunk, beside its delta. */
interface Envelope {
  readonly id: string | undefined;
  readonly object: string | undefined;
  readonly created: number | undefined;
  readonly usage: unknown;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly ending: string;
}

const sometimes = <Value>(usual: Value, ...others: Value[]): fc.Arbitrary<Value> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(usual, ...others) });

const envelope: fc.Arbitrary<Envelope> = fc.record({
  id: sometimes<string | undefined>("chatcmpl-1", "chatcmpl-2", undefined),
  object: sometimes<string | undefined>("chat.completion.chunk", "chat.completion", undefined),
  created: sometimes<number | undefined>(1_760_000_000, 1_760_000_001, undefined),
  usage: sometimes<unknown>(undefined, null, { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }),
  extra: sometimes<Readonly<Record<string, unknown>>>({}, { provider: "A" }, { provider: "B" }, { obfuscation: "x1" }),
  // The last ones: no blank line, a further line of data, a name, and a comment behind the data.
  ending: sometimes(
    "\n\n",
    "\r\n\r\n",
    "\n",
    "\ndata: null\n\n",
    "\nevent: error\n\n",
    "\nevent: x\n\n",
    "\n: ping\n\n",
  ),
});

function chunk(choices: unknown, { id, object, created, usage, extra, ending }: Envelope): string {
  return `data: ${JSON.stringify({ id, object, created, model: "m", choices, usage, ...extra })}${ending}`;
}

const usualEnvelope: Envelope = {
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  usage: undefined,
  extra: {},
  ending: "\n\n",
};

/** Pieces of JSON as tokenizers cut it, the dull ones among them. */
const fragmentText = fc.constantFrom(
  ...'null true false 0 -1.5 { } "a" : , " \\ [ ] nul l n {"a":1} {"a": "null" {} None x é'.split(" "),
  "",
  " ",
  "\n",
);

const delta = fc.oneof(
  fc.record({ content: fragmentText }),
  fc.record({ reasoning_content: fragmentText }),
  fc.record({ reasoning: fragmentText, content: fc.constantFrom("", "a") }),
  fc.record({ role: fc.constant("assistant"), content: fragmentText }),
  fc.record({ content: fragmentText, note: fc.constantFrom("a", "b") }),
  fc.constant({}),
  {
    weight: 6,
    arbitrary: fc
      .record({
        index: sometimes<unknown>(0, 1, 2, undefined),
        id: sometimes<unknown>(undefined, "a", "b", ""),
        name: sometimes<unknown>(undefined, "f", "g", "", null),
        text: fc.oneof({ weight: 6, arbitrary: fragmentText }, fc.constantFrom<unknown>(null, 1, true, { a: null })),
        kind: sometimes("function", "custom"),
      })
      .map(({ index, id, name, text, kind }) => ({
        tool_calls: [
          kind === "custom"
            ? { index, id, type: "custom", custom: { name, input: text } }
            : { index, id, function: { name, arguments: text } },
        ],
      })),
  },
);

const choice = fc.record({
  index: sometimes<unknown>(0, 1, undefined),
  delta,
  finish_reason: sometimes<unknown>(null, "stop", "tool_calls", "length", undefined),
});

const chatStream = fc
  .array(fc.tuple(fc.oneof({ weight: 12, arbitrary: choice.map((one) => [one]) }, fc.constant([])), envelope), {
    minLength: 1,
    maxLength: 14,
  })
  // Each chunk several times, also in succession, so that it is known when it comes again.
  .chain((list) =>
    fc.array(fc.tuple(fc.constantFrom(...list), fc.integer({ min: 1, max: 4 })), { minLength: 2, maxLength: 20 }),
  )
  .map((list) => list.flatMap(([one, times]) => Array<typeof one>(times).fill(one)))
  .map((list) => {
    const open = { index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } };
    const first = chunk(
      [{ index: 0, delta: { role: "assistant", tool_calls: [open] }, finish_reason: null }],
      usualEnvelope,
    );
    return `${first}${list.map(([choices, around]) => chunk(choices, around)).join("")}data: [DONE]\n\n`;
  });

describe("the fast path and the slow path of a chat reader give the same events and repairs", () => {
  test("for generated streams and every split", () => {
    fastChunks = runs = 0;
    fc.assert(
      fc.property(chatStream, someCuts, (stream, cuts) => {
        expectSame("chat", stream, cuts);
      }),
      tries(300),
    );
    expect(fastChunks).toBeGreaterThan(times(200));
    expect(runs).toBeGreaterThan(times(200));
  });

  test.each<[string, string]>([
    ["an extra that comes and goes", ["A", "A", "B", "A"].map((provider) => textChunk({}, { provider })).join("")],
    [
      "a fragment of the first call after the second one began",
      callChunk(0, "", "a", "f") +
        callChunk(0, '{"x":') +
        callChunk(0, "1") +
        callChunk(0, "}") +
        callChunk(1, '{"y"', "b", "g") +
        callChunk(0, " "),
    ],
    ["an event whose name follows its data", `${textChunk()}${textChunk()}${textChunk().trimEnd()}\nevent: error\n\n`],
    ["an event whose data has a second line", `${textChunk()}${textChunk()}${textChunk().trimEnd()}\ndata: x\n\n`],
    ["no blank line between events", `${textChunk()}${textChunk()}${textChunk().trimEnd()}\n${textChunk()}`],
  ])("%s", (_, stream) => {
    expectSame("chat", textChunk({ role: "assistant" }) + stream);
  });
});

function textChunk(delta: object = {}, extra: Readonly<Record<string, unknown>> = {}): string {
  return chunk([{ index: 0, delta: { ...delta, content: "a" }, finish_reason: null }], { ...usualEnvelope, extra });
}

function callChunk(index: number, text: string, id?: string, name?: string): string {
  const call = { index, id, function: { name, arguments: text } };
  return chunk([{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }], usualEnvelope);
}

describe("arguments arrive as the source sent them, however they are cut and whatever makes each chunk differ", () => {
  /** What keeps a reader from taking the fast path, or from learning it. */
  const variations: readonly [string, (at: number) => Partial<Envelope> & { readonly id?: string }][] = [
    ["nothing else", () => ({})],
    ["usage in every chunk", (at) => ({ usage: { prompt_tokens: 5, completion_tokens: at, total_tokens: 5 + at } })],
    ["a created that changes", (at) => ({ created: 1_760_000_000 + at })],
    ["an id that changes", (at) => ({ id: `chatcmpl-${at}` })],
    ["no object", () => ({ object: undefined })],
  ];
  const jsonPieces = fc
    .tuple(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
      fc.constantFrom(undefined, 1),
      fc.array(fc.nat(), { maxLength: 12 }),
      fc.boolean(),
    )
    .map(([object, indent, cuts, byToken]) => {
      const text = JSON.stringify(object, null, indent);
      // As tokenizers cut: a word, a number or a sign each.
      if (byToken) return text.match(/\w+|\s+|[^\w\s]/gu) ?? [text];
      const places = [...new Set(cuts.map((cut) => cut % (text.length + 1))), text.length].toSorted((a, b) => a - b);
      let from = 0;
      return places.map((to) => text.slice(from, (from = to)));
    });

  test.each(variations)("%s", (_, vary) => {
    const property = fc.property(jsonPieces, fc.boolean(), fc.boolean(), someCuts, (pieces, isCustom, hasId, cuts) => {
      const member = isCustom ? "custom" : "function";
      const input = isCustom ? "input" : "arguments";
      const stream = ["", ...pieces].map((text, at) => {
        const header = at === 0 ? { type: member, id: "a", [member]: { name: "f", [input]: text } } : {};
        const id = hasId ? { id: "a" } : {};
        const call = {
          index: 0,
          ...id,
          ...(at > 0 && isCustom && { type: member }),
          [member]: { [input]: text },
          ...header,
        };
        const delta = { ...(at === 0 && { role: "assistant" }), tool_calls: [call] };
        return chunk([{ index: 0, delta, finish_reason: null }], { ...usualEnvelope, ...vary(at) });
      });
      const end = chunk([{ index: 0, delta: {}, finish_reason: "tool_calls" }], usualEnvelope);
      const events = expectSame("chat", `${stream.join("")}${end}data: [DONE]\n\n`, cuts);
      const calls = accumulate(events).choices[0]?.toolCalls;
      expect(calls).toMatchObject([{ name: "f", arguments: pieces.join(""), status: "succeeded" }]);
    });
    fc.assert(property, {
      ...tries(40),
      examples: [
        [['{"a":1', ',"v":', "null", "}"], false, false, []],
        [["a", "null", "b"], true, false, []],
        [["null"], true, false, []],
        [['{"v":', "null", "}"], false, true, []],
      ],
    });
  });
});

/** A change that a proxy or a broken server makes to a line, or to the lines around it. */
const mutations: readonly ((line: string, luck: number) => string)[] = [
  () => "",
  (line) => `${line}\n\n${line}`,
  (line) => `: ping\n\n${line}`,
  (line) => `${line}\nevent: error`,
  (line) => `${line}\n${line}`,
  (line) => `${line}\r`,
  (line, luck) => line.slice(0, Math.floor(luck * line.length)),
  (line) => line.replace(/"content":"[^"]*"/, '"content":null'),
  (line) => line.replace(/"arguments":"[^"]*"/, '"arguments":"null"'),
  (line) => line.replace(/"arguments":"[^"]*"/, '"arguments":null'),
  (line) => line.replace(/"(content|text|arguments)":"[^"]*"/, '"$1":""'),
  (line) => line.replace(/"index":0/, '"index":1'),
  (line) => line.replace(/"created":\d+/, '"created":1'),
  (line) => line.replace(/"id":"[^"]*"/, '"id":""'),
  (line) => line.replace(/"object":"[^"]*",/, ""),
  (line) => line.replace(/"finish_reason":null/, '"finish_reason":"stop"'),
  (line) => line.replace(/\}\s*$/, ',"provider":"x"}'),
  (line) => line.replace(/"usage":null/, '"usage":{"prompt_tokens":1,"completion_tokens":2}'),
];

function expectSameWhenMutated(sources: readonly (readonly [Api, string])[], numRuns: number): void {
  const changes = fc.array(
    fc.tuple(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), fc.nat(mutations.length - 1)),
    { minLength: 1, maxLength: 5 },
  );
  const property = fc.property(fc.constantFrom(...sources), changes, someCuts, ([api, stream], list, cuts) => {
    const lines = stream.split("\n");
    for (const [place, mutation] of list) {
      const at = Math.floor(place * lines.length);
      lines[at] = mutations[mutation]?.(lines[at] ?? "", place) ?? "";
    }
    expectSame(api, lines.join("\n"), cuts);
  });
  fc.assert(property, tries(numRuns));
}

const captures = doubles.map((double): readonly [Api, string] => ["chat", captureOf(double)]);

test("the same for the doubles of servers, as they are and changed", () => {
  for (const [api, stream] of captures) expectSame(api, stream, [0.2, 0.5, 0.8]);
  expectSameWhenMutated(captures, 125);
});

const recorded = test.skipIf(!hasRecordings("whose answers are read both ways"));

recorded(
  "the same for recordings of OpenAI, as they are and changed",
  () => {
    const sources = (["chat", "completions"] as const).flatMap((api) =>
      readRecordings(`${api}-stream`).map(({ body }): readonly [Api, string] => [api, body]),
    );
    expect(sources.length).toBeGreaterThan(150);
    fastChunks = 0;
    for (const [api, stream] of sources) expectSame(api, stream);
    expect(fastChunks).toBeGreaterThan(10_000);
    expectSameWhenMutated(
      sources.filter(([, stream]) => stream.length < 20_000),
      125,
    );
  },
  60_000,
);
