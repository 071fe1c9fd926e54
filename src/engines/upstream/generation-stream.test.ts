import { EventEmitter, once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import { describe, expect, test } from "vitest";
import { deliver, type TakeBatch } from "../../core/deliver.ts";
import type { GenerationEvent } from "../../core/events.ts";
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

/** A server whose answers the test sends. */
function steeredTarget(): { target: UpstreamTarget; send: (bytes: Uint8Array) => void; end: () => void } {
  let handler: { [name: string]: (...args: unknown[]) => void } = {};
  const controller = {
    paused: false,
    pause: () => void (controller.paused = true),
    resume: () => void (controller.paused = false),
    abort() {},
  };
  const target = {
    url: "http://up",
    outstanding: 0,
    transport: {
      decoder: () => new StringDecoder("utf8"),
      dispatch(_: unknown, given: typeof handler) {
        handler = given;
        handler["onRequestStart"]?.(controller);
        handler["onResponseStart"]?.(controller, 200, { "content-type": "text/event-stream" });
      },
    },
  } as unknown as UpstreamTarget;
  return {
    target,
    send: (bytes) => handler["onResponseData"]?.(controller, bytes),
    end: () => handler["onResponseEnd"]?.(controller, {}),
  };
}

/** Reads a generation as `runGeneration` does: with `deliver`, or with `next` alone. Waits after each batch as `slowly` says. */
async function readAll(stream: GenerationStream, delivers: boolean, slowly: () => boolean): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  let isBusy = false;
  const take: TakeBatch = (batch) => {
    expect(isBusy).toBe(false);
    expect(batch.length).toBeGreaterThan(0);
    events.push(...batch);
    if (!slowly()) return undefined;
    isBusy = true;
    return nextTurn().then(() => void (isBusy = false));
  };
  const first = await stream.next();
  if (first.done === true) return events;
  await take(first.value);
  if (delivers) await stream.deliver(take);
  else await deliver({ next: () => stream.next(), return: () => stream.return() }, take);
  return events;
}

/** The text of events, with the deltas of one choice joined: batches may end anywhere. */
function shape(events: readonly GenerationEvent[]): unknown[] {
  const joined: GenerationEvent[] = [];
  for (const event of events) {
    const last = joined.at(-1);
    if (event.type === "text-delta" && last?.type === "text-delta")
      joined[joined.length - 1] = { ...last, text: last.text + event.text };
    else joined.push(event);
  }
  return joined;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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

const chunk = (choice: string): string =>
  `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,${choice}}]}\n\n`;

const answers: Readonly<Record<string, string>> = {
  whole: [
    chunk('"delta":{"role":"assistant","content":""},"finish_reason":null'),
    ...Array.from({ length: 12 }, (_, at) => chunk(`"delta":{"content":"wörd${at}"},"finish_reason":null`)),
    ": ping\n\n",
    chunk('"delta":{},"finish_reason":"stop"'),
    'data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n',
    "data: [DONE]\n\n",
  ].join(""),
  "without an end": chunk('"delta":{"role":"assistant","content":"Hi"},"finish_reason":null'),
  "an error in the stream": `${chunk('"delta":{"content":"Hi"},"finish_reason":null')}data: {"error":{"message":"broke"}}\n\n`,
  "not JSON": `${chunk('"delta":{"content":"Hi"},"finish_reason":null')}data: {nonsense\n\n${chunk('"delta":{"content":"Hi"},"finish_reason":null')}`,
};

describe.each(Object.entries(answers))("an answer: %s", (_, text) => {
  test("deliver() gives the events of next(), however the bytes arrive and the reader waits", async () => {
    const bytes = Buffer.from(text);
    for (let seed = 1; seed <= 40; seed++) {
      const results: unknown[] = [];
      for (const delivers of [false, true]) {
        let state = seed * 7919;
        const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
        const { target, send, end } = steeredTarget();
        const { plan, counts } = planOf({});
        const stream = new GenerationStream({
          ...plan,
          targets: { ...plan.targets, choose: () => target } as unknown as GenerationPlan["targets"],
          prepare: (...args) => ({ ...(plan.prepare(...args) as AttemptOptions), target }) as AttemptOptions,
        });
        let waits = seed;
        const reading = readAll(stream, delivers, () => (waits = (waits * 31 + 7) % 101) < 40);
        await nextTurn();
        for (let at = 0; at < bytes.length;) {
          const to = Math.min(bytes.length, at + 1 + Math.floor(random() * 160));
          send(bytes.subarray(at, to));
          at = to;
          // Several pieces arrive in one turn, or the reader gets time.
          if (random() < 0.5) await nextTurn();
        }
        end();
        results.push({ events: shape(await reading), counts });
      }
      expect(results[1]).toEqual(results[0]);
    }
  });

  test("a reader that leaves in the middle of deliver() closes the generation once", async () => {
    const bytes = Buffer.from(text);
    for (let leavesAt = 0; leavesAt < 6; leavesAt++) {
      const { target, send } = steeredTarget();
      const { plan, counts } = planOf({});
      const stream = new GenerationStream({
        ...plan,
        targets: { ...plan.targets, choose: () => target } as unknown as GenerationPlan["targets"],
        prepare: (...args) => ({ ...(plan.prepare(...args) as AttemptOptions), target }) as AttemptOptions,
      });
      const first = stream.next();
      await nextTurn();
      send(bytes.subarray(0, 200));
      await first;
      let taken = 0;
      const delivered = stream.deliver(() => {
        // The client leaves while a batch is written to it.
        if (taken++ === leavesAt) void stream.return();
        return undefined;
      });
      for (let at = 200; at < bytes.length; at += 100) {
        send(bytes.subarray(at, at + 100));
        await nextTurn();
      }
      await stream.return();
      await delivered;
      expect(counts).toEqual({ left: 1, ended: 1, closed: 1 });
      expect(target.outstanding).toBe(0);
    }
  });
});

test("deliver() rejects with what the reader throws, and passes nothing after that", async () => {
  const { target, send } = steeredTarget();
  const { plan, counts } = planOf({});
  const stream = new GenerationStream({
    ...plan,
    targets: { ...plan.targets, choose: () => target } as unknown as GenerationPlan["targets"],
    prepare: (...args) => ({ ...(plan.prepare(...args) as AttemptOptions), target }) as AttemptOptions,
  });
  const first = stream.next();
  await nextTurn();
  const piece = Buffer.from(chunk('"delta":{"content":"Hi"},"finish_reason":null'));
  send(piece);
  await first;
  let taken = 0;
  const delivered = stream.deliver(() => {
    taken++;
    throw new Error("cannot be written");
  });
  send(piece);
  await expect(delivered).rejects.toThrow("cannot be written");
  send(piece);
  await nextTurn();
  expect(taken).toBe(1);
  await stream.return();
  expect(counts).toEqual({ left: 1, ended: 1, closed: 1 });
  expect(target.outstanding).toBe(0);
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
