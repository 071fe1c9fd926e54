import fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PreparedRequest } from "../../src/engines/llama/preparing/prepared-request.ts";
import { NativeContext } from "../../src/engines/llama/process/c-api/native-context.ts";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import { PromptCache } from "../../src/engines/llama/process/prompt-cache/prompt-cache.ts";
import { Scheduler } from "../../src/engines/llama/process/scheduler.ts";
import { Sequence } from "../../src/engines/llama/process/prompt-cache/sequence.ts";
import { Vocabulary } from "../../src/engines/llama/process/tokens/vocabulary.ts";
import type { SchedulerState } from "../../src/engines/llama/protocol.ts";
import { plainText } from "../../src/text/formats/format.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { type ProgrammedModel, writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { waitMs } from "../support/hang.ts";
import { openNativeModel } from "./native-model.ts";
import { runs } from "../support/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
let programmed: ProgrammedModel;
let model: NativeModel;
let vocabulary: Vocabulary;
beforeAll(() => {
  const path = join(folder, "programmed.gguf");
  programmed = writeProgrammedModel(path);
  model = openNativeModel(path);
  vocabulary = new Vocabulary(model);
});
afterAll(() => {
  model.free();
  rmSync(folder, { recursive: true, force: true });
});

/** A request of a client. Times are turns of the event loop, in which the scheduler makes about one pass. */
interface Plan {
  readonly owner: string | undefined;
  readonly at: number;
  readonly n: number;
  /** Tokens of the prompt; of those that begin alike, it shares so many with others. */
  readonly prompt: number;
  readonly alike: boolean;
  readonly maxTokens: number;
  readonly usesCache: boolean;
  /** The client leaves then. */
  readonly leavesAt: number | null;
  /** The client reads nothing in this time. */
  readonly pause: { readonly from: number; readonly to: number } | null;
}

interface Machine {
  readonly slots: number;
  readonly capacity: number;
  readonly unifiedKv: boolean;
  readonly queueLimit: number;
  readonly cacheMemory: number;
  readonly drafts: boolean;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  owner: fc.constantFrom(undefined, "a", "b"),
  at: fc.nat(60),
  n: fc.constantFrom(1, 1, 1, 2, 3),
  prompt: fc.integer({ min: 1, max: 250 }),
  alike: fc.boolean(),
  maxTokens: fc.oneof(fc.nat(20), fc.nat(250)),
  usesCache: fc.boolean(),
  leavesAt: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(120) }),
  pause: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.tuple(fc.nat(80), fc.nat(200)).map(([from, long]) => ({ from, to: from + long })) },
  ),
});

const machine: fc.Arbitrary<Machine> = fc.record({
  slots: fc.integer({ min: 1, max: 4 }),
  capacity: fc.constantFrom(256, 512, 1024),
  unifiedKv: fc.boolean(),
  queueLimit: fc.constantFrom(2, 50),
  // Nothing, about two conversations, all of them.
  cacheMemory: fc.constantFrom(0, 2 ** 20, 2 ** 26),
  drafts: fc.boolean(),
});

/** What became of a request. */
interface Followed {
  readonly plan: Plan;
  readonly id: number;
  readonly events: GenerationEvent[];
  arrived: boolean;
  left: boolean;
  /** Events that came after the last one, or after the client had left. */
  late: number;
  untaken: number;
  /** Choices of the same owner that waited when it came; how many owners there were at most. */
  ahead: number;
  begun: boolean;
  /** Others that began while it waited. */
  passedBy: number;
}

class Run {
  readonly context: NativeContext;
  readonly sequences: readonly Sequence[];
  readonly scheduler: Scheduler;
  readonly followed: readonly Followed[];
  state: SchedulerState | undefined;
  readonly #contextSize: number;

