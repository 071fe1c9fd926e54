import type { LogListener } from "../../../../core/generation-observer.ts";
import { AcceptanceRates, expectedTokens, type Draft } from "../batch/drafter.ts";
import type { BatchPlanner } from "../batch/batch-planner.ts";
import { DecodeCosts, maxDraftTokens } from "../batch/decode-costs.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import { Sequence } from "../prompt-cache/sequence.ts";
import { argmax, sumOfExp } from "../sampling/logits.ts";
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
/** Tokens of an answer after which drafts that do not pay are tried again; the interval doubles while they do not. */
const retryTokens = { min: 32, max: 2048 } as const;
const retryDepth = 4;

/** What the draft model knows of one slot. */
interface Follower {
  readonly sequence: Sequence;
  readonly task: Task;
  readonly text: DraftText;
  /** The acceptance rate of all draft tokens, and by the draft model's confidence. */
  readonly rate: AcceptanceRates;
  readonly byConfidence: AcceptanceRates;
  /** The text in the draft model's tokens, and the number of the sequence's tokens that are known to be of it. */
  tokens: readonly number[];
  known: number;
  /** The last draft in tokens of the answering model, and the length of prompt and answer before it. */
  last: { readonly at: number; readonly tokens: readonly DraftToken[] } | undefined;
  /** Nothing is drafted before the answer has this number of tokens. */
  notBefore: number;
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
 * pay are not made, and are tried again after more and more tokens. A token of the answer is compared with its draft whether the draft was
 * decoded or not.
 */
export class DraftModel {
  readonly #options: DraftModelOptions;
  readonly #costs = new DecodeCosts();
  readonly #sequences = new Map<number, Sequence>();
  readonly #followers = new Map<number, Follower>();
  /** Of all tasks: where the rates of a new one start. */
  readonly #rate = new AcceptanceRates([priorRate]);
  readonly #byConfidence = new AcceptanceRates(
    Array.from({ length: confidenceGroups }, (_, group) => (group + 0.5) / confidenceGroups),
  );
  #retryAfter: number = retryTokens.min;
  /** The last attempt did not pay. */
  #isOff = false;
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
    const { maxTokens, always } = this.#options;
    const open = all.filter((follower) => !this.#isKnown(follower));
    if (open.length === 0) return;
    const rates = open.map(({ rate }) => rate.rate(0));
    const depth = always
      ? maxTokens
      : planner.draftDepth(slots, rates, {
          maxDepth: maxTokens,
          draftingMs: (tokens) => tokens * this.#stepMs(open.length, slots, planner),
          ofText: all
            .filter((follower) => !open.includes(follower))
            .map(({ task }) => expectedTokens(task.draft(task.maxDraft))),
        });
    if (depth > 0) {
      this.#retryAfter = retryTokens.min;
      this.#isOff = false;
      return this.#draftFor(open, depth, slots, planner);
    }
    this.#isOff = true;
    const due = open.filter(({ task, notBefore }) => task.generatedTokens >= notBefore);
    if (due.length === 0) return;
    const ready = await this.#catchUp(due);
    if (ready.length === 0) return;
    for (const follower of ready) follower.notBefore = follower.task.generatedTokens + this.#retryAfter;
    this.#retryAfter = Math.min(retryTokens.max, this.#retryAfter * 2);
    await this.#draftReady(ready, Math.min(retryDepth, maxTokens), 0);
  }

  /** The text repeats, and a draft from it is likely to be longer than one of the model. */
  #isKnown({ task, rate }: Follower): boolean {
    const ofText = expectedTokens(task.draft(task.maxDraft));
    let ofModel = 0;
    for (let depth = 1, each = rate.rate(0); depth <= this.#options.maxTokens; depth++) ofModel += each ** depth;
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
    await this.#draftReady(ready, depth, this.#options.always ? 0 : min);
  }

  /** Expected duration of a decode with one token for each of `count` drafts, in milliseconds. */
  #stepMs(count: number, slots: readonly RunningSlot[], planner: BatchPlanner): number {
    const measured = this.#costs.decodeMs(count, 0);
    return measured ?? this.#options.assumedCost * (planner.costs.roundMs(slots.length) ?? 0);
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
      rate: this.#rate.copy(),
      byConfidence: this.#byConfidence.copy(),
      tokens: [],
      known: 0,
      last: undefined,
      notBefore: this.#isOff ? this.#retryAfter : 0,
    };
  }

  /** Compares the last draft with the tokens that were sampled since. */
  #compare(follower: Follower): void {
    const { last, task } = follower;
    if (!last) return;
    follower.last = undefined;
    for (const [i, { token, confidence }] of last.tokens.entries()) {
      const sampled = task.tokens[last.at + i];
      if (sampled === undefined) return;
      const isAccepted = sampled === token;
      for (const rate of [this.#rate, follower.rate]) rate.observe(0, isAccepted);
      for (const rates of [this.#byConfidence, follower.byConfidence]) rates.observe(groupOf(confidence), isAccepted);
      if (!isAccepted) return;
    }
  }

  /**
   * Processes text that the draft model lacks, at most one chunk, so that the next decode of the answering model is not delayed for long.
   * Returns those that lack little.
   */
  async #catchUp(followers: readonly Follower[]): Promise<readonly Follower[]> {
    const lag = ({ tokens, sequence }: Follower): number => tokens.length - 1 - sequence.length;
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
    const { context } = this.#options;
    let running = all;
    while (running.length > 0) {
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
        drafting.probability *= follower.byConfidence.rate(groupOf(sampled.confidence));
        if (drafting.probability < min || context.model.endsGeneration(sampled.token)) return [];
        drafted.push(sampled);
        return drafted.length < max ? [drafting] : [];
      });
    }
    for (const { follower, drafted } of all) this.#offer(follower, drafted);
  }

  #offer(follower: Follower, drafted: readonly DraftToken[]): void {
    const { task, text, byConfidence } = follower;
    const tokens = drafted.length === 0 ? [] : text.translate(drafted);
    const at = task.tokens.length;
    follower.last = { at, tokens };
    const probabilities: number[] = [];
    for (const { confidence } of tokens)
      probabilities.push((probabilities.at(-1) ?? 1) * byConfidence.rate(groupOf(confidence)));
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

function groupOf(confidence: number): number {
  return Math.min(confidenceGroups - 1, Math.floor(confidence * confidenceGroups));
}

function likeliest(logits: Float32Array): DraftToken {
  const token = argmax(logits);
  return { token, confidence: 1 / sumOfExp(logits, logits[token] ?? 0) };
}
