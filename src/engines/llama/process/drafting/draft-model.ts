import type { LogListener } from "../../../../wire/core/generation-observer.ts";
import { AcceptanceRates, decay, expectedTokens, priorTokens, type Draft } from "../batch/drafter.ts";
import type { BatchPlanner } from "../batch/batch-planner.ts";
import { DecodeCosts, maxDraftTokens } from "../batch/decode-costs.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import { Sequence } from "../prompt-cache/sequence.ts";
import { argmax } from "../sampling/logits.ts";
import type { RunningSlot } from "../slot/slot.ts";
import type { Task } from "../slot/task.ts";
import type { DraftText, DraftToken } from "./draft-text.ts";

export interface DraftModelOptions {
  /** With a sequence for each slot. */
  readonly context: NativeContext;
  readonly newText: () => DraftText;
  /** Tokens of a draft at most. */
  readonly maxTokens: number;
  /** Tokens of a batch at most. */
  readonly batchSize: number;
  /** Longest time in milliseconds that the processing of a prompt may delay the next decode. */
  readonly maxGapMs: number;
  /** The duration of a decode relative to one of the answering model, before one was measured. */
  readonly assumedCost: number;
  /** Drafts whether they are worth their cost or not. */
  readonly always: boolean;
  readonly log: LogListener;
  /** Milliseconds, for the duration of decodes. */
  readonly clock: () => number;
}

/** A decode that is expected to take longer runs in another thread. Milliseconds. */
const minAsyncMs = 20;
/** Text that the draft model lacks is processed in a decode of its own from this number of tokens on. */
const minLag = 16;
const minPromptChunk = 64;
/** A draft ends before it becomes less likely than this to be accepted, or less likely than its cost in decodes of the answering model. */
const minProbability = 0.05;
const maxMinProbability = 0.5;
/** The acceptance rate that is assumed first, and the number of groups of tokens by the draft model's confidence. */
const priorRate = 0.6;
const confidenceGroups = 8;
/** Drafts must pay more to begin than to go on: acceptance rates that vary by chance would turn them on and off. */
const minGains = { off: 1.15, on: 1.05 } as const;
/** Drafts that do not pay are tried again, with this number of tokens, in this share of the time. They are only compared with the answer. */
const trialDepth = 8;
const trialShare = 0.015;

/** What the draft model knows of one slot. */
interface Follower {
  readonly sequence: Sequence;
  readonly task: Task;
  readonly text: DraftText;
  /** The acceptance rate of all draft tokens, and by the draft model's confidence; absent before the first draft was compared. */
  rates?: Rates;
  /** The text in the draft model's tokens, and the number of the sequence's tokens that are known to be of it. */
  tokens: readonly number[];
  known: number;
  /** The last draft in tokens of the answering model, and the length of prompt and answer before it. */
  last: { readonly at: number; readonly tokens: readonly DraftToken[]; compared: number } | undefined;
}

interface Rates {
  readonly all: AcceptanceRates;
  readonly byConfidence: ConfidenceRates;
}

/** A draft in progress. */
interface Drafting {
  readonly follower: Follower;
  readonly max: number;
  readonly drafted: DraftToken[];
  probability: number;
}

/**
 * A small model that drafts the tokens of a larger one. It has a sequence for each slot, which follows the text of the slot's task: before
 * each decode of the answering model, it drafts greedily how each answer continues. The answering model then samples as without drafts, and
 * accepts each draft token that it has sampled itself.
 *
 * The depth of the drafts is chosen from the acceptance rates of the tasks and from the measured costs of both models. Drafts that do not
 * pay are tried in a small share of the time, unless even accepted drafts would not pay. A token of the answer is compared with its draft
 * whether the draft was decoded or not.
 */
