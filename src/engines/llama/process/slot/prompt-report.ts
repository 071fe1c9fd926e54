import type { GenerationEvent } from "../../../../wire/core/events.ts";
import type { InspectedPrompt } from "../../../../wire/core/inspection.ts";
import type { PreparedRequest, PromptInput } from "../../preparing/prepared-request.ts";
import type { ModelAnswer } from "../../protocol.ts";
import { isRow, shownRow } from "../../vision/prompt-images.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import type { AsyncSteps } from "../event-loop-share.ts";
import { rankedLogprobs, readWindow, tokenLogprob, withToken, type LogitWindow } from "../sampling/logits.ts";
import { TokenDecoder, type Vocabulary } from "../tokens/vocabulary.ts";

export interface PromptReportOptions {
  readonly vocabulary: Vocabulary;
  readonly context: NativeContext;
  readonly message: PreparedRequest;
  /** The choice of the task. */
  readonly number: number;
  readonly prompt: readonly number[];
}

/**
 * What a request wants to know of a prompt: its tokens, their logprobs, the progress of the prefill, and its text before the answer
 * (`echo`). Where several tasks have the same prompt, the first one reports what concerns all of them.
 */
export class PromptReport {
  /** Index of the prompt in the request. */
  readonly promptNumber: number;
  readonly isReporter: boolean;
  /** Number of alternatives for each token of the prompt; `undefined` if its logprobs are not requested. */
  readonly top: number | undefined;
  readonly #options: PromptReportOptions;
  /** The likeliest tokens at each position of the prompt, while they are read; `null` at the first. */
  #windows: (LogitWindow | null)[] | undefined;
  #events: GenerationEvent[] = [];
  #started = 0;
  #cached = 0;

  constructor(options: PromptReportOptions) {
    const { n, bestOf, logprobs, echo, extras } = options.message;
    const tasksPerPrompt = Math.max(n, bestOf);
    this.#options = options;
    this.promptNumber = Math.floor(options.number / tasksPerPrompt);
    this.isReporter = options.number % tasksPerPrompt === 0;
    const ofEcho = echo ? logprobs?.top : undefined;
    const ofPrompt = this.isReporter ? extras.promptLogprobs?.top : undefined;
    this.top = ofEcho === undefined ? ofPrompt : Math.max(ofEcho, ofPrompt ?? 0);
  }

  /** Logits of the prompt are still needed. */
  get isReading(): boolean {
    return this.#windows !== undefined;
  }

