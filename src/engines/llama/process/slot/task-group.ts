import type { GenerationEvent, GenerationFailure, Usage } from "../../../../core/events.ts";
import { FailureError } from "../../../../core/failure.ts";
import { contextLengthExceeded } from "../../context-length.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { WrittenText } from "../../protocol.ts";
import { Choice, type TaskEnvironment } from "./task.ts";
import { choiceSeed } from "../sampling/logits.ts";

/** How many tokens a request's sequences may be ahead of its reader, for each of its choices. */
const mostAhead = 64;

/** One request: its choices, its usage, its end. Made from a message; throws FailureError for what cannot be served. */
export class RequestRun {
  readonly id: number;
  readonly choices: readonly Choice[];
  cancelled = false;

  readonly #message: PreparedRequest;
  readonly #promptTokens: number;
  readonly #arrived = performance.now();
  readonly #choicesPerPrompt: number;
  #begun: number | undefined;
  #firstToken: number | undefined;
  /** Tokens that the reader has taken. */
  #takenTokens = 0;
  #toldTokens = 0;
  #ended = false;
  #promptTold = false;
  /** Events are kept until all is known where the best of several choices are asked for. */
  #kept: GenerationEvent[] | undefined;

  /** `prompts`: their tokens. `chance`: uniform in [0, 1), for a request without a seed. */
  constructor(
    around: TaskEnvironment,
    message: PreparedRequest,
    prompts: readonly (readonly number[])[],
    chance: () => number,
  ) {
    this.id = message.id;
    this.#message = message;
    this.#choicesPerPrompt = Math.max(message.n, message.bestOf);
    if (this.#choicesPerPrompt > message.n) this.#kept = [];
    for (const prompt of prompts) checkLength(prompt, around.contextSize, message);
    this.#promptTokens = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    const seed = message.sampling.seed ?? Math.floor(chance() * 2 ** 32);
    this.choices = prompts.flatMap((prompt, p) =>
      Array.from({ length: this.#choicesPerPrompt }, (_, i) => {
        const number = p * this.#choicesPerPrompt + i;
        return new Choice(around, { message, number, prompt, seed: choiceSeed(seed, number) });
      }),
    );
  }

  /** The reader is close enough behind for another step. */
  get mayRunOn(): boolean {
    return this.#ahead < mostAhead * this.choices.length;
  }

  /** How many tokens each choice may come further ahead of the reader. */
  get tokensAhead(): number {
    return Math.floor(mostAhead - this.#ahead / this.choices.length);
  }

  get #generated(): number {
    return this.choices.reduce((sum, choice) => sum + choice.generatedTokens, 0);
  }

  /** Tokens that the reader has not taken yet, whether it was told of them or not. */
  get #ahead(): number {
    return this.#generated - this.#takenTokens;
  }

  /** Its news are told as they come: each chunk is to have the usage so far. */
  get isToldAtOnce(): boolean {
    return this.#message.telling.wantsRunningUsage === true;
  }

  get ended(): boolean {
    return this.#ended;
  }

  taken(tokens: number): void {
    this.#takenTokens += tokens;
  }

  /** A choice got its sequence. */
  begins(): void {
    this.#begun ??= performance.now();
  }