export class DraftModel {
  readonly #options: DraftModelOptions;
  readonly #costs = new DecodeCosts();
  /** The smoothed duration of drafting one token for each of a number of drafts, with sampling, in milliseconds. */
  readonly #stepsMs = new Map<number, number>();
  readonly #sequences = new Map<number, Sequence>();
  readonly #followers = new Map<number, Follower>();
  /** Of all tasks: where the rates of a new one start. */
  readonly #rates: Rates = {
    all: new AcceptanceRates([priorRate]),
    byConfidence: new ConfidenceRates(),
  };
  #isOn = true;
  /** Milliseconds that drafts may take of which no token is verified. */
  #spareMs = 0;
  /** The last drafts that were made to be verified: how long they took, and the number of verified tokens before them. */
  #last: { readonly tasks: readonly Task[]; readonly ms: number; readonly verified: number } | undefined;
  #hasFailed = false;

  constructor(options: DraftModelOptions) {
    this.#options = options;
  }

  /** Drafts for the next batch of `planner`, and offers the drafts to the tasks. Never rejects: without a draft, a task continues alone. */
  async draft(slots: readonly RunningSlot[], planner: BatchPlanner): Promise<void> {
    if (this.#hasFailed || !planner.considersDrafts(slots)) return;
    try {
      await this.#draft(slots, planner);
    } catch (error) {
      this.#hasFailed = true;
      this.#options.log(`The draft model failed and is no longer used: ${String(error)}`, "warn");
    }
  }

  async #draft(slots: readonly RunningSlot[], planner: BatchPlanner): Promise<void> {
    const all = slots.flatMap((slot) => this.#follow(slot) ?? []);
    this.#countLast();
    const { maxTokens, always } = this.#options;
    const open = all.filter((follower) => !this.#isKnown(follower));
    if (open.length === 0) return;
    if (always) return this.#draftFor(open, maxTokens, slots, planner);
    const options = {
      maxDepth: maxTokens,
      minGain: minGains[this.#isOn ? "on" : "off"],
      draftingMs: (tokens: number) => tokens * this.#stepMs(open.length, slots, planner),
      ofText: all
        .filter((follower) => !open.includes(follower))
        .map(({ task }) => task.draft(task.maxDraft).probabilities),
    };
    const rates = open.map((follower) => this.#rateOf(follower));
    const depth = planner.draftDepth(slots, rates, options);
    this.#isOn = depth > 0 && this.#spareMs >= 0;
    if (this.#isOn) return this.#draftFor(open, depth, slots, planner);
    const perfect = open.map(() => 1);
    if (planner.draftDepth(slots, perfect, options) > 0) await this.#try(open, slots, planner);
  }

  /** Drafts for all if there is time for that, to learn how often the drafts are accepted; at last for those that lack the least text. */
  async #try(open: readonly Follower[], slots: readonly RunningSlot[], planner: BatchPlanner): Promise<void> {
    const { maxGapMs, maxTokens, clock } = this.#options;
    const maxSpareMs = Math.max(maxGapMs, trialDepth * this.#stepMs(open.length, slots, planner));
    this.#spareMs = Math.min(maxSpareMs, this.#spareMs + trialShare * (planner.costs.roundMs(slots.length) ?? 0));
    const tokenMs = this.#costs.promptTokenMs(minPromptChunk) ?? 0;
    const tried: Follower[] = [];
    let lagMs = 0;
    for (const follower of open.toSorted((one, other) => lag(one) - lag(other))) {
      if (lagMs + trialDepth * this.#stepMs(tried.length + 1, slots, planner) > this.#spareMs) break;
      tried.push(follower);
      lagMs += tokenMs * lag(follower);
    }
    if (tried.length < open.length && this.#spareMs < maxSpareMs) return;
    const started = clock();
    const ready = await this.#catchUp(tried);
    await this.#draftReady(ready, Math.min(trialDepth, maxTokens), 0);
    this.#spareMs -= clock() - started;
  }

  /** The acceptance rate of a task's draft tokens. */
  #rateOf({ rates }: Follower): number {
    return (rates ?? this.#rates).all.rate(0);
  }

  /** The probability that a task accepts a draft token of this confidence: at first its own rate, changed as for other tasks. */
  #probability(follower: Follower, confidence: number): number {
    const { all, byConfidence } = this.#rates;
    const rate = this.#rateOf(follower);
    const overall = all.rate(0);
    const prior = Math.min(1, (rate * byConfidence.rate(confidence, overall)) / overall);
    return follower.rates?.byConfidence.rate(confidence, prior) ?? prior;
  }

  /** The text repeats, and a draft from it is likely to be longer than one of the model. */
  #isKnown(follower: Follower): boolean {
    const { task } = follower;
    const rate = this.#rateOf(follower);
    const ofText = expectedTokens(task.draft(task.maxDraft));
    let ofModel = 0;
    for (let depth = 1; depth <= this.#options.maxTokens; depth++) ofModel += rate ** depth;
    return ofText > ofModel;
  }

  async #draftFor(
    open: readonly Follower[],
    depth: number,
    slots: readonly RunningSlot[],
    planner: BatchPlanner,
  ): Promise<void> {
    const ready = await this.#catchUp(open);
    if (ready.length === 0) return;
    const tokenMs = (planner.costs.roundMs(slots.length) ?? Infinity) / slots.length;
    const cost = this.#stepMs(ready.length, slots, planner) / ready.length / tokenMs;
    const min = Math.max(minProbability, Math.min(maxMinProbability, cost));
    const tasks = ready.map(({ task }) => task);
    const started = this.#options.clock();
    await this.#draftReady(ready, depth, this.#options.always ? 0 : min);
    this.#last = { tasks, ms: this.#options.clock() - started, verified: verifiedTokens(tasks) };
  }

  /** Drafts of which none was verified have wasted time. */
  #countLast(): void {
    const last = this.#last;
    if (!last) return;
    this.#last = undefined;
    if (verifiedTokens(last.tasks) === last.verified) this.#spareMs -= last.ms;
    else if (this.#spareMs < 0) this.#spareMs = Math.min(0, this.#spareMs + last.ms);
  }

  /** Expected duration of drafting one token for each of `count` drafts, in milliseconds. */
  #stepMs(count: number, slots: readonly RunningSlot[], planner: BatchPlanner): number {
    return this.#stepsMs.get(count) ?? this.#options.assumedCost * (planner.costs.roundMs(slots.length) ?? 0);
  }

  /** The state for a slot, with its last draft compared with the answer; `undefined` if nothing can be drafted for it. */
  #follow(slot: RunningSlot): Follower | undefined {
    const { task } = slot;
    let follower = this.#followers.get(slot.id);
    if (follower?.task !== task) {
      follower = this.#newFollower(slot);
      this.#followers.set(slot.id, follower);
    }
    this.#compare(follower);
    if (task.maxDraft <= 0 || task.drafts.isStopped) return undefined;
    const tokens = follower.text.read(task.tokens);
    if (!tokens || tokens.length === 0) return undefined;
    follower.tokens = tokens;
    const { sequence } = follower;
    while (follower.known < sequence.length && sequence.tokens[follower.known] === tokens[follower.known])
      follower.known++;
    // The last token is decoded in any case, because its logits are needed.
    follower.known = sequence.truncate(Math.min(follower.known, tokens.length - 1));
    return follower;
  }

  #newFollower({ id, task }: RunningSlot): Follower {
    let sequence = this.#sequences.get(id);
    if (!sequence) this.#sequences.set(id, (sequence = new Sequence(this.#options.context, id)));
    return {
      sequence,
      task,
      text: this.#options.newText(),
      tokens: [],
      known: 0,
      last: undefined,
    };
  }

  /** Compares the last draft with the tokens that were sampled since. */
  #compare(follower: Follower): void {
    const { last, task } = follower;
    if (!last) return;
    follower.rates ??= { all: this.#rates.all.copy(), byConfidence: new ConfidenceRates() };
    for (; last.compared < last.tokens.length; last.compared++) {
      const sampled = task.tokens[last.at + last.compared];
      const drafted = last.tokens[last.compared];
      // Of a draft that was not verified, one token after another is sampled later.
      if (sampled === undefined || drafted === undefined) return;
      const isAccepted = sampled === drafted.token;
      for (const rates of [this.#rates, follower.rates]) {
        rates.all.observe(0, isAccepted);
        rates.byConfidence.observe(drafted.confidence, isAccepted);
      }
      if (!isAccepted) break;
    }
    follower.last = undefined;
  }

  /**
   * Processes text that the draft model lacks, at most one chunk, so that the next decode of the answering model is not delayed for long.
   * Returns those that lack little.
   */
  async #catchUp(followers: readonly Follower[]): Promise<readonly Follower[]> {
    const lagging = followers.filter((follower) => lag(follower) >= minLag);
    if (lagging.length === 0) return followers;
    const { batchSize, maxGapMs, context } = this.#options;
    const tokenMs = this.#costs.promptTokenMs(minPromptChunk) ?? maxGapMs / minPromptChunk;
    let free = Math.min(batchSize, Math.max(minPromptChunk, Math.floor(maxGapMs / tokenMs)));
    const { batch } = context;
    batch.clear();
    const chunks: { readonly follower: Follower; readonly tokens: readonly number[] }[] = [];
    for (const follower of lagging) {
      const { sequence } = follower;
      const tokens = follower.tokens.slice(sequence.length, sequence.length + Math.min(free, lag(follower)));
      free -= tokens.length;
      for (const [i, token] of tokens.entries()) batch.add(token, sequence.length + i, sequence.id, false);
      if (tokens.length > 0) chunks.push({ follower, tokens });
    }
    const isDone = await this.#decode({ answers: 0, promptTokens: batch.length, draftTokens: 0 });
    if (!isDone) return [];
    for (const { follower, tokens } of chunks) {
      follower.sequence.append(tokens);
      follower.known = follower.sequence.length;
    }
    return followers.filter((follower) => lag(follower) < minLag);
  }

  /** Drafts `depth` tokens for each, fewer where they become less likely than `min`, and offers them. */
  async #draftReady(followers: readonly Follower[], depth: number, min: number): Promise<void> {
    const all = followers.map((follower): Drafting => {
      return { follower, max: Math.min(depth, follower.task.maxDraft), drafted: [], probability: 1 };
    });
    const { context, clock } = this.#options;
    const started = clock();
    let running = all;
    let steps = 0;
    while (running.length > 0) {
      steps++;
      const { batch } = context;
      batch.clear();
      const outputs = running.map((drafting) => {
        const { sequence, tokens } = drafting.follower;
        const last = drafting.drafted.at(-1);
        const next = last ? [last.token] : tokens.slice(sequence.length);
        let index = 0;
        for (const [i, token] of next.entries())
          index = batch.add(token, sequence.length + i, sequence.id, i === next.length - 1);
        return { drafting, next, index };
      });
      const draftTokens = Math.min(maxDraftTokens, batch.length - running.length);
      if (!(await this.#decode({ answers: running.length, promptTokens: 0, draftTokens }))) return;
      running = outputs.flatMap(({ drafting, next, index }) => {
        const { follower, drafted, max } = drafting;
        const { sequence } = follower;
        sequence.append(next);
        if (drafted.length === 0) {
          follower.known = sequence.length;
          // What follows is removed again, which such a model cannot do without one.
          if (context.model.needsCheckpoints) sequence.checkpoint();
        }
        const sampled = likeliest(context.logits(index));
        drafting.probability *= this.#probability(follower, sampled.confidence);
        if (drafting.probability < min || context.model.endsGeneration(sampled.token)) return [];
        drafted.push(sampled);
        return drafted.length < max ? [drafting] : [];
      });
    }
    if (steps > 0) this.#observeSteps(all.length, (clock() - started) / steps);
    for (const { follower, drafted } of all) this.#offer(follower, drafted);
  }

  #observeSteps(count: number, ms: number): void {
    const known = this.#stepsMs.get(count) ?? ms;
    // Limited, because other load on the machine says little.
    this.#stepsMs.set(count, known + (Math.min(2 * known, ms) - known) * 0.2);
  }

  #offer(follower: Follower, drafted: readonly DraftToken[]): void {
    const { task, text } = follower;
    const tokens = drafted.length === 0 ? [] : text.translate(drafted);
    const at = task.tokens.length;
    follower.last = { at, tokens, compared: 0 };
    const probabilities: number[] = [];
    for (const { confidence } of tokens)
      probabilities.push((probabilities.at(-1) ?? 1) * this.#probability(follower, confidence));
    const draft: Draft = { tokens: tokens.map(({ token }) => token), probabilities, isPredicted: false };
    task.drafts.offer(at, draft);
  }

  /** Decodes the batch. Returns false if there were no free cells; then all sequences start again. */
  async #decode(shape: {
    readonly answers: number;
    readonly promptTokens: number;
    readonly draftTokens: number;
  }): Promise<boolean> {
    const { context, clock } = this.#options;
    const whole = { ...shape, round: shape.answers };
    const isLong = this.#costs.expectedMs(whole) >= minAsyncMs || shape.promptTokens > 0;
    const started = clock();
    const result = isLong ? await context.decodeAsync() : context.decode();
    if (result === "done") {
      this.#costs.observe(whole, clock() - started);
      return true;
    }
    for (const sequence of this.#sequences.values()) sequence.clear();
    for (const follower of this.#followers.values()) follower.known = 0;
    return false;
  }
}

/** Draft tokens that the answering model has verified. */
function verifiedTokens(tasks: readonly Task[]): number {
  return tasks.reduce((sum, { drafts }) => sum + drafts.draftedTokens, 0);
}

/** Tokens of the text that the draft model has not processed, without the last one. */
function lag({ tokens, sequence }: Follower): number {
  return tokens.length - 1 - sequence.length;
}

/** How often drafted tokens were right lately, by the draft model's confidence. */
class ConfidenceRates {
  readonly #groups = Array.from({ length: confidenceGroups }, () => ({ accepted: 0, total: 0 }));

  observe(confidence: number, accepted: boolean): void {
    const group = this.#group(confidence);
    group.accepted = group.accepted * decay + (accepted ? 1 : 0);
    group.total = group.total * decay + 1;
  }

  /** The rate, as if some more tokens had been observed with the rate `prior`. */
  rate(confidence: number, prior: number): number {
    const { accepted, total } = this.#group(confidence);
    return (accepted + prior * priorTokens) / (total + priorTokens);
  }

  #group(confidence: number): { accepted: number; total: number } {
    const at = Math.min(confidenceGroups - 1, Math.floor(confidence * confidenceGroups));
    return this.#groups[at] ?? { accepted: 0, total: 0 };
  }
}

