import type { GenerationEvent, GenerationFailure, Usage } from "../../../../wire/core/events.ts";
import { FailureError } from "../../../../wire/core/failure.ts";
import type { PlacedImage } from "../../vision/prompt-images.ts";
import { contextLengthExceeded } from "../../context-length.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { RawText } from "../../protocol.ts";
import { choiceSeed } from "../sampling/logits.ts";
import { Task, type TaskEnvironment, type TaskRequest } from "./task.ts";

/** Tokens that each task of a request may be ahead of its client. */
const maxTokensAhead = 64;

export interface TaskGroupOptions {
  readonly message: PreparedRequest;
  /** The tokens of each prompt. */
  readonly prompts: readonly (readonly number[])[];
  /** The images in each prompt. */
  readonly images: readonly (readonly PlacedImage[])[];
  readonly owner: string | undefined;
  /** `order` of the first task. */
  readonly order: number;
  /** Uniform in [0, 1), for a request without a seed. */
  readonly random: () => number;
}

/** The tasks of one request: their events in one sequence, its usage and its end. */
export class TaskGroup implements TaskRequest {
  readonly id: number;
  readonly tasks: readonly Task[];
  cancelled = false;

  readonly #message: PreparedRequest;
  readonly #promptTokens: number;
  readonly #tasksPerPrompt: number;
  readonly #arrived = performance.now();
  #started: number | undefined;
  #firstToken: number | undefined;
  /** Tokens that the client has read, and tokens whose events were taken. */
  #consumedTokens = 0;
  #takenTokens = 0;
  #ended = false;
  #hasPromptUsage = false;
  /** All events so far, if the best of several choices are requested. */
  #held: GenerationEvent[] | undefined;

