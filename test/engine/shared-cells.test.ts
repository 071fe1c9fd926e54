import fc from "fast-check";
import { expect, test } from "vitest";
import type { PreparedRequest } from "../../src/engines/llama/preparing/prepared-request.ts";
import type { Speculation } from "../../src/engines/llama/process/batch/batch-planner.ts";
import { NativeContext } from "../../src/engines/llama/process/c-api/native-context.ts";
import { PromptCache } from "../../src/engines/llama/process/prompt-cache/prompt-cache.ts";
import { Scheduler } from "../../src/engines/llama/process/scheduler.ts";
import { commonLength, Sequence } from "../../src/engines/llama/process/prompt-cache/sequence.ts";
import { Vocabulary } from "../../src/engines/llama/process/tokens/vocabulary.ts";
import { plainText } from "../../src/text/formats/format.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { AnswerLimits } from "../../src/wire/core/request.ts";
import { useProgrammedModel } from "./native-model.ts";
import { runs } from "../support/runs.ts";

const opened = useProgrammedModel();

interface Sizes {
  /** Milliseconds that each look at the clock takes, in place of the real time. */
  readonly tick?: number;
  readonly slots: number;
  readonly unifiedKv: boolean;
  readonly cacheMemory: number;
}

/** A scheduler, of three slots unless `sizes` says otherwise, with this much capacity for all of them. */
function scheduler(
  capacity: number,
  speculation: Speculation = "off",
  { slots, unifiedKv, cacheMemory, tick }: Sizes = { slots: 3, unifiedKv: true, cacheMemory: 0 },
): {
  readonly sequences: readonly Sequence[];
  readonly counters: () => Readonly<Record<string, number>>;
  readonly ask: (
    prompt: readonly number[],
    maxTokens: number,
    limits?: AnswerLimits,
  ) => Promise<readonly GenerationEvent[]>;
} {
  const context = new NativeContext(opened.model, {
    capacity,
    sequences: slots,
    batchSize: 128,
    maxOutputs: 8,
    threads: 1,
    unifiedKv,
    flashAttention: "off",
  });
  const vocabulary = new Vocabulary(opened.model);
  const sequences = Array.from({ length: slots }, (_, id) => new Sequence(context, id));
  const waiting = new Map<number, (events: readonly GenerationEvent[]) => void>();
  const heard = new Map<number, GenerationEvent[]>();
  let counters: Readonly<Record<string, number>> = {};
  let time = 0;
  const running = new Scheduler({
    environment: {
      model: opened.model,
      context,
      vocabulary,
      contextSize: capacity,
      newCallId: () => "call_1",
      openConstraint: () => undefined,
      banReasoning: () => undefined,
      log: () => {},
    },
    sequences,
    promptCache: new PromptCache(cacheMemory, sequences),
    queueLimit: 10,
    prefill: { maxTokens: 128, maxGapMs: 250, maxBatchMs: 10_000 },
    sharesPrefixes: true,
    speculation,
    report({ results, state }) {
      counters = { ...state.counters };
      for (const [id, tokens, events] of results) {
        running.consumed(id, tokens);
        const all = [...(heard.get(id) ?? []), ...events];
        heard.set(id, all);
        if (all.at(-1)?.type === "end") waiting.get(id)?.(all);
      }
    },
    onCacheMiss: () => {},
    preparing: () => ({ waiting: 0, grammarsMade: 0 }),
    random: () => 0.5,
    clock: () => (tick === undefined ? performance.now() : (time += tick)),
  });
  void running.run();
  let ids = 0;
  return {
    sequences,
    counters: () => counters,
    ask(prompt, maxTokens, limits) {
      const id = ++ids;
      const request: PreparedRequest = {
        id,
        requestId: `req_${id}`,
        preparingMs: 0,
        prompts: [{ type: "tokens", tokens: prompt }],
        n: 1,
        bestOf: 1,
        reading: { format: plainText, prefix: "", callsAllowed: false },
        sampling: { temperature: 0 },
        limits: { maxTokens, ...limits },
        extras: {},
        echo: false,
        promptParam: "prompt",
      };
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        running.add(request, { prompts: [prompt], images: [] });
      });
    },
  };
}

