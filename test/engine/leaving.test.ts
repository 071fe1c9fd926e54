import { expect, test } from "vitest";
import type { PreparedRequest } from "../../src/engines/llama/preparing/prepared-request.ts";
import { type DecodeResult, NativeContext } from "../../src/engines/llama/process/c-api/native-context.ts";
import { PromptCache } from "../../src/engines/llama/process/prompt-cache/prompt-cache.ts";
import { Scheduler } from "../../src/engines/llama/process/scheduler.ts";
import { Sequence } from "../../src/engines/llama/process/prompt-cache/sequence.ts";
import { Vocabulary } from "../../src/engines/llama/process/tokens/vocabulary.ts";
import { plainText } from "../../src/text/formats/format.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { useProgrammedModel } from "./native-model.ts";

const opened = useProgrammedModel();

/** A decode in the other thread: its number of tokens, and its result. */
interface AsyncDecode {
  readonly tokens: number;
  result?: DecodeResult;
}

interface Asked {
  readonly cachePrompt?: boolean;
  readonly n?: number;
}

/**
 * A scheduler of four slots in which each token seems to take 1 ms; `onPass` is called when a pass in the other thread has begun. A small
 * model is often done before it hears that it is to end: `obeys`: it never is.
 */
function scheduler(onPass: (number: number) => void, obeys = false) {
  const shape = { capacity: 4096, sequences: 4, batchSize: 512, maxOutputs: 8, threads: 1, unifiedKv: true } as const;
  const context = new NativeContext(opened.model, { ...shape, flashAttention: "off" });
  const sequences = [0, 1, 2, 3].map((id) => new Sequence(context, id));
  let now = 0;
  let toldTokens = 0;
  let beforeShortPass = (): void => {};
  const passes: AsyncDecode[] = [];
  const { decode, decodeAsync, abort } = context;
  let isToEnd = false;
  context.abort = () => {
    isToEnd = true;
    if (!obeys) abort.call(context);
  };
  context.decode = () => {
    beforeShortPass();
    now += context.batch.length;
    return decode.call(context);
  };
  context.decodeAsync = async () => {
    const made: AsyncDecode = { tokens: context.batch.length };
    passes.push(made);
    isToEnd = false;
    const passing = obeys ? undefined : decodeAsync.call(context);
    onPass(passes.length);
    made.result = obeys && isToEnd ? "aborted" : await (passing ?? decodeAsync.call(context));
    now += made.tokens;
    return made.result;
  };
  const heard = new Map<number, GenerationEvent[]>();
  const running = new Scheduler({
    environment: {
      model: opened.model,
      context,
      vocabulary: new Vocabulary(opened.model),
      contextSize: 4096,
      newCallId: () => "call_1",
      openConstraint: () => undefined,
      banReasoning: () => undefined,
      log: () => {},
    },
    sequences,
    promptCache: new PromptCache(0, sequences),
    speculation: "off",
    queueLimit: 10,
    prefill: { maxTokens: 512, maxGapMs: 250, maxBatchMs: 10_000 },
    sharesPrefixes: true,
    report({ results }) {
      for (const [id, tokens, events] of results) {
        running.consumed(id, tokens);
        toldTokens += tokens;
        heard.set(id, [...(heard.get(id) ?? []), ...events]);
      }
    },
    onCacheMiss: () => {},
    preparing: () => ({ waiting: 0, grammarsMade: 0 }),
    random: () => 0.5,
    clock: () => now,
  });
  void running.run();
  return {
    running,
    passes,
    /** Tokens that were drawn and are not told. */
    get untold(): number {
      return running.slots().reduce((sum, { generatedTokens }) => sum + generatedTokens, 0) - toldTokens;
    },
    /** Called before each pass that is not made in the other thread. */
    set beforeShortPass(call: () => void) {
      beforeShortPass = call;
    },
    events: (id: number): readonly GenerationEvent[] => heard.get(id) ?? [],
    add(id: number, length: number, maxTokens: number, { cachePrompt, n = 1 }: Asked = {}): void {
      // No two begin alike.
      const rest = Array.from({ length: length - 2 }, (_, at) => 97 + (at % 26));
      const prompt = [65 + id, ...rest, opened.programmed.controlToken("<|script:endless|>")];
      const request: PreparedRequest = {
        id,
        requestId: `req_${id}`,
        preparingMs: 0,
        prompts: [{ type: "tokens", tokens: prompt }],
        n,
        bestOf: n,
        reading: { format: plainText, prefix: "", callsAllowed: false },
        sampling: { temperature: 0 },
        limits: { maxTokens, ...(cachePrompt !== undefined && { cachePrompt }) },
        extras: {},
        echo: false,
        promptParam: "prompt",
      };
      running.add(request, { prompts: [prompt], images: [] });
    },
    /** Resolves when it waits for work. */
    async rest(): Promise<void> {
      do await new Promise((resolve) => setImmediate(resolve));
      while (running.turn !== null);
    },
  };
}

