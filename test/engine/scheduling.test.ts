import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { chatPrompt, drive, openBuilt, openProgrammed, until, type TestEngine } from "./local-engine.ts";

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed({ slots: 4, queueLimit: 3, contextSize: 2048 });
});
afterAll(() => local.close());

const endless = { type: "text", prompts: ["<|script:endless|>"] };
const endlessPrompt = { kind: "text", prompts: endless.prompts } as const;

/** Starts an endless answer and resolves when its first text is there. */
async function startEndless(): Promise<{ leave: () => void; done: Promise<GenerationEvent[]> }> {
  const leaving = new AbortController();
  let begun = (): void => {};
  const started = new Promise<void>((resolve) => (begun = resolve));
  const done = (async () => {
    const events: GenerationEvent[] = [];
    for await (const batch of local.batches({ prompt: endlessPrompt }, leaving.signal)) {
      events.push(...batch);
      begun();
    }
    return events;
  })();
  await started;
  return { leave: () => leaving.abort(), done };
}

test("n = 4 interleaves: every choice has spoken before any has finished", async () => {
  const order: string[] = [];
  for await (const batch of local.batches({ prompt: chatPrompt("#greeting"), n: 4 }))
    for (const event of batch) if ("choice" in event) order.push(`${event.type} ${event.choice}`);
  const firstFinish = order.findIndex((entry) => entry.startsWith("finish"));
  expect(new Set(order.slice(0, firstFinish).filter((entry) => entry.startsWith("text-delta"))).size).toBe(4);
  expect(order.filter((entry) => entry.startsWith("start"))).toEqual(["start 0", "start 1", "start 2", "start 3"]);
  expect(order.filter((entry) => entry.startsWith("finish"))).toHaveLength(4);
});

test("more choices than slots: the rest queue, and all come", async () => {
  const { choices, usage } = await local.chat("#plain", { n: 7 });
  expect(choices.map((choice) => choice.text)).toEqual(Array(7).fill("The quick brown fox jumps over the lazy dog."));
  const once = await local.chat("#plain");
  expect(usage?.promptTokens).toBe(once.usage?.promptTokens);
  expect(usage?.completionTokens).toBe(7 * (once.usage?.completionTokens ?? 0));
});

test("several prompts: choice = prompt × n + i", async () => {
  const { choices, usage } = await local.ask({
    prompt: { kind: "text", prompts: ["<|script:plain|>", "xy<|script:json|>"] },
    n: 2,
  });
  expect(choices.map(({ choice, text }) => [choice, text?.slice(0, 3)])).toEqual([
    [0, "The"],
    [1, "The"],
    [2, '{"c'],
    [3, '{"c'],
  ]);
  expect(usage?.promptTokens).toBe(4);
});

test("a client that leaves frees its slot, and no step is made for it any more", async () => {
  await local.idle();
  const { leave, done } = await startEndless();
  expect(local.engine.health().slots).toEqual({ busy: 1, total: 4 });
  leave();
  const events = await done;
  expect(events.at(-1)?.type).not.toBe("end");
  await local.idle();
  const { decodeSteps, generatedTokens } = local.counters();
  await local.chat("#odds");
  // The two tokens of that answer, with the step that reads its prompt; nothing of the endless one.
  expect((local.counters().generatedTokens ?? 0) - (generatedTokens ?? 0)).toBe(2);
  expect((local.counters().decodeSteps ?? 0) - (decodeSteps ?? 0)).toBeLessThanOrEqual(3);
});

test("a reader that returns early cancels, as an abort does", async () => {
  for await (const batch of local.batches({ prompt: endlessPrompt })) {
    expect(batch.length).toBeGreaterThan(0);
    break;
  }
  await local.idle();
});

test("a request that was left before it began is never run", async () => {
  await local.idle();
  const before = local.counters().decodeSteps;
  const events: GenerationEvent[] = [];
  for await (const batch of local.batches({ prompt: endlessPrompt }, AbortSignal.abort())) events.push(...batch);
  expect(events).toEqual([]);
  expect(local.counters().decodeSteps).toBe(before);
});

