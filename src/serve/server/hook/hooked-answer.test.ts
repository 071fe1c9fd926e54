import { expect, test } from "vitest";
import { accumulate } from "../../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import type { HookPart } from "../../../wire/core/hook.ts";
import { HookedAnswer } from "./hooked-answer.ts";

const delta = (text: string, choice = 0): GenerationEvent => ({ type: "text-delta", choice, text });
const start = { type: "start", choice: 0 } as const;
const finish = { type: "finish", choice: 0, reason: "stop" } as const;
const end = { type: "end", end: { kind: "done" } } as const;

async function through(batches: readonly (readonly GenerationEvent[])[], ask: (part: HookPart) => unknown) {
  const parts: HookPart[] = [];
  const answer = new HookedAnswer(async (part) => {
    parts.push(part);
    return ask(part) ?? null;
  });
  const out: (readonly GenerationEvent[])[] = [];
  for (const batch of batches) out.push(await answer.read(batch));
  return { parts, out, events: out.flat() };
}

test("an answer that the hook leaves as it is keeps its events, also in their batches", async () => {
  const batches = [
    [start, delta("Hel")],
    [delta("lo"), delta("!")],
    [finish, end],
  ];
  expect((await through(batches, () => undefined)).out).toEqual(batches);
});

test("the hook gets each character once, however many deltas there are, where it holds nothing back", async () => {
  for (const count of [100, 1000]) {
    const batches = [[start], ...Array.from({ length: count }, () => [delta("word ")]), [finish, end]];
    const { parts } = await through(batches, () => undefined);
    expect(parts.reduce((sum, { text }) => sum + text.length, 0)).toBe(5 * count);
  }
});

test("what is held back begins the next part, and is asked for once more at its end", async () => {
  const { parts, events } = await through([[start, delta("ab")], [delta("c")], [finish, end]], ({ text, isEnd }) =>
    isEnd ? text.toUpperCase() : { text: text.slice(0, -1), rest: text.slice(-1) },
  );
  expect(parts).toEqual([
    { type: "text", text: "ab", choice: 0, isEnd: false },
    { type: "text", text: "bc", choice: 0, isEnd: false },
    { type: "text", text: "c", choice: 0, isEnd: true },
  ]);
  expect(accumulate(events).choices[0]?.text).toBe("abC");
});

test("nothing is sent before the first visible event, so a refusal has its own status", async () => {
  const { out } = await through([[start, delta("a")], [delta("b")], [finish, end]], ({ text, isEnd }) =>
    isEnd ? text : { text: "", rest: text },
  );
  expect(out.slice(0, 2)).toEqual([[], []]);
  expect(out[2]).toEqual([start, delta("ab"), finish, end]);
});

test("reasoning, text and choices are parts of their own, and a changed part loses positions and signatures", async () => {
  const reasoning = { type: "reasoning-delta", choice: 0, text: "hm" } as const;
  const state = { source: "s", kind: "text", value: "signed" } as never;
  const cited: GenerationEvent = { type: "annotation", choice: 0, annotation: { url: "u", start: 0, end: 1 } };
  const batch: GenerationEvent[] = [
    start,
    reasoning,
    { type: "part-end", choice: 0, state },
    delta("a"),
    cited,
    finish,
  ];
  const other: GenerationEvent[] = [{ type: "start", choice: 1 }, delta("b", 1), { ...finish, choice: 1 }, end];
  const { parts, events } = await through([[...batch, ...other]], ({ text }) => `${text}!`);
  expect(parts.map(({ type, text, choice, isEnd }) => [type, text, choice, isEnd])).toEqual([
    ["reasoning", "hm", 0, true],
    ["text", "a", 0, true],
    ["text", "b", 1, true],
  ]);
  expect(events).toContainEqual({ type: "part-end", choice: 0 });
  expect(events).toContainEqual({ type: "annotation", choice: 0, annotation: { url: "u" } });
  expect(accumulate(events).choices.map(({ text }) => text)).toEqual(["a!", "b!"]);
});