  constructor({ slots, capacity, unifiedKv, queueLimit, cacheMemory, drafts }: Machine, plans: readonly Plan[]) {
    const options = { capacity, sequences: slots, batchSize: 128, maxOutputs: 8, threads: 1, unifiedKv } as const;
    this.context = new NativeContext(model, { ...options, flashAttention: "off" });
    this.sequences = Array.from({ length: slots }, (_, id) => new Sequence(this.context, id));
    this.#contextSize = unifiedKv ? capacity : Math.floor(this.context.capacity / slots);
    this.followed = plans.map((each, id) => ({
      plan: each,
      id,
      events: [],
      arrived: false,
      left: false,
      late: 0,
      untaken: 0,
      ahead: 0,
      begun: false,
      passedBy: 0,
    }));
    this.scheduler = new Scheduler({
      environment: {
        model,
        context: this.context,
        vocabulary,
        contextSize: this.#contextSize,
        newCallId: () => "call_1",
        openConstraint: () => undefined,
        banReasoning: () => undefined,
        log: () => {},
      },
      sequences: this.sequences,
      promptCache: new PromptCache(cacheMemory, this.sequences),
      queueLimit,
      prefill: { maxTokens: 128, maxGapMs: 250, maxBatchMs: 10_000 },
      sharesPrefixes: true,
      speculation: drafts ? "always" : "off",
      report: ({ results, state }) => {
        this.state = state;
        for (const [id, tokens, events] of results) this.#hear(id, tokens, events);
        // A refusal is an end alone.
        const answered = results.filter(([, , events]) => events.length > 1 || events[0]?.type !== "end");
        this.#noteBegun(answered.flatMap(([id]) => this.followed[id] ?? []));
      },
      onCacheMiss: () => {},
      preparing: () => ({ waiting: 0, grammarsMade: 0 }),
      random: () => 0.5,
      clock: () => performance.now(),
    });
    void this.scheduler.run();
  }

  #hear(id: number, tokens: number, events: readonly GenerationEvent[]): void {
    const one = this.followed[id];
    if (!one) throw new Error("nobody has asked");
    if (one.left || isOver(one)) one.late++;
    one.events.push(...events);
    one.untaken += tokens;
  }

  /** Notes which requests have begun since the last call: those in a slot, and those `answered`. None of them has passed another one. */
  #noteBegun(answered: readonly Followed[] = []): void {
    const inSlots = this.scheduler
      .slots()
      .flatMap(({ task }) => (task === undefined ? [] : (this.followed[task] ?? [])));
    const begun = new Set([...answered, ...inSlots].filter((one) => !one.begun));
    for (const one of begun) one.begun = true;
    for (const other of this.followed) if (other.arrived && !other.begun && !other.left) other.passedBy += begun.size;
  }

  /** Does what is due in this turn; false: everything is over. */
  turn(now: number): boolean {
    this.#noteBegun();
    for (const one of this.followed) {
      const { at, leavesAt, pause } = one.plan;
      if (at === now) this.#add(one);
      if (leavesAt !== null && leavesAt <= now && one.arrived && !one.left && !isOver(one)) {
        one.left = true;
        this.scheduler.cancel(one.id);
      }
      const isPaused = pause && now >= pause.from && now < pause.to;
      if (one.untaken > 0 && !isPaused) {
        this.scheduler.consumed(one.id, one.untaken);
        one.untaken = 0;
      }
    }
    return this.followed.some((one) => !one.left && !isOver(one));
  }

  #add(one: Followed): void {
    const { owner, n, maxTokens, usesCache } = one.plan;
    one.arrived = true;
    one.ahead = this.followed
      .filter((other) => other !== one && other.plan.owner === owner && other.arrived && !isOver(other) && !other.left)
      .reduce((sum, other) => sum + other.plan.n, 0);
    const prompt = promptOf(one);
    const request: PreparedRequest = {
      id: one.id,
      requestId: `req_${one.id}`,
      preparingMs: 0,
      prompts: [{ type: "tokens", tokens: prompt }],
      n,
      bestOf: n,
      reading: { format: plainText, prefix: "", callsAllowed: false },
      sampling: { temperature: 0 },
      limits: { maxTokens, cachePrompt: usesCache },
      extras: {},
      echo: false,
      promptParam: "prompt",
    };
    this.scheduler.add(request, { prompts: [prompt], images: [] }, owner);
  }
}

function isOver({ events }: Followed): boolean {
  return events.at(-1)?.type === "end";
}

function promptOf({ plan: { prompt, alike }, id }: Followed): number[] {
  const first = alike ? [] : [65 + (id % 26)];
  const rest = Array.from({ length: prompt - first.length - 1 }, (_, at) => 97 + (at % 26));
  return [...first, ...rest, programmed.controlToken("<|script:endless|>")];
}

/**
 * Whether a request may wait while another one decodes a common prefix. A slot is kept free for it, and others may begin in the remaining slots.
 * 64: the tokens from which the queue waits for a prefix.
 */