test("waiting requests are served by tier, and those of a tier as they came", async () => {
  const running = await Promise.all(Array.from({ length: 4 }, startEndless));
  const order: string[] = [];
  const waiting = (["flex", undefined, "priority"] as const).map(async (tier, at) => {
    await until(() => local.engine.health().queued === at);
    await local.chat("#plain", tier === undefined ? {} : { tier });
    order.push(tier ?? "default");
  });
  await until(() => local.engine.health().queued === 3);
  running[0]?.leave();
  await Promise.all(waiting);
  expect(order).toEqual(["priority", "default", "flex"]);
  for (const { leave, done } of running) {
    leave();
    await done;
  }
  await local.idle();
});

test("the queue is bounded: one more is refused with 429 and when to retry; a free slot takes the next in line", async () => {
  const running = await Promise.all(Array.from({ length: 4 }, startEndless));
  const queued = Array.from({ length: 3 }, () => local.chat("#plain"));
  await until(() => local.engine.health().queued === 3);
  const refused = await local.chat("#plain");
  expect(refused.end).toMatchObject({
    kind: "rejected",
    failure: { status: 429, code: "rate_limit_exceeded", retryAfterSeconds: expect.any(Number) as number },
  });
  running[0]?.leave();
  for (const { choices } of await Promise.all(queued)) expect(choices[0]?.finish?.reason).toBe("stop");
  for (const { leave, done } of running) {
    leave();
    await done;
  }
  await local.idle();
});

test("a queued request that is left leaves the queue", async () => {
  const running = await Promise.all(Array.from({ length: 4 }, startEndless));
  const leaving = new AbortController();
  const events: GenerationEvent[] = [];
  const queued = (async () => {
    for await (const batch of local.batches({ prompt: chatPrompt("#plain") }, leaving.signal)) events.push(...batch);
  })();
  await until(() => local.engine.health().queued === 1);
  leaving.abort();
  await queued;
  await until(() => local.engine.health().queued === 0);
  expect(events).toEqual([]);
  for (const { leave, done } of running) {
    leave();
    await done;
  }
  await local.idle();
});

test("a reader that stops reading stops its own sequence, and no other", async () => {
  await local.idle();
  const before = local.counters().generatedTokens ?? 0;
  const slow = local.batches({ prompt: endlessPrompt })[Symbol.asyncIterator]();
  await slow.next();
  // It may run 64 tokens ahead of its reader.
  const generated = (): number => (local.counters().generatedTokens ?? 0) - before;
  await until(() => generated() >= 64);
  const other = await local.complete("<|script:endless|>", { limits: { maxTokens: 400 } });
  expect(other.usage?.completionTokens).toBe(400);
  const ahead = generated() - 400;
  expect(ahead).toBeLessThan(64 + 16);
  // It reads on, and the sequence runs on.
  let read = 0;
  while (read < ahead + 100) {
    const { value, done } = await slow.next();
    if (done) break;
    read += value.filter((event) => event.type === "text-delta").length;
  }
  expect(read).toBeGreaterThanOrEqual(ahead + 100);
  await slow.return?.();
  await local.idle();
});

test("a prompt that begins like an earlier one is not read again", async () => {
  const long = "All of this was said before. ".repeat(20);
  const first = await local.chat(`${long}#plain`);
  const again = await local.chat(`${long}#odds`);
  expect(first.usage?.promptTokens).toBeGreaterThan(580);
  const cached = again.usage?.promptDetails?.cached_tokens ?? 0;
  expect(cached).toBeGreaterThan(570);
  expect(cached).toBeLessThan(again.usage?.promptTokens ?? 0);
  const uncached = await local.chat(`${long}#odds`, { limits: { cachePrompt: false } });
  expect(uncached.usage?.promptDetails?.cached_tokens).toBe(0);
  expect(uncached.choices[0]?.text).toBe(again.choices[0]?.text);
});

