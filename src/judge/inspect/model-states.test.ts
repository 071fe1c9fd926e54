import { expect, test } from "vitest";
import { applyPatch, changeBetween, mergePatch, stateAfter } from "./model-states.ts";
import type { ModelState, ModelStates } from "./model-states.ts";

const model = (name: string, more: Partial<ModelState> = {}): ModelState => ({
  name,
  models: [name],
  state: "ready",
  ...more,
});

const states = (...models: readonly ModelState[]): ModelStates => ({
  memory: { limit: null, used: 0 },
  models,
  pulls: [],
});

const slot = { id: 0, state: "idle", context_size: 8, context_used: 0 } as const;
const counts = { prompt_tokens: 0, cached_tokens: 0, processed_tokens: 0, generated_tokens: 0 };

/** States that differ in every way that the states of a server do. */
const all: readonly ModelStates[] = [
  states(),
  states(model("a")),
  states(model("a", { kind: "local" }), model("b")),
  states(model("b"), model("a")),
  states(model("a", { message: "Why.", progress: { phase: "load", fraction: 0.5 } })),
  states(model("a", { progress: { phase: "download", fraction: 0 }, slots: { busy: 0, total: 1 } })),
  states(model("a", { slots: { busy: 1, total: 1, each: [{ ...slot, ...counts }] } })),
  states(model("a", { slots: { busy: 1, total: 1, each: [{ ...slot, ...counts, generated_tokens: 3 }] } })),
  states(model("a", { fallbacks: { models: { a: ["b"] } } })),
  states(model("a", { fallbacks: { models: { b: ["a"], a: ["b"] } } })),
  { ...states(model("a")), memory: { limit: 5, used: 3 } },
  { ...states(model("a")), pulls: [{ model: "hf:a/b", bytes: 1, total_bytes: 0 }] },
];

test("for every two states, the event between them leads from one to the other, as JSON", () => {
  for (const before of all) {
    for (const after of all) {
      const event = changeBetween(before, after);
      expect(event === undefined).toBe(before === after);
      const received = event && (JSON.parse(JSON.stringify(event)) as typeof event);
      expect(received ? stateAfter(before, received) : before).toEqual(after);
    }
  }
});

test("a change names only what has changed; a list of other models is a new snapshot", () => {
  const before = states(model("a", { busy: 1, aliases: ["x"], message: "Why." }), model("b"));
  const after = states(model("a", { busy: 2, aliases: ["x"] }), model("b"));
  expect(changeBetween(before, after)).toEqual({ type: "changed", models: [{ at: 0, busy: 2, message: null }] });
  expect(changeBetween(before, states(model("b")))).toMatchObject({ type: "snapshot" });
  expect(stateAfter(undefined, { type: "changed" })).toBeUndefined();
});

// RFC 7396, appendix A; patches from null members cannot be made by `mergePatch`.
test.each([
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "foo" }, "bar", "bar"],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
])("the patches of RFC 7396: %j and %j", (target, patch, result) => {
  expect(applyPatch(target, patch)).toEqual(result);
});

test("equal objects have no patch", () => {
  expect(mergePatch({ a: { b: [1] }, c: undefined }, { a: { b: [1] } })).toBeUndefined();
});