  /** What became known since the last call: how many tokens, and their events, up to the request's end. */
  takeNews(): { tokens: number; events: GenerationEvent[]; written?: WrittenText[] } {
    const generated = this.#generated;
    const tokens = generated - this.#toldTokens;
    this.#toldTokens = generated;
    if (generated > 0) this.#firstToken ??= performance.now();
    let events = this.choices.flatMap((choice) => choice.takeEvents());
    // What the prompt cost is known before anything is said. Of several prompts it is not: others may still wait for a slot.
    if (events.length > 0 && this.#message.telling.wantsRunningUsage) {
      events.unshift({ type: "usage", usage: this.#usage() });
    } else if (events.length > 0 && !this.#promptTold && this.#message.prompts.length === 1) {
      this.#promptTold = true;
      events.unshift({ type: "usage", usage: { ...this.#usage(), completionTokens: 0, completionDetails: {} } });
    }
    if (this.#kept) {
      this.#kept.push(...events);
      events = [];
    }
    if (!this.#ended && this.choices.every((choice) => choice.finished)) {
      this.#ended = true;
      if (this.#kept) events = this.#best(this.#kept);
      events.push(this.#usageEvent(), { type: "end", end: { kind: "done" } });
    }
    return { tokens, events, ...(this.#message.inspected && { written: this.#takeWritten() }) };
  }

  #takeWritten(): WrittenText[] {
    return this.choices.flatMap((choice): WrittenText[] => {
      const text = choice.takeWritten();
      return text === "" ? [] : [[choice.number, text]];
    });
  }

  /** The request ends here, for this reason, behind what it said so far. */
  fail(failure: GenerationFailure): GenerationEvent[] {
    const { events } = this.takeNews();
    if (this.#ended) return events;
    this.#ended = true;
    return [...events, { type: "end", end: { kind: "engine-error", failure } }];
  }

  /** The n choices of each prompt with the highest mean logprob, numbered anew. */
  #best(events: readonly GenerationEvent[]): GenerationEvent[] {
    const mean = (choice: Choice): number => choice.logprobSum / Math.max(1, choice.generatedTokens);
    const renumbered = new Map<number, number>();
    this.#message.prompts.forEach((_, p) => {
      const own = this.choices.slice(p * this.#choicesPerPrompt, (p + 1) * this.#choicesPerPrompt);
      own
        .sort((a, b) => mean(b) - mean(a))
        .slice(0, this.#message.n)
        .forEach((choice, i) => renumbered.set(choice.number, p * this.#message.n + i));
    });
    return events.flatMap((event) => {
      if (!("choice" in event) || event.choice === undefined) return [event];
      const choice = renumbered.get(event.choice);
      return choice === undefined ? [] : [{ ...event, choice }];
    });
  }

  #usage(): Usage & { readonly promptDetails: { readonly cached_tokens: number } } {
    const sum = (of: (choice: Choice) => number): number =>
      this.choices.reduce((total, choice) => total + of(choice), 0);
    // The prompt counts once, so its cached part does, too: as its first choice found it.
    const cached = sum((choice) => (choice.number % this.#choicesPerPrompt === 0 ? choice.cachedTokens : 0));
    return {
      promptTokens: this.#promptTokens,
      completionTokens: sum((choice) => choice.generatedTokens),
      promptDetails: { cached_tokens: cached },
      completionDetails: {
        reasoning_tokens: sum((choice) => choice.reasoningTokens),
        ...(this.#message.prediction !== undefined && {
          accepted_prediction_tokens: sum(({ guesses }) => guesses.predicted.accepted),
          rejected_prediction_tokens: sum(({ guesses }) => guesses.predicted.rejected),
        }),
      },
    };
  }

  #usageEvent(): GenerationEvent {
    const now = performance.now();
    const begun = this.#begun ?? now;
    const firstToken = this.#firstToken ?? now;
    const usage = this.#usage();
    const draftedTokens = this.choices.reduce((sum, choice) => sum + choice.guesses.drafted, 0);
    const acceptedTokens = this.choices.reduce((sum, choice) => sum + choice.guesses.accepted, 0);
    const { completionTokens } = usage;
    const { cached_tokens: cached } = usage.promptDetails;
    const promptMs = firstToken - begun;
    const generationMs = now - firstToken;
    return {
      type: "usage",
      usage,
      timings: {
        preparingMs: this.#message.preparingMs,
        queuedMs: begun - this.#arrived,
        promptMs,
        generationMs,
        promptTokensPerSecond: rate(this.#promptTokens - cached, promptMs),
        tokensPerSecond: rate(completionTokens, generationMs),
        ...(draftedTokens > 0 && { draftedTokens, acceptedTokens }),
      },
    };
  }
}

function rate(tokens: number, ms: number): number {
  return ms > 0 ? (tokens * 1000) / ms : 0;
}

function checkLength(prompt: readonly number[], contextSize: number, message: PreparedRequest): void {
  // The cache holds one token less than the context: the last sampled token is never evaluated.
  if (prompt.length > contextSize - 1)
    throw new FailureError(contextLengthExceeded(contextSize, prompt.length, message.promptParam));
}