test("a conversation goes back to the slot that knows it, though a lower one is free", async () => {
  const history = "What we talked about at length. ".repeat(15);
  const other = await startEndless();
  await local.chat(`${history}#plain`);
  other.leave();
  await other.done;
  await local.idle();
  const { usage } = await local.chat(`${history}#json`);
  expect(usage?.promptDetails?.cached_tokens).toBeGreaterThan(450);
});

test("a long prompt is read in pieces, between which another answer goes on", async () => {
  const running = await startEndless();
  const before = local.counters();
  const { usage } = await local.chat(`${"Long and never seen. ".repeat(70)}#odds`);
  expect(usage?.promptTokens).toBeGreaterThan(1400);
  const steps = (local.counters().decodeSteps ?? 0) - (before.decodeSteps ?? 0);
  const tokens = (local.counters().generatedTokens ?? 0) - (before.generatedTokens ?? 0);
  // Each piece is a step in which the endless answer got a token, unless its reader was behind.
  expect(steps).toBeGreaterThan(3);
  expect(tokens).toBeGreaterThan(2);
  running.leave();
  await running.done;
  await local.idle();
});

test("timings are told with the usage", async () => {
  const { timings } = await local.chat("#plain", { wantsTimings: true });
  for (const value of Object.values(timings ?? {})) expect(value).toBeGreaterThanOrEqual(0);
  expect(timings?.tokensPerSecond).toBeGreaterThan(0);
});

test("the choices of one long prompt read it once: the others are given what the first knows", async () => {
  await local.idle();
  const before = local.counters();
  const { choices, usage } = await local.chat(`${"A prompt for four answers. ".repeat(40)}#coin`, {
    n: 4,
    sampling: { seed: 11 },
    limits: { maxTokens: 20 },
  });
  expect(usage?.promptTokens).toBeGreaterThan(1000);
  const read = (local.counters().promptTokens ?? 0) - (before.promptTokens ?? 0);
  expect(read).toBeLessThan((usage?.promptTokens ?? 0) + 10);
  expect(new Set(choices.map((choice) => choice.text)).size).toBe(4);
  // The same answers as from sequences that read everything themselves.
  const alone = await local.chat(`${"A prompt for four answers. ".repeat(40)}#coin`, {
    n: 4,
    sampling: { seed: 11 },
    limits: { maxTokens: 20, cachePrompt: false },
  });
  expect(alone.choices.map((choice) => choice.text)).toEqual(choices.map((choice) => choice.text));
});

// 75 of 101 requests failed with "Failed to save state to file" on a machine whose temporary folder could not be written.
test("where the temporary folder cannot be written, prompts are shared all the same", async () => {
  const { TMPDIR } = process.env;
  const lines: string[] = [];
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  const model = join(folder, "programmed.gguf");
  writeProgrammedModel(model);
  process.env.TMPDIR = join(folder, "not-there");
  const engine = await openBuilt({ model, contextSize: 2048, log: (line) => lines.push(line) });
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  try {
    const own = drive(engine);
    const { choices, end } = await own.chat(`${"A prompt for four answers. ".repeat(40)}#plain`, { n: 4 });
    expect(end).toEqual({ kind: "done" });
    expect(choices.map(({ text }) => text)).toEqual(Array(4).fill("The quick brown fox jumps over the lazy dog."));
    expect(lines).toEqual([]);
    expect(own.counters().promptTokens).toBeLessThan(1200);
  } finally {
    await engine.close(0);
    rmSync(folder, { recursive: true, force: true });
  }
});

test("with debug logging, each transition of a slot and a task is a line", async () => {
  const lines: string[] = [];
  const own = await openProgrammed({
    slots: 1,
    debug: true,
    log: (line, level) => void (level === "debug" && lines.push(line)),
  });
  await own.chat("#plain");
  await until(() => lines.some((line) => line.includes("→ idle")));
  await own.close();
  expect(lines.map((line) => line.replaceAll(/task \d+/g, "task N"))).toEqual([
    "task N.0: queued (1 waiting)",
    "slot 0: idle → prefill (task N.0, assigned)",
    "slot 0: prefill → decode (task N.0, prompt is decoded)",
    "slot 0: decode → idle (task N.0, finished)",
  ]);
});
