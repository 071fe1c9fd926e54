import { expect, test } from "vitest";
import fc from "fast-check";
import { answer, done, failed, ScriptedEngine, sleep } from "../../test/support/scripted-engine.ts";
import type { Batch, Script } from "../../test/support/scripted-engine.ts";
import { peerPair } from "../../test/support/peer-pair.ts";
import type { PeerPair } from "../../test/support/peer-pair.ts";
import type { DetokenizeRequest, RerankRequest } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import { FailureError, invalidRequest, loggedError } from "../core/failure.ts";
import type { CacheMiss } from "../core/cache-miss.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { EngineHost, EngineStates } from "./engine-host.ts";
import { maxAhead } from "./engine-messages.ts";
import type { RemoteEngine } from "./remote-engines.ts";
import { RemoteEngines } from "./remote-engines.ts";

const request: GenerationRequest = {
  id: "req_1",
  model: "scripted",
  prompt: { kind: "chat", messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }], template: {} },
  sampling: {},
  limits: {},
  wantsUsage: true,
  stream: true,
  extra: {},
};

interface Opened extends PeerPair {
  readonly engine: ScriptedEngine;
  readonly remote: RemoteEngine;
  readonly states: EngineStates;
}

async function open<E extends ScriptedEngine>(engine: E): Promise<Opened & { readonly engine: E }> {
  const pair = peerPair();
  const states = new EngineStates();
  new EngineHost(pair.primary, states, async (name) => {
    if (name !== "scripted") throw new Error(`There is no engine ${name}.`);
    return engine;
  }).listen();
  const remote = await new RemoteEngines(pair.worker).open("scripted");
  return { ...pair, engine, remote, states };
}

async function readAll(batches: AsyncIterable<Batch>): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  for await (const batch of batches) events.push(...batch);
  return events;
}

const words = (count: number): string[] => Array.from({ length: count }, (_, at) => `${at} `);

const endless: Script = async function* () {
  yield [{ type: "start", choice: 0 }];
  for (;;) {
    await sleep(0);
    yield [{ type: "text-delta", choice: 0, text: "on " }];
  }
};

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(2);
}

test("an answer arrives as the engine gave it, and the request as it was made, but for the client's own JSON", async () => {
  const batches = [...answer(["Hel", "lo €\ud800"])];
  const { engine, remote } = await open(new ScriptedEngine(() => batches));
  const asked = { ...request, owner: "team", passthrough: { dialect: "chat", body: { model: "scripted" } } };
  expect(await readAll(remote.generate(asked))).toEqual(batches.flat());
  expect(engine.requests).toEqual([{ ...request, owner: "team" }]);
  await until(() => engine.running === 0);
});

// With workers, nobody was told.
test("why a prompt was read again is known before the first events", async () => {
  const miss: CacheMiss = { cause: "date", where: "system", at: 3, cachedTokens: 3, promptTokens: 99 };
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  const { remote } = await open(
    Object.assign(engine, {
      generate(asked: GenerationRequest, observer?: GenerationObserver) {
        observer?.cacheMissed(miss);
        return ScriptedEngine.prototype.generate.call(engine, asked);
      },
    }),
  );
  const told: unknown[] = [];
  const observer: GenerationObserver = {
    attempt: () => ({ headers: {}, ended() {} }),
    repaired() {},
    cacheMissed: (missed) => void told.push(missed),
  };
  for await (const batch of remote.generate(request, observer)) told.push(batch[0]?.type);
  expect(told.slice(0, 2)).toEqual([miss, "start"]);
});

