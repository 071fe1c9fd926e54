import { RefusedStates, RequestTurns } from "./request-turns.ts";
import { EventEmitter, once } from "node:events";
import { expect, test } from "vitest";
import { FailureError } from "../../wire/core/failure.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { sourcePorts } from "../../wire/apis/ports.ts";
import { type AttemptOptions, Watch } from "./attempt.ts";
import { type GenerationPlan, GenerationStream } from "./generation-stream.ts";
import { RetryBudget } from "./next-attempt.ts";
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
    succeeded() {},
    transport: {
      afterReads: (read: () => void) => void Promise.resolve().then(read),
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

type Handler = { [name: string]: (...args: unknown[]) => void };

/** A server that accepts the request, and whose answer the test sends by the handler. */
function sendingTarget(accepted: (handler: Handler, isPaused: () => boolean) => void): UpstreamTarget {
  const controller = {
    paused: false,
    pause: () => void (controller.paused = true),
    resume: () => void (controller.paused = false),
    abort() {},
  };
  const transport = {
    ...refusingTarget().transport,
    dispatch(_: unknown, handler: Handler) {
      handler["onRequestStart"]?.(controller);
      handler["onResponseStart"]?.(controller, 200, {});
      accepted(
        Object.fromEntries(
          ["onResponseData", "onResponseEnd"].map((name) => [name, (...args) => handler[name]?.(controller, ...args)]),
        ),
        () => controller.paused,
      );
    },
  };
  return { url: "http://up", outstanding: 0, succeeded() {}, transport } as unknown as UpstreamTarget;
}

function planOf(
  changes: Partial<GenerationPlan>,
  target: UpstreamTarget = refusingTarget(),
): { plan: GenerationPlan; counts: Record<string, number> } {
  const counts: Record<string, number> = { left: 0, ended: 0, closed: 0 };
  const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1);
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
    warnings: [],
    secret: undefined,
    decoder: undefined,
    inspect: undefined,
  });
  const plan: GenerationPlan = {
    targets: {
      choose: () => target,
      hasFresh: () => false,
      failed() {},
    } as unknown as GenerationPlan["targets"],
    turns: new RequestTurns({ prompt: { kind: "text", prompts: [""] } } as never, undefined, new RefusedStates()),
    budget: new RetryBudget(),
    enter(admitted) {
      admitted();
      return () => count("left");
    },
    retries: 0,
    prepare: options,
    limitAfter: () => Promise.resolve(undefined),
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
  const batches = stream[Symbol.asyncIterator]();
  const next = batches.next();
  const [finish] = await counting;
  await batches.return();
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
  const batches = stream[Symbol.asyncIterator]();
  const next = batches.next();
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
  expect(await stream[Symbol.asyncIterator]().next()).toEqual({
    done: false,
    value: [{ type: "end", end: { kind: "client-gone" } }],
  });
  expect(left).toBeLessThanOrEqual(1);
});

