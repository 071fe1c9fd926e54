import fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { CustomCalls } from "./event-stages.ts";

/** The input and the kind that a client gets, of a call whose arguments arrive in these pieces. */
function called(name: string, pieces: readonly string[], status: "succeeded" | "failed" = "succeeded") {
  const { transform } = new CustomCalls(new Set(["patch"]));
  const at = { choice: 0, index: 0 };
  const events: GenerationEvent[] = [
    { type: "tool-call-start", ...at, id: "call_1", name },
    ...pieces.map((text) => ({ type: "tool-call-delta" as const, ...at, arguments: text })),
    status === "failed"
      ? { type: "tool-call-end", ...at, status, raw: pieces.join("") }
      : { type: "tool-call-end", ...at, status },
  ];
  const changed = events.flatMap((event) => transform([event]));
  const texts = changed.flatMap((event) => (event.type === "tool-call-delta" ? [event.arguments] : []));
  return { start: changed[0], texts, input: texts.join(""), end: changed.at(-1) };
}

const piecesOf = (text: string, size: number): string[] => text.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];

// A function's call came back for a custom tool: Codex lost the edit, and ended with exit code 0.
test("the call of a function that represents a custom tool becomes a call of that tool, its text unescaped as it arrives", () => {
  const text = '*** Begin Patch\n-"a"\t\\\n+😀\u0001\n';
  const { start, texts, input, end } = called("patch", piecesOf(JSON.stringify({ input: text }), 7));
  expect(start).toMatchObject({ type: "tool-call-start", kind: "custom" });
  expect([input, texts.length > 3]).toEqual([text, true]);
  expect(end).toEqual({ type: "tool-call-end", choice: 0, index: 0, status: "succeeded" });
});

test("for any text in any pieces, it is the text that arrives", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 9 }), fc.boolean(), (text, size, spaced) => {
      const json = spaced ? JSON.stringify({ input: text }, null, 2) : JSON.stringify({ input: text });
      const { input } = called("patch", piecesOf(json, size));
      expect(input).toBe(text);
    }),
  );
});

test("arguments of another form are delivered as they are", () => {
  for (const json of ['{"patch":"a"}', '{"input":5}', "*** Begin Patch", '["a"]'])
    expect(called("patch", piecesOf(json, 3), "failed").input).toBe(json);
  expect(called("patch", ['{"input":"cut'], "failed").input).toBe("cut");
  expect(called("patch", ["{}"]).input).toBe("");
});

test("other calls, and calls that came as custom ones, are left as they are", () => {
  const json = '{"input":"a"}';
  expect(called("other", [json])).toMatchObject({ input: json, start: { name: "other" } });
  const { transform } = new CustomCalls(new Set(["patch"]));
  const events: GenerationEvent[] = [
    { type: "tool-call-start", choice: 0, index: 0, id: "c", name: "patch", kind: "custom" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: json },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  ];
  expect(transform(events)).toEqual(events);
});

// The stage wrote a new end of the call, so a state that came after the call's start was lost.
test("the end of a call keeps its state", () => {
  const state = { kind: "call", value: { extra_content: { s: 1 } } } as const;
  const stage = new CustomCalls(new Set(["patch"]));
  const events = [
    { type: "tool-call-start", choice: 0, index: 0, id: "c", name: "patch" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"input":"x"}' },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded", state },
  ] as const;
  expect(stage.transform([...events]).at(-1)).toEqual(events[2]);
});
