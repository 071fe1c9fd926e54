import { afterAll, beforeAll, expect, test } from "vitest";
import type { GenerationEvent } from "../../src/generation/event.ts";
import { chatPrompt, openProgrammed, until, type TestEngine } from "./local-engine.ts";

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed();
});
afterAll(() => local.close());

const endless = { prompt: { kind: "text", prompts: ["<|script:endless|>"] } } as const;

function kill(): void {
  const { processId } = local.engine as unknown as { processId: number };
  process.kill(processId, "SIGKILL");
}

test("when the model's process dies, its requests end with an error, it comes back, and the next request is served", async () => {
  const events: GenerationEvent[] = [];
  let killed = false;
  for await (const batch of local.batches(endless)) {
    events.push(...batch);
    if (!killed) kill();
    killed = true;
  }
  expect(events[0]?.type).toBe("start");
  expect(events.at(-1)).toMatchObject({
    type: "end",
    end: { kind: "engine-error", failure: { status: 503, kind: "unavailable" } },
  });
  expect(events.filter((event) => event.type === "finish")).toEqual([]);
  expect(local.engine.health().state).toBe("restarting");
  // It waits for the restart, and is served then.
  expect((await local.chat("#plain")).choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
  expect(local.engine.health()).toMatchObject({ state: "ready", counters: { restarts: 1 } });
});

test("a request that is left during a restart is forgotten", async () => {
  kill();
  await until(() => local.engine.health().state === "restarting");
  const leaving = new AbortController();
  const events: GenerationEvent[] = [];
  const waiting = (async () => {
    for await (const batch of local.batches({ prompt: chatPrompt("#plain") }, leaving.signal)) events.push(...batch);
  })();
  await until(() => local.engine.health().queued === 1);
  leaving.abort();
  await waiting;
  expect(events).toEqual([]);
  await until(() => local.engine.health().state === "ready");
  expect((await local.chat("#plain")).end).toEqual({ kind: "done" });
  expect(local.engine.health().counters?.generatedTokens).toBe(10);
});

test("closing lets what runs finish within the grace, and ends the rest with shutdown", async () => {
  const own = await openProgrammed();
  const short = own.chat("#plain");
  const long = own.ask(endless);
  await until(() => (own.counters().generatedTokens ?? 0) > 0);
  const closing = own.engine.close(3000);
  const late = await own.chat("#plain");
  expect(late.end).toMatchObject({ kind: "shutdown", failure: { status: 503 } });
  expect((await short).end).toEqual({ kind: "done" });
  // The endless one fills its context within the grace, or is cut off after it.
  expect(["done", "shutdown"]).toContain((await long).end.kind);
  await closing;
  expect(own.engine.health().state).toBe("closed");
  await own.close();
});

test("closing without grace ends everything at once", async () => {
  const own = await openProgrammed({ contextSize: 4096 });
  const running = own.ask(endless);
  await until(() => (own.counters().generatedTokens ?? 0) > 0);
  await own.engine.close(0);
  expect((await running).end.kind).toBe("shutdown");
  await own.close();
});