test("for every script and every reader, the events are the same, and the engine is never further ahead than agreed", async () => {
  // An empty batch ended the answer of a reader that waited, and eight of them held it for ever where none did.
  const script = fc.array(fc.array(fc.string({ maxLength: 4 }), { maxLength: 3 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(script, fc.array(fc.boolean(), { maxLength: 40 }), async (texts, pauses) => {
      const batches: Batch[] = texts.map((batch) =>
        batch.map((text): GenerationEvent => ({ type: "text-delta", choice: 0, text })),
      );
      const { engine, remote, end } = await open(new ScriptedEngine(() => [...batches, [done]]));
      const events: GenerationEvent[] = [];
      let taken = 0;
      for await (const batch of remote.generate(request)) {
        events.push(...batch);
        // Of a batch that was put together, the parts are counted by what they hold.
        for (let left = batch.length; left > 0; taken++) left -= batches[taken]?.length ?? 1;
        while (batches[taken]?.length === 0) taken++;
        if (pauses[taken] === true) for (let turn = 0; turn < 4; turn++) await sleep(0);
        // Empty ones are not sent, so they are not counted.
        const pulled = batches.slice(0, engine.pulled).filter(({ length }) => length > 0);
        const read = batches.slice(0, taken).filter(({ length }) => length > 0);
        expect(pulled.length).toBeLessThanOrEqual(read.length + maxAhead + 1);
      }
      end();
      expect(events).toEqual([...batches.flat(), done]);
    }),
    { numRuns: 60 },
  );
});

test("a reader that takes nothing holds the engine back", async () => {
  const { engine, remote } = await open(new ScriptedEngine(() => answer(words(200))));
  const generation = remote.generate(request);
  await generation.next();
  await sleep(50);
  expect(engine.pulled).toBeLessThanOrEqual(1 + maxAhead);
  const rest = await readAll(generation);
  expect(rest.at(-1)).toEqual(done);
  expect(engine.pulled).toBe(201);
});

test("returning cancels immediately, even while a batch is awaited", async () => {
  const silent: Script = async function* (_, signal) {
    yield [{ type: "start", choice: 0 }];
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  for (const script of [silent, endless]) {
    const { engine, remote } = await open(new ScriptedEngine(script));
    const generation = remote.generate(request);
    await generation.next();
    const waiting = script === silent ? generation.next() : undefined;
    await generation.return();
    if (waiting) expect(await waiting).toEqual({ done: true, value: undefined });
    await until(() => engine.aborted === 1 && engine.running === 0);
    expect(await generation.next()).toEqual({ done: true, value: undefined });
  }
});

test("an engine that throws, and one that ends without an end", async () => {
  const broken = await open(
    new ScriptedEngine(function* () {
      yield [{ type: "start", choice: 0 }];
      throw new Error("a defect");
    }),
  );
  const [, end] = await readAll(broken.remote.generate(request));
  expect(end).toMatchObject({ type: "end", end: { kind: "engine-error", failure: { status: 500 } } });
  const { cause } = (end as { end: { failure: { cause: unknown } } }).end.failure;
  // The log shows where it was thrown.
  expect(cause).toMatch(/^Error\n +at /);
  const silent = await open(new ScriptedEngine(() => [[{ type: "start", choice: 0 }]]));
  expect(await readAll(silent.remote.generate(request))).toEqual([{ type: "start", choice: 0 }]);
});

test("a failure's cause arrives as the log would show it", async () => {
  const cause = new Error("with a socket");
  const { remote } = await open(new ScriptedEngine(() => [[failed("rejected", { message: "No.", cause })]]));
  expect(await readAll(remote.generate(request))).toEqual([
    failed("rejected", { message: "No.", cause: loggedError(cause) }),
  ]);
});

test("an event that is no JSON ends the answer, and the engine's work", async () => {
  const { engine, remote } = await open(
    new ScriptedEngine(async function* () {
      yield [{ type: "extra", place: "chunk", value: { big: 1n } }];
      yield [done];
    }),
  );
  const [end] = await readAll(remote.generate(request));
  expect(end).toMatchObject({ type: "end", end: { kind: "engine-error" } });
  await until(() => engine.running === 0);
});

test("a request that is nested too deeply is refused, and nothing else breaks", async () => {
  const { remote } = await open(new ScriptedEngine(() => answer(["Hi"])));
  let deep: unknown = {};
  for (let level = 0; level < 100_000; level++) deep = { a: deep };
  const events = await readAll(remote.generate({ ...request, extra: { deep } }));
  expect(events).toMatchObject([
    { end: { kind: "rejected", failure: { message: "The request is nested too deeply." } } },
  ]);
  expect((await readAll(remote.generate(request))).at(-1)).toEqual(done);
});

test("answers at the same time do not mix", async () => {
  const { remote } = await open(
    new ScriptedEngine(async function* ({ id }) {
      for (let at = 0; at < 30; at++) {
        if (at % 7 === Number(id) % 7) await sleep(0);
        yield [{ type: "text-delta", choice: 0, text: id }];
      }
      yield [done];
    }),
  );
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, id) => readAll(remote.generate({ ...request, id: String(id) }))),
  );
  for (const [id, events] of answers.entries()) {
    expect(events).toHaveLength(31);
    expect(new Set(events.slice(0, 30).map((event) => "text" in event && event.text))).toEqual(new Set([String(id)]));
  }
});

test("when the worker is gone, what it had under way is cancelled", async () => {
  const { engine, remote, end } = await open(new ScriptedEngine(endless));
  const generations = [remote.generate(request), remote.generate(request)];
  await Promise.all(generations.map((generation) => generation.next()));
  expect(engine.running).toBe(2);
  end();
  await until(() => engine.running === 0);
  expect(engine.aborted).toBe(2);
});

test("when the primary is gone, every answer ends as an error, and no other begins", async () => {
  const { remote, end } = await open(new ScriptedEngine(endless));
  const reading = readAll(remote.generate(request));
  await sleep(20);
  end();
  const gone = { type: "end", end: { kind: "engine-error", failure: { kind: "unavailable", status: 503 } } };
  expect((await reading).at(-1)).toMatchObject(gone);
  expect(await readAll(remote.generate(request))).toMatchObject([gone]);
  expect(remote.health().state).toBe("failed");
});