function endless(): number[] {
  return [opened.programmed.controlToken("<|script:endless|>")];
}

function text(events: readonly GenerationEvent[]): string {
  return events.flatMap((event) => (event.type === "text-delta" ? [event.text] : [])).join("");
}

function outcome(events: readonly GenerationEvent[]): unknown {
  return events.flatMap((event) => (event.type === "finish" || event.type === "end" ? [event] : []));
}

const finished = [
  { type: "finish", reason: "length" },
  { type: "end", end: { kind: "done" } },
];

// With four slots one answer had a quarter of the memory, though the others were idle.
test("one answer may use the cells of all slots", async () => {
  const events = await scheduler(512).ask(endless(), 500);
  expect(outcome(events)).toMatchObject(finished);
  expect(events.findLast((event) => event.type === "usage")).toMatchObject({ usage: { completionTokens: 500 } });
});

test("answers that do not fit together are preempted, and do not change", async () => {
  const { ask, counters } = scheduler(256);
  const order: number[] = [];
  const asked = [0, 1, 2].map(async (number) => {
    const events = await ask(endless(), 200);
    order.push(number);
    return events;
  });
  const answers = await Promise.all(asked);
  expect(order).toEqual([0, 1, 2]);
  const alone = text(await scheduler(256).ask(endless(), 200));
  for (const events of answers) {
    expect(outcome(events)).toMatchObject(finished);
    expect(text(events)).toBe(alone);
  }
  expect(counters().generatedTokens).toBe(600);
});

test("the cells of idle slots are freed", async () => {
  const { ask } = scheduler(256);
  for (const first of [65, 66, 67, 68]) {
    const events = await ask([first, ...endless()], 150);
    expect(outcome(events)).toMatchObject(finished);
  }
});

test("prompts with a common prefix share its cells", async () => {
  const { ask, counters } = scheduler(512);
  const beginning = Array.from({ length: 300 }, (_, at) => 97 + (at % 26));
  await ask([...beginning, 65, ...endless()], 5);
  const answers = await Promise.all([66, 67, 68].map((own) => ask([...beginning, own, ...endless()], 20)));
  for (const events of answers) expect(outcome(events)).toMatchObject(finished);
  expect(counters().cachedTokens).toBe(3 * 300);
});

// Both processed the common prefix at the same time.
test.each([true, false])(
  "prompts that arrive together process a common prefix once (unified: %s)",
  async (unifiedKv) => {
    const { ask, counters } = scheduler(1536, "off", { slots: 3, unifiedKv, cacheMemory: 0 });
    const beginning = Array.from({ length: 300 }, (_, at) => 97 + (at % 26));
    const asked = [65, 66, 67].map((own) => ask([...beginning, own, ...endless()], 20));
    for (const events of await Promise.all(asked)) expect(outcome(events)).toMatchObject(finished);
    expect(counters()).toMatchObject({ promptTokens: 300 + 3 * 2, cachedTokens: 2 * 300 });
  },
);

// The prompt of a request that declines the cache was used for others while its answer ran.
test("a running prompt that declines the cache is not shared", async () => {
  const { ask, counters } = scheduler(1024);
  const beginning = Array.from({ length: 300 }, (_, at) => 97 + (at % 26));
  const running = ask([...beginning, 65, ...endless()], 200, { cachePrompt: false });
  // When this has ended, the other one's answer is running.
  await ask([70, ...endless()], 2);
  await ask([...beginning, 66, ...endless()], 20);
  expect(counters()).toMatchObject({ promptTokens: 302 + 2 + 302, cachedTokens: 0 });
  expect(outcome(await running)).toMatchObject(finished);
});