  /** The prefill starts, after `cached` tokens that are in the KV cache. Returns events that come before the answer. */
  start(cached: number): GenerationEvent[] {
    const { prompt, message, number } = this.#options;
    const { logprobs, echo, extras } = message;
    this.#started = performance.now();
    this.#cached = cached;
    if (extras.wantsTokenIds && this.isReporter && extras.promptLogprobs === undefined)
      this.#events.push({ type: "prompt", prompt: this.promptNumber, tokens: prompt.map(shownToken) });
    if (this.top !== undefined) {
      this.#windows = [null];
      if (prompt.length === 1) return this.#report(this.#windows);
    }
    return echo && logprobs === undefined ? [{ type: "text-delta", choice: number, text: this.#text() }] : [];
  }

  /** The whole prompt is prefilled once more. */
  restart(): void {
    if (this.#windows) this.#windows = [null];
  }

  /**
   * Reads the logits of the next `count` tokens of the prompt, which start at an index of the batch. Returns events that come before the
   * answer.
   */
  read(count: number, index: number): GenerationEvent[] {
    const { prompt, context } = this.#options;
    const windows = this.#windows ?? [];
    for (let i = 0; i < count; i++) {
      const token = prompt[windows.length] ?? 0;
      const logits = context.logits(index + i);
      windows.push(withToken(readWindow(logits, Math.max(1, this.top ?? 0)), token, logits[token] ?? 0));
    }
    return windows.length === prompt.length ? this.#report(windows) : [];
  }

  /** `processed` tokens of the prompt are in the KV cache. */
  progress(processed: number): void {
    const { prompt, message, number } = this.#options;
    if (!message.extras.wantsProgress || !this.isReporter) return;
    const ms = performance.now() - this.#started;
    this.#events.push({
      type: "progress",
      choice: number,
      total: prompt.length,
      cached: this.#cached,
      processed,
      ms,
    });
  }

  /** Events about the prompt since the last call. */
  take(): readonly GenerationEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  /** Reports the prompt with the logprobs of its tokens. The first token has none, because nothing precedes it. */
  #report(windows: readonly (LogitWindow | null)[]): GenerationEvent[] {
    this.#windows = undefined;
    const { prompt, vocabulary, message, number } = this.#options;
    const { logprobs, echo, extras } = message;
    const { promptLogprobs } = extras;
    if (promptLogprobs && this.isReporter) {
      const ranked = prompt.map((token, at) => {
        const window = windows[at] ?? null;
        return window && rankedLogprobs(vocabulary, token, window, promptLogprobs.top);
      });
      this.#events.push({ type: "prompt", prompt: this.promptNumber, tokens: prompt, logprobs: ranked });
    }
    if (!echo || !logprobs) return [];
    const own = prompt.map((token, at) => tokenLogprob(vocabulary, token, windows[at] ?? null, logprobs.top));
    return [{ type: "text-delta", choice: number, text: this.#text(), logprobs: own }];
  }

  #text(): string {
    const { prompt, vocabulary } = this.#options;
    const decoder = new TokenDecoder();
    return prompt.map((token) => decoder.push(vocabulary.bytes(token))).join("") + decoder.end();
  }
}

function shownToken(token: number): number {
  return isRow(token) ? shownRow : token;
}

/** Tokens of all inspected prompts of a request at most: they are sent in one message. */
const maxInspectedTokens = 2 ** 18;
/** Tokens per step. */
const tokensPerStep = 4096;

type TokenBytes = Pick<Vocabulary, "bytes" | "isControl">;

/**
 * A request's prompts as the model reads them: the text of their tokens, with the positions of control tokens and of the client's own
 * texts. Of a prompt that is too long, only the start without positions; of many prompts, the first ones.
 */
export function* inspectedPrompts(
  vocabulary: TokenBytes,
  prompts: readonly (readonly number[])[],
  inputs: readonly PromptInput[],
): Generator<undefined, InspectedPrompt[], undefined> {
  const inspected: InspectedPrompt[] = [];
  let left = maxInspectedTokens;
  for (const [at, tokens] of prompts.entries()) {
    if (left <= 0) break;
    inspected.push(yield* inspectedPrompt(vocabulary, tokens, inputs[at], left));
    left -= tokens.length;
  }
  return inspected;
}

function* inspectedPrompt(
  vocabulary: TokenBytes,
  tokens: readonly number[],
  input: PromptInput | undefined,
  max: number,
): Generator<undefined, InspectedPrompt, undefined> {
  const decoder = new TokenDecoder();
  const texts: string[] = [];
  const control: number[] = [];
  const count = Math.min(tokens.length, max);
  for (let at = 0; at < count; at++) {
    const token = tokens[at] ?? 0;
    texts.push(decoder.push(vocabulary.bytes(token)));
    if (vocabulary.isControl(token)) control.push(at);
    if (at % tokensPerStep === tokensPerStep - 1) yield;
  }
  const text = texts.join("") + decoder.end();
  if (count < tokens.length) return { text, lengths: [], control: [], quotes: [] };
  const lengths = texts.map(({ length }) => length);
  if (input?.type !== "spans" || !input.quotes) return { text, lengths, control, quotes: [] };
  const rendered = input.spans.map((span) => span.text).join("");
  // A tokenizer may add a BOS or a space at the start. Where it changes more, positions in the rendered text are not valid.
  if (!text.endsWith(rendered)) return { text, lengths, control, quotes: [] };
  const before = text.length - rendered.length;
  const quotes = input.quotes.map(({ start, end, role }) => ({ start: start + before, end: end + before, role }));
  return { text, lengths, control, quotes };
}

/** The prompt of a conversation as the chat template renders it. `bos`: the text of the model's BOS. */
export function* renderedPrompt(prompts: readonly PromptInput[], bos: string): AsyncSteps<ModelAnswer> {
  let text = "";
  for (const prompt of prompts) {
    if (prompt.type !== "spans") continue;
    text += (prompt.bos ? bos : "") + prompt.spans.map((span) => span.text).join("");
    yield;
  }
  return { about: "prompt", text };
}