  /** Throws FailureError for a request that cannot be served. */
  constructor(environment: TaskEnvironment, { message, prompts, images, owner, order, random }: TaskGroupOptions) {
    this.id = message.id;
    this.#message = message;
    this.#tasksPerPrompt = Math.max(message.n, message.bestOf);
    if (this.#tasksPerPrompt > message.n) this.#held = [];
    for (const prompt of prompts) checkLength(prompt, environment.contextSize, message);
    this.#promptTokens = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    const seed = message.sampling.seed ?? Math.floor(random() * 2 ** 32);
    this.tasks = prompts.flatMap((prompt, p) =>
      Array.from({ length: this.#tasksPerPrompt }, (_, i) => {
        const number = p * this.#tasksPerPrompt + i;
        const own = {
          number,
          prompt,
          images: images[p] ?? [],
          seed: choiceSeed(seed, number),
          owner,
          order: order + number,
        };
        return new Task(environment, { request: this, message, ...own });
      }),
    );
  }

  /** The server's id of the request. */
  get requestId(): string {
    return this.#message.requestId;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get canContinue(): boolean {
    return this.#unreadTokens < maxTokensAhead * this.tasks.length;
  }

  get tokensAhead(): number {
    return Math.floor(maxTokensAhead - this.#unreadTokens / this.tasks.length);
  }

  /** With running usage, each chunk has the usage so far. */
  get emitsEachStep(): boolean {
    return this.#message.extras.wantsRunningUsage === true;
  }

  /** The client has read this number of further tokens. */
  consumed(tokens: number): void {
    this.#consumedTokens += tokens;
  }

  start(): void {
    this.#started ??= performance.now();
  }

  takeResults(): { tokens: number; events: GenerationEvent[]; written?: RawText[] } {
    const { extras, prompts, inspected } = this.#message;
    const generated = this.#generatedTokens;
    const tokens = generated - this.#takenTokens;
    this.#takenTokens = generated;
    if (generated > 0) this.#firstToken ??= performance.now();
    let events = this.tasks.flatMap((task) => task.takeEvents());
    // The usage of one prompt is known before its first token. That of several is not: tasks may still wait for a slot.
    if (events.length > 0 && extras.wantsRunningUsage) {
      events.unshift({ type: "usage", usage: this.usage() });
    } else if (events.length > 0 && !this.#hasPromptUsage && prompts.length === 1) {
      this.#hasPromptUsage = true;
      events.unshift({ type: "usage", usage: { ...this.usage(), completionTokens: 0, completionDetails: {} } });
    }
    if (this.#held) {
      this.#held.push(...events);
      events = [];
    }
    if (!this.#ended && this.tasks.every((task) => task.finished)) {
      this.#ended = true;
      if (this.#held) events = this.#best(this.#held);
      events.push(this.#finalUsage(), { type: "end", end: { kind: "done" } });
    }
    return { tokens, events, ...(inspected && { written: this.#takeTexts() }) };
  }

  fail(failure: GenerationFailure): GenerationEvent[] {
    const { events } = this.takeResults();
    if (this.#ended) return events;
    this.#ended = true;
    return [...events, { type: "end", end: { kind: "engine-error", failure } }];
  }

  #sum(of: (task: Task) => number): number {
    return this.tasks.reduce((sum, task) => sum + of(task), 0);
  }

  get #generatedTokens(): number {
    return this.#sum(({ answer }) => answer.counts.generated);
  }

  get #unreadTokens(): number {
    return this.#generatedTokens - this.#consumedTokens;
  }

  #takeTexts(): RawText[] {
    return this.tasks.flatMap((task): RawText[] => {
      const text = task.answer.takeText();
      return text === "" ? [] : [[task.number, text]];
    });
  }

  /** The events of the `n` choices of each prompt with the highest mean logprob, renumbered. */
  #best(events: readonly GenerationEvent[]): GenerationEvent[] {
    const mean = ({ answer: { counts } }: Task): number => counts.logprobSum / Math.max(1, counts.generated);
    const renumbered = new Map<number, number>();
    this.#message.prompts.forEach((_, p) => {
      this.tasks
        .slice(p * this.#tasksPerPrompt, (p + 1) * this.#tasksPerPrompt)
        .sort((a, b) => mean(b) - mean(a))
        .slice(0, this.#message.n)
        .forEach((task, i) => renumbered.set(task.number, p * this.#message.n + i));
    });
    return events.flatMap((event) => {
      if (!("choice" in event) || event.choice === undefined) return [event];
      const choice = renumbered.get(event.choice);
      return choice === undefined ? [] : [{ ...event, choice }];
    });
  }

  usage(): Usage & { readonly promptDetails: { readonly cached_tokens: number } } {
    return {
      promptTokens: this.#promptTokens,
      completionTokens: this.#generatedTokens,
      // Each prompt counts once, with the tokens that its first task found in the cache.
      promptDetails: {
        cached_tokens: this.#sum((task) => (task.number % this.#tasksPerPrompt === 0 ? task.cachedTokens : 0)),
      },
      completionDetails: {
        reasoning_tokens: this.#sum(({ answer }) => answer.counts.reasoning),
        ...(this.#message.prediction !== undefined && {
          accepted_prediction_tokens: this.#sum(({ drafts }) => drafts.predicted.accepted),
          rejected_prediction_tokens: this.#sum(({ drafts }) => drafts.predicted.rejected),
        }),
      },
    };
  }

  #finalUsage(): GenerationEvent {
    const now = performance.now();
    const started = this.#started ?? now;
    const firstToken = this.#firstToken ?? now;
    const usage = this.usage();
    const draftedTokens = this.#sum(({ drafts }) => drafts.draftedTokens);
    const acceptedTokens = this.#sum(({ drafts }) => drafts.acceptedTokens);
    const promptMs = firstToken - started;
    const generationMs = now - firstToken;
    return {
      type: "usage",
      usage,
      timings: {
        preparingMs: this.#message.preparingMs,
        queuedMs: started - this.#arrived,
        promptMs,
        generationMs,
        promptTokensPerSecond: perSecond(this.#promptTokens - usage.promptDetails.cached_tokens, promptMs),
        tokensPerSecond: perSecond(usage.completionTokens, generationMs),
        ...(draftedTokens > 0 && { draftedTokens, acceptedTokens }),
      },
    };
  }
}

function perSecond(tokens: number, ms: number): number {
  return ms > 0 ? (tokens * 1000) / ms : 0;
}

function checkLength(prompt: readonly number[], contextSize: number, message: PreparedRequest): void {
  // The KV cache holds one token less than the context: the last sampled token is not decoded.
  if (prompt.length > contextSize - 1)
    throw new FailureError(contextLengthExceeded(contextSize, prompt.length, message.promptParam));
}