// Prompts of agents that take turns took a fifth longer next to the cells of the idle ones.
test("while a prompt is processed alone, idle slots hold no cells, and their tokens are in the prompt cache", async () => {
  const sizes = { slots: 2, unifiedKv: true, cacheMemory: 2 ** 27, tick: 1000 };
  const { ask, counters, sequences } = scheduler(1536, "off", sizes);
  const turns = (first: number, length: number): number[] => [
    ...Array.from({ length }, (_, at) => first + (at % 20)),
    ...endless(),
  ];
  for (const length of [300, 400, 500])
    for (const first of [65, 97]) {
      expect(outcome(await ask(turns(first, length), 2))).toMatchObject(finished);
      if (length > 300) expect(sequences.filter((sequence) => sequence.length > 0)).toHaveLength(1);
    }
  // Each turn processes what is new, and the token after it.
  expect(counters().promptTokens).toBe(2 * (301 + 101 + 101));
});

/** A prompt that begins with a share of an earlier one. */
const branch = fc.record({
  from: fc.nat(3),
  kept: fc.constantFrom(0, 60, 80, 100),
  growth: fc.integer({ min: 100, max: 400 }),
});
/** Fewer tokens are not copied to the cache when they are lost, and not copied back to a slot: a prompt may lose both. */
const minCopied = 64;

// A retry, an edited history or a common system prompt cost another conversation its tokens.
test("of conversations that branch, no prompt token is processed that was processed before, if all of them fit", async () => {
  const sizes = fc.record({
    slots: fc.integer({ min: 1, max: 3 }),
    unifiedKv: fc.boolean(),
    cacheMemory: fc.constant(2 ** 27),
  });
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(branch, { minLength: 3, maxLength: 9 }), async (made, branches) => {
      const { ask, counters } = scheduler(made.slots * 4096, "off", made);
      const prompts: number[][] = [];
      for (const { from, kept, growth } of branches) {
        const earlier = prompts.at(-1 - from) ?? [];
        const own = Array.from({ length: growth }, (_, at) => 65 + ((at * prompts.length + at) % 58));
        const beginning = earlier.slice(0, Math.floor((Math.min(earlier.length, 3000) * kept) / 100));
        const prompt = [...beginning, ...own, ...endless()];
        const known = Math.max(0, ...prompts.map((other) => commonLength(prompt, other)));
        prompts.push(prompt);
        const before = counters().promptTokens ?? 0;
        expect(outcome(await ask(prompt, 2))).toMatchObject(finished);
        expect((counters().promptTokens ?? 0) - before).toBeLessThan(prompt.length - known + 2 * minCopied);
      }
    }),
    runs(20),
  );
});

// Drafts need cells, too: an answer near its end was preempted until another one had ended, and cached prompts were lost.
test.each([91, 92, 93, 94])("drafts preempt no task, and free no cached prompt (%i tokens)", async (length) => {
  const { ask, counters } = scheduler(256, "always");
  // It is evaluated with two more tokens and one of its answer.
  const beginning = Array.from({ length: 256 - 2 * length - 3 }, (_, at) => 97 + (at % 26));
  await ask([...beginning, 65, ...endless()], 2);
  // With so many tokens they have said this, which nobody can guess; then all three fill the capacity to the last token.
  const said = " tick tack tock tuck".repeat(24).slice(0, length * 5);
  const answers = await Promise.all([0, 1].map(() => ask(endless(), 200, { stop: [said] })));
  for (const events of answers)
    expect(events).toContainEqual(expect.objectContaining({ type: "finish", reason: "stop" }));
  expect(counters().generatedTokens).toBe(2 + 2 * length);
  expect(counters().acceptedTokens).toBeGreaterThan(20);
  const before = counters().cachedTokens ?? 0;
  await ask([...beginning, 65, ...endless()], 2);
  expect((counters().cachedTokens ?? 0) - before).toBe(beginning.length + 1);
});