/** Less likely tokens do not count for the confidence: exp() of half of a large vocabulary takes longer than a decode of a small model. */
const minDifference = 5;
/** Logits that are compared in one condition. */
const unrolled = 8;

/** The likeliest token with its probability among those that are nearly as likely. */
export function likeliest(logits: Float32Array): DraftToken {
  const token = argmax(logits);
  const largest = logits[token] ?? 0;
  const least = largest - minDifference;
  let sum = 0;
  const add = (from: number, to: number): void => {
    for (let at = from; at < to; at++) {
      const logit = logits[at] ?? 0;
      if (logit > least) sum += Math.exp(logit - largest);
    }
  };
  const whole = logits.length - (logits.length % unrolled);
  for (let from = 0; from < whole; from += unrolled)
    if (
      (logits[from] ?? 0) > least ||
      (logits[from + 1] ?? 0) > least ||
      (logits[from + 2] ?? 0) > least ||
      (logits[from + 3] ?? 0) > least ||
      (logits[from + 4] ?? 0) > least ||
      (logits[from + 5] ?? 0) > least ||
      (logits[from + 6] ?? 0) > least ||
      (logits[from + 7] ?? 0) > least
    )
      add(from, from + unrolled);
  add(whole, logits.length);
  return { token, confidence: 1 / sum };
}