test("closing lets answers end, then ends them as the server stops", async () => {
  let mayEnd = (): void => {};
  const told = new Promise<void>((resolve) => (mayEnd = resolve));
  const { engine, remote } = await open(
    new ScriptedEngine(async function* ({ id }, signal) {
      if (id === "short") {
        await told;
        yield* answer(["Hi"]);
      } else yield* endless(request, signal);
    }),
  );
  const short = readAll(remote.generate({ ...request, id: "short" }));
  const long = readAll(remote.generate(request));
  await until(() => engine.running === 2);
  const closing = remote.close(500);
  mayEnd();
  expect((await short).at(-1)).toEqual(done);
  await closing;
  expect((await long).at(-1)).toMatchObject({ end: { kind: "shutdown" } });
  await until(() => engine.running === 0);
  expect(await readAll(remote.generate(request))).toMatchObject([{ end: { kind: "shutdown" } }]);
  expect(remote.health()).toEqual({ state: "closed" });
});

test("states are known immediately, and follow those of the engine", async () => {
  const { engine, remote, states } = await open(new ScriptedEngine(() => answer(["Hi"])));
  expect(remote.models()).toEqual(engine.models());
  expect(remote.health()).toEqual(engine.health());
  expect(remote.models()).toBe(remote.models());
  engine.state = "restarting";
  states.poll();
  await until(() => remote.health().state === "restarting");
  engine.state = "ready";
  // And without being told.
  await until(() => remote.health().state === "ready");
});

// The second worker's state was never mended: it was compared with what the first one had been told.
test("a worker that opens an engine between two looks at it hears of the next change, too", async () => {
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  const states = new EngineStates();
  const opened = async (): Promise<RemoteEngine> => {
    const pair = peerPair();
    new EngineHost(pair.primary, states, async () => engine).listen();
    return new RemoteEngines(pair.worker).open("scripted");
  };
  const first = await opened();
  engine.state = "restarting";
  const second = await opened();
  engine.state = "ready";
  await until(() => second.health().state === "ready");
  expect(first.health().state).toBe("ready");
});

test("an engine that is not there", async () => {
  const pair = peerPair();
  new EngineHost(pair.primary, new EngineStates(), async (name) => {
    throw new Error(`There is no engine ${name}.`);
  }).listen();
  await expect(new RemoteEngines(pair.worker).open("other")).rejects.toThrow("There is no engine other.");
});

class Telling extends ScriptedEngine {
  left = 0;

  override readonly handlers = {
    "count-tokens": async ({ id }: GenerationRequest, signal: AbortSignal): Promise<number> => {
      if (id === "refused") throw invalidRequest("No.", "messages[0]");
      if (id === "defect") throw new TypeError("a defect");
      if (id !== "waits") return 7;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          this.left++;
          reject(signal.reason);
        });
      });
    },
    "apply-template": async ({ id }: GenerationRequest) => `prompt of ${id}`,
    rerank: async ({ documents, owner }: RerankRequest) => {
      if (owner === "refused") throw invalidRequest("Too long.", "documents[1]");
      return { scores: documents.map((document) => document.length), promptTokens: 3 };
    },
    detokenize: async ({ tokens }: DetokenizeRequest) => tokens.join(" "),
  };
}

test("look-ups: answers, failures, and what the engine cannot be asked", async () => {
  const { remote } = await open(new Telling(() => answer(["Hi"])));
  const { signal } = new AbortController();
  expect(await remote.ask({ kind: "count-tokens", request }, signal)).toBe(7);
  expect(
    await remote.ask({ kind: "detokenize", request: { id: "1", model: "scripted", tokens: [1, 2] } }, signal),
  ).toBe("1 2");
  expect(await remote.ask({ kind: "apply-template", request: { ...request, id: "1" } }, signal)).toBe("prompt of 1");
  const ranked = { id: "1", model: "scripted", query: "q", documents: ["a", "bcd"], extra: {} };
  expect(await remote.ask({ kind: "rerank", request: ranked }, signal)).toEqual({ scores: [1, 3], promptTokens: 3 });
  await expect(remote.ask({ kind: "rerank", request: { ...ranked, owner: "refused" } }, signal)).rejects.toMatchObject({
    failure: { status: 400, param: "documents[1]" },
  });
  expect(remote.questions()).toEqual(["count-tokens", "apply-template", "rerank", "detokenize"]);
  const refused = remote.ask({ kind: "count-tokens", request: { ...request, id: "refused" } }, signal);
  await expect(refused).rejects.toMatchObject({ failure: { status: 400, param: "messages[0]", message: "No." } });
  await expect(refused).rejects.toBeInstanceOf(FailureError);
  const defect = remote.ask({ kind: "count-tokens", request: { ...request, id: "defect" } }, signal);
  await expect(defect).rejects.toMatchObject({
    failure: { status: 500, cause: expect.stringMatching(/^TypeError\n +at /) as unknown },
  });
});

test("look-ups: cancelling returns immediately, and ends the work, as does the death of the worker", async () => {
  const { engine, remote, end } = await open(new Telling(() => answer(["Hi"])));
  const controller = new AbortController();
  const waits = { ...request, id: "waits" };
  const left = remote.ask({ kind: "count-tokens", request: waits }, controller.signal);
  const asked = remote.ask({ kind: "count-tokens", request: waits }, new AbortController().signal);
  await sleep(10);
  controller.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  await until(() => engine.left === 1);
  end();
  await expect(asked).rejects.toMatchObject({ failure: { status: 503 } });
  await until(() => engine.left === 2);
});
