import fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { callProgress, parseArguments } from "./call-progress.ts";
import type { EventSource, ProgressEvent } from "./call-progress.ts";

async function progress(events: EventSource, incremental?: boolean): Promise<ProgressEvent[]> {
  const told: ProgressEvent[] = [];
  for await (const event of callProgress(events, incremental === undefined ? {} : { incremental })) told.push(event);
  return told;
}

const start = (index: number, choice = 0): GenerationEvent => ({
  type: "tool-call-start",
  choice,
  index,
  id: `call_${index}`,
  name: "f",
});
const delta = (index: number, text: string, choice = 0): GenerationEvent => ({
  type: "tool-call-delta",
  choice,
  index,
  arguments: text,
});
const end = (index: number, choice = 0): GenerationEvent => ({
  type: "tool-call-end",
  choice,
  index,
  status: "succeeded",
});

test("a call is started, in progress, succeeded: with its text and what it says", async () => {
  const where = { type: "tool-call", choice: 0, index: 0 };
  expect(await progress([start(0), delta(0, '{"n":'), delta(0, "1.0}"), end(0)])).toEqual([
    { ...where, status: "started", id: "call_0", name: "f" },
    { ...where, status: "in-progress", delta: '{"n":' },
    { ...where, status: "in-progress", delta: "1.0}" },
    {
      ...where,
      status: "succeeded",
      call: { id: "call_0", name: "f", arguments: '{"n":1.0}' },
      value: { n: 1 },
    },
  ]);
});

test("a failed call has its raw text, and keeps its name and id", async () => {
  const failed: GenerationEvent = { type: "tool-call-end", choice: 0, index: 0, status: "failed", raw: "<call>{x" };
  expect((await progress([start(0), delta(0, "{x"), failed])).at(-1)).toEqual({
    type: "tool-call",
    choice: 0,
    index: 0,
    status: "failed",
    call: { id: "call_0", name: "f", arguments: "{x" },
    raw: "<call>{x",
  });
});

test.each<GenerationEvent[]>([
  [{ type: "finish", choice: 0, reason: "length" }],
  [{ type: "end", end: { kind: "client-gone" } }],
  [],
])("a call that is cut off has failed, and is told before %j", async (...last) => {
  const told = await progress([start(0), delta(0, '{"a'), ...last], false);
  expect(told.map(({ type }) => type)).toEqual(["tool-call", ...last.map(({ type }) => type)]);
  expect(told[0]).toMatchObject({ status: "failed", raw: '{"a' });
});

test("for every interleaving of choices: not incremental, each call is one event, and the pieces are those of the incremental way", async () => {
  const piece = fc.stringMatching(/^[a-z]{0,4}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(piece, { maxLength: 4 }), { maxLength: 4 }),
      fc.infiniteStream(fc.nat(1)),
      async (calls, sides) => {
        // Two choices with the same calls, shuffled into one another.
        const of = (choice: number): GenerationEvent[] =>
          calls.flatMap((pieces, i) => [
            start(i, choice),
            ...pieces.map((text) => delta(i, text, choice)),
            end(i, choice),
          ]);
        const queues = [of(0), of(1)];
        const events: GenerationEvent[] = [];
        while (queues.some(({ length }) => length > 0)) {
          const queue = queues[sides.next().value];
          const event = queue?.shift() ?? queues[0]?.shift() ?? queues[1]?.shift();
          if (event) events.push(event);
        }
        const whole = await progress(events, false);
        expect(whole).toHaveLength(calls.length * 2);
        const pieces = new Map<string, string>();
        for (const event of await progress([events])) {
          if (event.type !== "tool-call" || event.status !== "in-progress") continue;
          const key = `${event.choice}.${event.index}`;
          pieces.set(key, (pieces.get(key) ?? "") + event.delta);
        }
        for (const event of whole) {
          if (event.type !== "tool-call" || event.status !== "succeeded") throw new Error("not succeeded");
          expect(event.call.arguments).toBe(pieces.get(`${event.choice}.${event.index}`) ?? "");
        }
      },
    ),
  );
});

const call = (text: string): { id: string; name: string; arguments: string } => ({
  id: "call_1",
  name: "f",
  arguments: text,
});

test("what the text says and the text itself both survive: zeros, falses, empty strings, key order, how a number is written", () => {
  const text = '{"b":0,"a":false,"":"","n":1.50}';
  expect(parseArguments(call(text))).toEqual({
    valid: true,
    value: { b: 0, a: false, "": "", n: 1.5 },
    text,
  });
});

test("no text is no arguments", () => {
  expect(parseArguments(call(" "))).toEqual({ valid: true, value: {}, text: " " });
});

test("for every text: nothing is thrown, the text is kept, and only objects are valid", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const parsed = parseArguments(call(text));
      expect(parsed.text).toBe(text);
      expect(parsed.valid).toBe(parsed.value !== null);
    }),
  );
  for (const text of ["[]", "1", "null", '"{}"', "{"]) expect(parseArguments(call(text)).valid).toBe(false);
});
