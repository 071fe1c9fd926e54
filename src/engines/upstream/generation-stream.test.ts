import { EventEmitter, once } from "node:events";
import { expect, test } from "vitest";
import { sourcePorts } from "../../apis/ports.ts";
import { type AttemptOptions, Watch } from "./attempt.ts";
import { type GenerationPlan, GenerationStream, RetryBudget } from "./generation-stream.ts";
import type { UpstreamTarget } from "./targets.ts";

const refusal = JSON.stringify({
  error: {
    message:
      "max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas you provided 9000.",
    param: "max_tokens",
    code: "invalid_value",
  },
});

/** A server that refuses every request with status 400. */
function refusingTarget(): UpstreamTarget {
  const controller = { paused: false, pause() {}, resume() {}, abort() {} };
  return {
    url: "http://up",
    outstanding: 0,
    transport: {
      decoder: () => ({ write: (bytes: Uint8Array) => new TextDecoder().decode(bytes), end: () => "" }),
      dispatch(_: unknown, handler: { [name: string]: (...args: unknown[]) => void }) {
        handler["onRequestStart"]?.(controller);
        handler["onResponseStart"]?.(controller, 400, {});
        handler["onResponseData"]?.(controller, new TextEncoder().encode(refusal));
        handler["onResponseEnd"]?.(controller, {});
      },
    },
  } as unknown as UpstreamTarget;
}

function planOf(changes: Partial<GenerationPlan>): { plan: GenerationPlan; counts: Record<string, number> } {
  const counts: Record<string, number> = { left: 0, ended: 0, closed: 0 };
  const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1);
  const target = refusingTarget();
  const options = (): AttemptOptions => ({
    target,
    model: "m",
    profile: {},
    path: "/v1/chat/completions",
    headers: {},
    body: "{}",
    stream: true,
    fresh: false,
    reader: sourcePorts.chat.reader({
      newCallId: () => "call",
      legacyFunctions: false,
      callsInText: false,
      choices: 1,
      frameLimit: 1000,
    }),
    transform: undefined,
    upstream: "up",
    firstEventMs: 1000,
    idleMs: 1000,
    answerLimit: 1000,
    watch: new Watch(60_000),
    inspect: undefined,
  });
  const plan: GenerationPlan = {
    targets: {
      choose: () => target,
      hasFresh: () => false,
      succeeded() {},
      failed() {},
    } as unknown as GenerationPlan["targets"],
    budget: new RetryBudget(),
    enter(admitted) {
      admitted();
      return () => count("left");
    },
    retries: 0,
    model: "m",
    prepare: options,
    limitAfter: () => undefined,
    learn: () => false,
    confirmLessons() {},
    observe: () => ({ headers: {}, ended: () => count("ended") }),
    retried() {},
    read() {},
    closed: () => count("closed"),
    ...changes,
  };
  return { plan, counts };
}

// The observer of a refused attempt was ended when the client left, and again when the prompt was counted.
test("a client that leaves while the answer's limit is computed ends the attempt once, and leaves the queue once", async () => {
  const begun = new EventEmitter<{ counting: [finish: (limit: number) => void] }>();
  const counting = once(begun, "counting") as Promise<[(limit: number) => void]>;
  const { plan, counts } = planOf({ limitAfter: () => new Promise((resolve) => begun.emit("counting", resolve)) });
  const stream = new GenerationStream(plan);
  const next = stream.next();
  const [finish] = await counting;
  await stream.return();
  finish(5);
  await next;
  expect(counts).toEqual({ left: 1, ended: 1, closed: 1 });
});

// An abandoned request waited for the description of its model, up to five seconds.
test("an attempt that is abandoned while it is prepared ends at once", async () => {
  const begun = new EventEmitter();
  const preparing = once(begun, "preparing");
  const { plan, counts } = planOf({
    prepare: () => {
      begun.emit("preparing");
      return new Promise<never>(() => {});
    },
  });
  const stream = new GenerationStream(plan);
  const next = stream.next();
  await preparing;
  stream.abandon({ kind: "client-gone" });
  expect(await next).toEqual({ done: false, value: [{ type: "end", end: { kind: "client-gone" } }] });
  expect(counts).toEqual({ left: 1, ended: 0, closed: 1 });
});

test("a request that is abandoned before it begins does not wait in the queue", async () => {
  let left = 0;
  const { plan } = planOf({ enter: () => () => void left++ });
  const stream = new GenerationStream(plan);
  stream.abandon({ kind: "client-gone" });
  expect(await stream.next()).toEqual({ done: false, value: [{ type: "end", end: { kind: "client-gone" } }] });
  expect(left).toBeLessThanOrEqual(1);
});
