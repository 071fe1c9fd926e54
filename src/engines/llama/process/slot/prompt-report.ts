import type { GenerationEvent } from "../../../../core/events.ts";
import type { PreparedRequest, PromptInput } from "../../preparing/prepared-request.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import { rankedLogprobs, tokenLogprob, readWindow, withToken, type LogitWindow } from "../sampling/logits.ts";
import { TokenDecoder, type Vocabulary } from "../tokens/vocabulary.ts";
import type { InspectedPrompt } from "../../../../core/inspection.ts";
import type { Answer } from "../../protocol.ts";
import type { AsyncSteps } from "../event-loop-share.ts";

export interface PromptReportOptions {
  readonly vocabulary: Vocabulary;
  readonly context: NativeContext;
  readonly message: PreparedRequest;
  /** The choice's. */
  readonly number: number;
  readonly prompt: readonly number[];
}

/**
 * What a choice tells of its prompt, where that was asked for: its tokens, how likely they were, how far the reading is, and its text in
 * front of the answer. Of the choices of a prompt, the first one tells what concerns them all.
 */
export class PromptReport {
  /** Of the request's prompts. */
  readonly promptNumber: number;
  readonly isTeller: boolean;
  /** The logprobs of the prompt's tokens are wanted, with so many alternatives. */
  readonly top: number | undefined;
  readonly #options: PromptReportOptions;
  /** What was likely in the place of each of the prompt's tokens, while that is gathered. */
  #windows: (LogitWindow | null)[] | undefined;
  #told: GenerationEvent[] = [];
  #begun = 0;
  #cached = 0;

  constructor(options: PromptReportOptions) {
    const { n, bestOf, logprobs, echo, telling } = options.message;
    const choices = Math.max(n, bestOf);
    this.#options = options;
    this.promptNumber = Math.floor(options.number / choices);
    this.isTeller = options.number % choices === 0;
    const ofEcho = echo ? logprobs?.top : undefined;
    const told = this.isTeller ? telling.promptLogprobs?.top : undefined;
    this.top = ofEcho === undefined ? told : Math.max(ofEcho, told ?? 0);
  }

  /** Logits behind the prompt's tokens are still wanted. */
  get gathers(): boolean {
    return this.#windows !== undefined;
  }

