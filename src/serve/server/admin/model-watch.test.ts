import { expect, test } from "vitest";
import { ScriptedEngine } from "../../../../test/support/scripted-engine.ts";
import type { SlotState } from "../../../wire/core/engine.ts";
import { Mask } from "../mask.ts";
import { ModelDirectory } from "../model-directory.ts";
import { Requests } from "../service.ts";
import type { Service } from "../service.ts";
import { modelEvents, Rates } from "./model-watch.ts";
import type { ModelControl } from "./model-control.ts";

test("what a slot does: its prompt, then its answer; an idle one is not asked for", async () => {
  const engine = new ScriptedEngine(() => []);
  const idle = { id: 0, busy: false, contextSize: 1000, promptTokens: 0, cachedTokens: 0, tokensLeft: null };
  const busy = { ...idle, busy: true, task: 7, promptTokens: 400, cachedTokens: 50 };
  const answers: readonly SlotState[] = [
    { ...busy, evaluatedTokens: 100, generatedTokens: 0 },
    { ...busy, evaluatedTokens: 400, generatedTokens: 3 },
    { ...idle, evaluatedTokens: 0, generatedTokens: 0 },
  ];
  let asked = 0;
  Object.assign(engine.handlers, {
    async slots() {
      const answer = answers[asked++];
      // The request has ended.
      if (asked === answers.length) engine.running = 0;
      return answer ? [answer] : [];
    },
  });
  engine.running = 1;
  const directory = new ModelDirectory([{ name: "m", kind: "local", engine, aliases: ["x"], settings: {} }]);
  const settings = { mask: new Mask([]) };
  const service = { state: "ready", directory, settings, requests: new Requests() } as unknown as Service;
  const models = [{ name: "m", models: ["m"], state: "ready", memory: 5, load: "lazy", keep: true, busy: 1 }] as const;
  const control = { list: async () => ({ memory: { limit: 10, used: 5 }, models }) } as unknown as ModelControl;
  const leaving = new AbortController();
  const events = modelEvents(service, control, leaving.signal);
  const common = { id: 0, context_size: 1000, prompt_tokens: 400, cached_tokens: 50 };
  expect((await events.next()).value).toEqual({
    type: "snapshot",
    memory: { limit: 10, used: 5 },
    models: [
      {
        name: "m",
        kind: "local",
        models: ["scripted"],
        aliases: ["x"],
        state: "ready",
        memory: 5,
        load: "lazy",
        keep: true,
        busy: 1,
        queued: 0,
        slots: {
          busy: 1,
          total: 8,
          each: [{ ...common, state: "prompt", context_used: 100, processed_tokens: 100, generated_tokens: 0 }],
        },
      },
    ],
    pulls: [],
  });
  const generating = { ...common, state: "generating", context_used: 403, processed_tokens: 400, generated_tokens: 3 };
  expect((await events.next()).value).toEqual({ type: "changed", models: [{ at: 0, slots: { each: [generating] } }] });
  const none = { id: 0, state: "idle", context_size: 1000, context_used: 0, prompt_tokens: 0, cached_tokens: 0 };
  expect((await events.next()).value).toEqual({
    type: "changed",
    models: [{ at: 0, slots: { each: [{ ...none, processed_tokens: 0, generated_tokens: 0 }] } }],
  });
  expect((await events.next()).value).toEqual({ type: "changed", models: [{ at: 0, slots: { busy: 0 } }] });
  const last = events.next();
  leaving.abort();
  expect(await last).toEqual({ done: true, value: undefined });
  expect(asked).toBe(3);
});

test("a rate is that of the last two seconds", () => {
  const rates = new Rates();
  expect(rates.of("a", 0, 1000)).toBeUndefined();
  expect(rates.of("a", 10, 1500)).toBe(20);
  expect(rates.of("a", 20, 2000)).toBe(20);
  // The first second is no longer counted.
  expect(rates.of("a", 60, 4000)).toBe(20);
  expect(rates.of("a", 60, 6000)).toBe(0);
  expect(rates.of("b", 5, 6000)).toBeUndefined();
});

test("a count that begins again has no rate, nor one that was forgotten", () => {
  const rates = new Rates();
  rates.of("a", 100, 0);
  expect(rates.of("a", 5, 500)).toBeUndefined();
  expect(rates.of("a", 10, 1000)).toBe(10);
  rates.forgetBefore(2000);
  expect(rates.of("a", 20, 2500)).toBeUndefined();
});