function mayWaitForPrefix({ alike, usesCache, prompt }: Plan): boolean {
  return alike && usesCache && prompt >= 64;
}

function textOf(events: readonly GenerationEvent[], choice: number): string {
  return events
    .flatMap((event) => (event.type === "text-delta" && event.choice === choice ? [event.text] : []))
    .join("");
}

/** What is wrong with an answer; empty: nothing. */
function complaints(
  { plan: { n, maxTokens }, events, late, left }: Followed,
  said: string,
  contextSize: number,
): string[] {
  const wrong: string[] = [];
  const ends = events.filter((event) => event.type === "end");
  if (late > 0) wrong.push("something came after the end");
  if (left) return wrong;
  if (ends.length !== 1) wrong.push(`it ended ${ends.length} times`);
  const end = ends[0]?.end;
  if (end?.kind === "rejected") return events.length === 1 ? wrong : [...wrong, "it was refused in the middle"];
  if (end?.kind !== "done") wrong.push(`it ended with ${JSON.stringify(end)}`);
  for (let choice = 0; choice < n; choice++) {
    const own = events.filter((event) => "choice" in event && event.choice === choice);
    const finishes = own.filter((event) => event.type === "finish");
    if (finishes.length !== 1 || own.at(-1)?.type !== "finish") wrong.push(`choice ${choice} did not finish once`);
    const text = textOf(own, choice);
    if (!said.startsWith(text)) wrong.push(`choice ${choice} says something else: ${text.slice(0, 40)}`);
  }
  const usage = events.findLast((event) => event.type === "usage")?.usage;
  if (!usage || usage.completionTokens > n * maxTokens) wrong.push("it has too many tokens");
  if (usage && usage.promptTokens + usage.completionTokens / n > contextSize)
    wrong.push("it is longer than the context");
  return wrong;
}

/** What an endless answer says. */
async function endlessText(): Promise<string> {
  const run = new Run({ slots: 1, capacity: 1024, unifiedKv: true, queueLimit: 1, drafts: false, cacheMemory: 0 }, [
    {
      owner: undefined,
      at: 0,
      n: 1,
      prompt: 1,
      alike: true,
      maxTokens: 1000,
      usesCache: false,
      leavesAt: null,
      pause: null,
    },
  ]);
  await settle(run);
  run.context.free();
  return textOf(run.followed[0]?.events ?? [], 0);
}

/**
 * Lets it run until nobody waits and it waits for work: a pass that is under way is for somebody who has left. A long decode runs beside the
 * event loop, for any number of turns, so turns alone do not show that somebody waits for ever.
 */
async function settle(run: Run): Promise<void> {
  const begun = performance.now();
  for (let now = 0; run.turn(now) || run.scheduler.turn !== null; now++) {
    if (now > 100_000 && performance.now() - begun > waitMs) throw new Error("somebody waits for ever");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("whatever clients do, each request ends once, no slot stays taken, and nobody waits for ever", async () => {
  const said = await endlessText();
  await fc.assert(
    fc.asyncProperty(machine, fc.array(plan, { minLength: 1, maxLength: 14 }), async (made, plans) => {
      const run = new Run(made, plans);
      // If it throws, a decode may be running: the context cannot be freed then.
      await settle(run);
      try {
        const { slots, unifiedKv, capacity } = made;
        const contextSize = unifiedKv ? capacity : Math.floor(run.context.capacity / slots);
        expect(run.followed.map((one) => complaints(one, said, contextSize))).toEqual(plans.map(() => []));
        expect(run.scheduler.slots().filter(({ busy }) => busy)).toEqual([]);
        expect(run.state).toMatchObject({ busy: 0, queued: 0 });
        // What is known of each sequence is what its memory holds.
        expect(run.sequences.map(({ id }) => run.context.positions(id)[1] + 1)).toEqual(
          run.sequences.map(({ length }) => length),
        );
        const owners = new Set(plans.map(({ owner }) => owner)).size;
        for (const one of run.followed)
          if (one.begun && one.plan.n === 1 && !mayWaitForPrefix(one.plan))
            expect(one.passedBy).toBeLessThanOrEqual((one.ahead + 1) * owners);
      } finally {
        run.context.free();
      }
    }),
    runs(25),
  );
});