function text(events: readonly GenerationEvent[]): string {
  return events.flatMap((event) => (event.type === "text-delta" ? [event.text] : [])).join("");
}

test.each([true, false])(
  "a decode that is mostly for a cancelled request is aborted, and repeated for the others (in time: %s)",
  async (obeys) => {
    const one = scheduler((number) => {
      if (number === 3) one.running.cancel(2);
    }, obeys);
    // It answers while the others' prompts are read.
    one.add(1, 8, 60);
    for (const id of [2, 3, 4]) one.add(id, 1000, 20);
    await one.rest();
    const [, , third, fourth] = one.passes;
    if (obeys) expect(third?.result).toBe("aborted");
    expect(fourth?.result).toBe("done");
    expect(one.events(2).at(-1)?.type).not.toBe("end");
    const alone = scheduler(() => {});
    for (const id of [1, 3, 4]) {
      alone.add(id, id === 1 ? 8 : 1000, id === 1 ? 60 : 20);
      await alone.rest();
      expect(text(one.events(id))).toBe(text(alone.events(id)));
      expect(one.events(id).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
    }
  },
);

test("clients that connect and disconnect do not delay the others: no two decodes in a row are aborted for one of several", async () => {
  let coming = [10, 11, 12];
  let endedAt: number | undefined;
  const one = scheduler((number) => {
    if (one.events(1).at(-1)?.type === "end") endedAt ??= number;
    if (number > 200) return;
    for (const id of coming) one.running.cancel(id);
    coming = coming.map((id) => id + 3);
    for (const id of coming) one.add(id, 1000, 20);
  }, true);
  one.add(1, 8, 30);
  for (const id of coming) one.add(id, 1000, 20);
  await one.rest();
  expect(one.events(1).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
  expect(one.passes.map(({ result }) => result)).toContain("aborted");
  expect(endedAt).toBeLessThan(100);
});

// Its slot was busy until a chunk of the others' prompts was decoded, for half a second.
test.each([true, false])(
  "a request that is cancelled during a decode without its tokens frees its slot immediately, and the others are not changed (cache: %s)",
  async (cachePrompt) => {
    const busy = (): number => one.running.slots().filter((slot) => slot.busy).length;
    let before: number | undefined;
    let after: number | undefined;
    const one = scheduler((number) => {
      if (number !== 2) return;
      before = busy();
      one.running.cancel(3);
      after = busy();
      one.add(4, 300, 20);
    });
    for (const id of [1, 2, 3]) one.add(id, 1000, 20, { cachePrompt });
    await one.rest();
    expect([before, after]).toEqual([3, 2]);
    expect(one.events(3).at(-1)?.type).not.toBe("end");
    const alone = scheduler(() => {});
    for (const id of [1, 2, 4]) {
      alone.add(id, id === 4 ? 300 : 1000, 20);
      await alone.rest();
      expect(text(one.events(id))).toBe(text(alone.events(id)));
    }
  },
);

// Events are sent at intervals. Tokens that were sampled and not sent yet were lost.
test("a request that fails sends the tokens that were sampled before its end", async () => {
  const one = scheduler(() => {});
  let said = -1;
  one.beforeShortPass = () => {
    if (one.untold < 8) return;
    said = text(one.events(1)).length;
    throw new Error("The test lets it fail.");
  };
  one.add(1, 40, 400, { n: 2 });
  await one.rest();
  const { type, ...rest } = one.events(1).at(-1) ?? { type: "none" };
  expect(type).toBe("end");
  expect(rest).toMatchObject({
    end: { kind: "engine-error", failure: { message: "The model failed: The test lets it fail." } },
  });
  expect(said).toBeGreaterThanOrEqual(0);
  expect(text(one.events(1)).length).toBeGreaterThan(said);
});

const tokensOf = (passes: readonly AsyncDecode[]): number[] => passes.map(({ tokens }) => tokens);

// Chunks of a prompt that was alone were limited to 400 ms, and became smaller where they cost more.
test("a prompt that is alone is decoded in whole batches", async () => {
  const one = scheduler(() => {});
  one.add(1, 2000, 1);
  await one.rest();
  expect(tokensOf(one.passes)).toEqual([64, 512, 512, 512, 400]);
});

test("a prompt beside an answer is decoded in chunks of at most the longest gap, and at least 64 tokens", async () => {
  const one = scheduler(() => {});
  one.add(1, 8, 200);
  while (one.untold === 0 && one.events(1).length === 0) await new Promise((resolve) => setImmediate(resolve));
  one.add(2, 2000, 1);
  await one.rest();
  expect(one.passes.length).toBeGreaterThan(8);
  for (const { tokens } of one.passes.slice(0, -1)) {
    expect(tokens).toBeGreaterThanOrEqual(64);
    expect(tokens).toBeLessThanOrEqual(250);
  }
});

test("cancelling a request whose long prompt is alone aborts its decode, and the next request starts at once", async () => {
  const one = scheduler((number) => {
    if (number !== 3) return;
    one.running.cancel(1);
    one.add(2, 100, 5);
  }, true);
  one.add(1, 3000, 5);
  await one.rest();
  expect(one.passes.map(({ tokens, result }) => [tokens, result])).toEqual([
    [64, "done"],
    [512, "done"],
    [512, "aborted"],
    [100, "done"],
  ]);
  expect(one.events(2).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
});

test.each([true, false])(
  "a request that arrives during a long decode of another prompt aborts it, and no answer changes (in time: %s)",
  async (obeys) => {
    const one = scheduler((number) => {
      if (number === 3) one.add(2, 100, 5);
    }, obeys);
    one.add(1, 3000, 5);
    await one.rest();
    const [, , third, ...rest] = one.passes;
    if (obeys) expect(third).toEqual({ tokens: 512, result: "aborted" });
    // Both prompts are decoded in chunks, then what is left of the first in whole batches.
    expect(rest[0]?.tokens).toBeLessThanOrEqual(250);
    expect(tokensOf(rest)).toContain(512);
    const alone = scheduler(() => {});
    for (const [id, length] of [[1, 3000] as const, [2, 100] as const]) {
      alone.add(id, length, 5);
      await alone.rest();
      expect(text(one.events(id))).toBe(text(alone.events(id)));
      expect(one.events(id).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
    }
  },
);

test("prompts of similar lengths are processed in whole batches, which a short one that arrives aborts", async () => {
  const one = scheduler((number) => {
    if (number === 3) one.add(4, 100, 5);
  }, true);
  for (const id of [1, 2, 3]) one.add(id, 1200, 5);
  await one.rest();
  const [first, second, third, fourth] = one.passes.map(({ tokens, result }) => ({ tokens, result }));
  // Nothing is known of the machine before the first one.
  expect(first).toEqual({ tokens: 128, result: "done" });
  expect(second).toEqual({ tokens: 512, result: "done" });
  expect(third).toEqual({ tokens: 512, result: "aborted" });
  expect(fourth?.tokens).toBeLessThanOrEqual(250);
  for (const id of [1, 2, 3, 4]) expect(one.events(id).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
});

test("requests that keep coming do not starve a long prompt: what is aborted is less than what is decoded", async () => {
  let next = 2;
  const one = scheduler(() => {
    if (one.events(1).length > 0 || one.running.slots().filter(({ busy }) => busy).length > 1) return;
    one.add(next++, 70, 2);
  }, true);
  one.add(1, 3500, 5);
  await one.rest();
  const aborted = one.passes.filter(({ result }) => result === "aborted");
  const sum = (passes: readonly AsyncDecode[]): number => tokensOf(passes).reduce((all, tokens) => all + tokens, 0);
  expect(aborted.length).toBeGreaterThan(1);
  expect(sum(aborted)).toBeLessThan(3500);
  expect(one.events(1).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
});