  /** The reading begins, behind so many tokens that were known. What then stands in front of the answer already. */
  begin(cached: number): GenerationEvent[] {
    const { prompt, message, number } = this.#options;
    const { logprobs, echo, telling } = message;
    this.#begun = performance.now();
    this.#cached = cached;
    if (telling.wantsTokenIds && this.isTeller && telling.promptLogprobs === undefined)
      this.#told.push({ type: "prompt", prompt: this.promptNumber, tokens: prompt });
    if (this.top !== undefined) {
      this.#windows = [null];
      if (prompt.length === 1) return this.#tell(this.#windows);
    }
    return echo && logprobs === undefined ? [{ type: "text-delta", choice: number, text: this.#text() }] : [];
  }

  /** All of the prompt will be read once more. */
  beginAgain(): void {
    if (this.#windows) this.#windows = [null];
  }

  /** Reads the logits behind so many tokens of the prompt, from an index of the batch on. What then stands in front of the answer. */
  read(count: number, index: number): GenerationEvent[] {
    const { prompt, context } = this.#options;
    const windows = this.#windows ?? [];
    for (let i = 0; i < count; i++) {
      const token = prompt[windows.length] ?? 0;
      const logits = context.logits(index + i);
      windows.push(withToken(readWindow(logits, Math.max(1, this.top ?? 0)), token, logits[token] ?? 0));
    }
    return windows.length === prompt.length ? this.#tell(windows) : [];
  }

  /** So many of the prompt's tokens are read. */
  tellProgress(processed: number): void {
    const { prompt, message, number } = this.#options;
    if (!message.telling.wantsProgress || !this.isTeller) return;
    const ms = performance.now() - this.#begun;
    this.#told.push({
      type: "progress",
      choice: number,
      total: prompt.length,
      cached: this.#cached,
      processed,
      ms,
    });
  }

  /** What is told beside the choice's own events, since the last call. */
  take(): readonly GenerationEvent[] {
    const told = this.#told;
    if (told.length > 0) this.#told = [];
    return told;
  }

  /** The prompt, told with the logprobs of its tokens, and given back. The first token has none: nothing stood before it. */
  #tell(windows: readonly (LogitWindow | null)[]): GenerationEvent[] {
    this.#windows = undefined;
    const { prompt, vocabulary, message, number } = this.#options;
    const { logprobs, echo, telling } = message;
    const { promptLogprobs } = telling;
    if (promptLogprobs && this.isTeller) {
      const told = prompt.map((token, at) => {
        const window = windows[at] ?? null;
        return window && rankedLogprobs(vocabulary, token, window, promptLogprobs.top);
      });
      this.#told.push({ type: "prompt", prompt: this.promptNumber, tokens: prompt, logprobs: told });
    }
    if (!echo || !logprobs) return [];
    const own = prompt.map((token, at) => tokenLogprob(vocabulary, token, windows[at] ?? null, logprobs.top));
    return [{ type: "text-delta", choice: number, text: this.#text(), logprobs: own }];
  }

  #text(): string {
    const { prompt, vocabulary } = this.#options;
    const text = new TokenDecoder();
    return prompt.map((token) => text.push(vocabulary.bytes(token))).join("") + text.end();
  }
}

/** What is told of a request's prompts travels in one message: it has so many tokens at most. */
const most = 2 ** 18;
/** So many are read in one step. */
const atOnce = 4096;

interface Spelling {
  bytes(token: number): Uint8Array;
  isControl(token: number): boolean;
}

/**
 * A request's prompts as the model reads them: the text of their tokens, with the places of control tokens and of the client's own words.
 * Of a prompt that is too long to be told, the beginning without any places; of many, the first ones. A work in steps.
 */
export function* inspectedPrompts(
  vocabulary: Spelling,
  prompts: readonly (readonly number[])[],
  inputs: readonly PromptInput[],
): Generator<undefined, InspectedPrompt[], undefined> {
  const told: InspectedPrompt[] = [];
  let room = most;
  for (const [at, tokens] of prompts.entries()) {
    if (room <= 0) break;
    told.push(yield* inspectedPrompt(vocabulary, tokens, inputs[at], room));
    room -= tokens.length;
  }
  return told;
}

function* inspectedPrompt(
  vocabulary: Spelling,
  tokens: readonly number[],
  input: PromptInput | undefined,
  room: number,
): Generator<undefined, InspectedPrompt, undefined> {
  const decoder = new TokenDecoder();
  const pieces: string[] = [];
  const control: number[] = [];
  const count = Math.min(tokens.length, room);
  for (let at = 0; at < count; at++) {
    const token = tokens[at] ?? 0;
    pieces.push(decoder.push(vocabulary.bytes(token)));
    if (vocabulary.isControl(token)) control.push(at);
    if (at % atOnce === atOnce - 1) yield;
  }
  const text = pieces.join("") + decoder.end();
  if (count < tokens.length) return { text, lengths: [], control: [], quotes: [] };
  const lengths = pieces.map(({ length }) => length);
  if (input?.type !== "spans" || !input.quotes) return { text, lengths, control, quotes: [] };
  const rendered = input.spans.map((span) => span.text).join("");
  // A tokenizer may put something in front (a BOS, a space), but where it changes more, places are not what they were.
  if (!text.endsWith(rendered)) return { text, lengths, control, quotes: [] };
  const before = text.length - rendered.length;
  const quotes = input.quotes.map(({ start, end, role }) => ({ start: start + before, end: end + before, role }));
  return { text, lengths, control, quotes };
}

/** A conversation as the template writes it. `bos`: what the model's BOS is called. */
export function* writtenPrompt(prompts: readonly PromptInput[], bos: string): AsyncSteps<Answer> {
  let text = "";
  for (const prompt of prompts) {
    if (prompt.type !== "spans") continue;
    text += (prompt.bos ? bos : "") + prompt.spans.map((span) => span.text).join("");
    yield;
  }
  return { about: "prompt", text };
}