test("batches are followed until one is not taken, and the next ones wait until they are asked for", async () => {
  let send: Handler = {};
  let isPaused = (): boolean => false;
  const target = sendingTarget((...args) => {
    [send, isPaused] = args;
  });
  const texts: string[] = [];
  const read: string[] = [];
  const textIn = (events: readonly GenerationEvent[]): string =>
    events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
  const { plan, counts } = planOf({ read: (events) => void read.push(textIn(events)) }, target);
  const stream = new GenerationStream(plan);
  const chunk = async (content: string): Promise<void> => {
    const choices = [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }];
    send["onResponseData"]?.(new TextEncoder().encode(`data: ${JSON.stringify({ choices })}\n\n`));
    await new Promise(setImmediate);
  };
  const batches = stream[Symbol.asyncIterator]();
  const first = batches.next();
  await chunk("a");
  texts.push(textIn((await first).value ?? []));
  const take = (events: readonly GenerationEvent[]): boolean => {
    texts.push(textIn(events));
    return !texts.includes("c");
  };
  const following = batches.follow(take);
  await chunk("b");
  expect(texts).toEqual(["a", "b"]);
  await chunk("c");
  await following;
  await chunk("d");
  await chunk("e");
  expect(texts).toEqual(["a", "b", "c"]);
  await chunk("x".repeat(100_000));
  expect(isPaused()).toBe(true);
  texts.pop();
  const rest = batches.follow(take);
  expect(isPaused()).toBe(false);
  expect(texts).toEqual(["a", "b", `de${"x".repeat(100_000)}`]);
  send["onResponseData"]?.(new TextEncoder().encode("data: [DONE]\n\n"));
  send["onResponseEnd"]?.();
  await rest;
  expect(await stream[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  expect(read.slice(0, 3)).toEqual(["a", "b", "c"]);
  expect(counts["closed"]).toBe(1);
});

test("what takes a batch may throw: following it rejects", async () => {
  let send: Handler = {};
  const { plan } = planOf(
    {},
    sendingTarget((handler) => (send = handler)),
  );
  const stream = new GenerationStream(plan);
  const chunk = new TextEncoder().encode(
    'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}\n\n',
  );
  const batches = stream[Symbol.asyncIterator]();
  const first = batches.next();
  send["onResponseData"]?.(chunk);
  await first;
  const following = batches.follow(() => {
    throw new Error("defect");
  });
  send["onResponseData"]?.(chunk);
  await expect(following).rejects.toThrow("defect");
});

/** A server that has closed the connection that the request was sent on. */
function closedTarget(): UpstreamTarget {
  const { transport } = refusingTarget();
  const dispatch = ({ onReusedConnection }: { onReusedConnection(): void }, handler: Handler): void => {
    onReusedConnection();
    handler["onResponseError"]?.({}, Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }));
  };
  return {
    url: "http://up",
    outstanding: 0,
    succeeded() {},
    transport: { ...transport, dispatch },
  } as unknown as UpstreamTarget;
}

// A request whose connection was lost is prepared again, and whatever that threw rejected the iterator: the observers of the attempt were
// never ended, and the client got the 500 of a defect. The tests' requests could always be prepared twice.
test.each(["throws", "rejects"])(
  "a request whose second preparation %s ends with an event, as after the first one",
  async (how) => {
    const target = closedTarget();
    const { plan: first, counts } = planOf({}, target);
    const error = new FailureError({ kind: "invalid-request", message: "No.", status: 400 });
    const prepare: GenerationPlan["prepare"] = (planned) => {
      if (!planned.fresh) return first.prepare(planned);
      if (how === "throws") throw error;
      return Promise.reject(error);
    };
    const stream = new GenerationStream({ ...first, prepare });
    expect(await stream[Symbol.asyncIterator]().next()).toEqual({
      done: false,
      value: [{ type: "end", end: { kind: "rejected", failure: error.failure } }],
    });
    expect(await stream[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
    expect(counts).toEqual({ left: 1, ended: 1, closed: 1 });
  },
);

// A client that had left waited in the queue of files like all others, and its file was read. The tests' preparations did not last.
test("what a preparation does is aborted when its client leaves", async () => {
  const { plan } = planOf({}, refusingTarget());
  let signal: AbortSignal | undefined;
  const prepare: GenerationPlan["prepare"] = (planned) => {
    signal = planned.signal();
    return new Promise(() => {});
  };
  const stream = new GenerationStream({ ...plan, prepare });
  const batches = stream[Symbol.asyncIterator]();
  const first = batches.next();
  expect(signal?.aborted).toBe(false);
  await batches.return();
  expect(signal?.aborted).toBe(true);
  expect(await first).toEqual({ done: true, value: undefined });
});

// A client that left was taken for an answer: what the last refusal had taught was kept for others, without a request that confirmed it.
test("a client that leaves before the answer confirms no lesson", async () => {
  const lessons: string[] = [];
  const { plan } = planOf(
    { confirmLessons: () => void lessons.push("confirmed") },
    sendingTarget(() => {}),
  );
  const stream = new GenerationStream(plan);
  const batches = stream[Symbol.asyncIterator]();
  const next = batches.next();
  await batches.return();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(lessons).toEqual([]);
});
