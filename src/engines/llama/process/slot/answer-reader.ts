import { ChoiceAssembler } from "../../../../wire/core/choice-assembler.ts";
import type { GenerationEvent } from "../../../../wire/core/events.ts";
import type { LogListener } from "../../../../wire/core/generation-observer.ts";
import { LoopGuard, loopWarning } from "../../../../wire/core/loop-guard.ts";
import { textStart } from "../../../../text/formats/reasoning.ts";
import { TextReader, unknownToolsWarning } from "../../../../text/formats/text-reader.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import type { NativeModel } from "../c-api/native-model.ts";
import type { OpenConstraint, TokenConstraint } from "../sampling/constraint.ts";
import { tokenLogprob } from "../sampling/logits.ts";
import { type BanReasoning, type ReasoningBan, ReasoningBudget, StringBudget } from "../sampling/token-limits.ts";
import { TokenSampler } from "../sampling/token-sampler.ts";
import { TokenDecoder, type Vocabulary } from "../tokens/vocabulary.ts";

/** What the answers of a model share. */
export interface AnswerEnvironment {
  readonly model: NativeModel;
  readonly context: NativeContext;
  readonly vocabulary: Vocabulary;
  readonly newCallId: () => string;
  readonly openConstraint: OpenConstraint;
  readonly banReasoning: BanReasoning;
  /** Answers that repeat themselves are ended (`LoopGuard`). */
  readonly guardsLoops?: boolean;
  readonly log: LogListener;
}

export interface AnswerOptions {
  readonly message: PreparedRequest;
  /** The choice that the events carry. */
  readonly number: number;
  readonly prompt: readonly number[];
  readonly seed: number;
  readonly maxTokens: number;
}

interface AnswerCounts {
  generated: number;
  reasoning: number;
  /** Sum of the logprobs of the generated tokens, for `best_of`. */
  logprobSum: number;
}

/**
 * Samples the tokens of one answer and makes events of them: reads their text, limits what may come next, and decides when the answer
 * ends.
 */
export class AnswerReader {
  readonly #environment: AnswerEnvironment;
  readonly #options: AnswerOptions;
  readonly #counts: AnswerCounts = { generated: 0, reasoning: 0, logprobSum: 0 };
  #finished = false;
  /** Is created with the first token. */
  #sampler: TokenSampler | undefined;
  readonly #constraint: TokenConstraint | undefined;
  readonly #reasoningBan: ReasoningBan | undefined;
  readonly #reasoningBudget: ReasoningBudget | undefined;
  readonly #stringBudget: StringBudget | undefined;
  readonly #loopGuard: LoopGuard | undefined;
  readonly #decoder = new TokenDecoder();
  readonly #visibleBytes: (token: number) => Uint8Array;
  readonly #reader: TextReader;
  readonly #assembler: ChoiceAssembler;
  /** The model's text since `takeText`, if the request is inspected. */
  readonly #text: { readonly decoder: TokenDecoder; text: string } | undefined;

  /** Throws FailureError for a request that cannot be served. */
  constructor(environment: AnswerEnvironment, options: AnswerOptions) {
    const { model, vocabulary, newCallId } = environment;
    const { message, number } = options;
    const { limits, reading, constraint, reasoningLimit, maxStringTokens } = message;
    const { format, prefix, thinking, separateReasoning = true } = reading;
    this.#environment = environment;
    this.#options = options;
    this.#assembler = new ChoiceAssembler(number);
    if (message.inspected) this.#text = { decoder: new TokenDecoder(), text: "" };
    this.#reader = new TextReader({ ...reading, choice: number, newCallId, separateReasoning, stop: limits.stop });
    this.#visibleBytes = visibleBytes(vocabulary, JSON.stringify(format));
    this.#constraint = constraint && environment.openConstraint(constraint);
    // A client that ignores the end of the answer measures, or wants its whole length.
    if (environment.guardsLoops && !limits.ignoreEos) this.#loopGuard = new LoopGuard();
    if (reasoningLimit) {
      const { tokens = Number.POSITIVE_INFINITY, closing } = reasoningLimit;
      this.#reasoningBudget = new ReasoningBudget({
        tokens,
        closings: closing.map((text) => model.tokenize(text, true)),
        startsInReasoning:
          textStart(format.kind === "plain" ? format.reasoning : undefined, { prefix }).place === "inside",
      });
    }
    const [quote, ...more] = model.tokenizeContinuation('"', false);
    if (maxStringTokens !== undefined && constraint?.json && quote !== undefined && more.length === 0)
      this.#stringBudget = new StringBudget(maxStringTokens, quote);
    if (thinking === false) this.#reasoningBan = environment.banReasoning(format, prefix);
  }

  get counts(): Readonly<AnswerCounts> {
    return this.#counts;
  }

  get finished(): boolean {
    return this.#finished;
  }

  get tokensLeft(): number {
    return this.#options.maxTokens - this.#counts.generated;
  }

  /** Adds events that come before the answer. */
  add(events: readonly GenerationEvent[]): void {
    this.#assembler.add(events);
  }

  takeEvents(): GenerationEvent[] {
    return this.#assembler.take();
  }

  /** The model's text since the last call; "" unless the request is inspected. */
  takeText(): string {
    const text = this.#text?.text ?? "";
    if (this.#text) this.#text.text = "";
    return text;
  }

  /** Forces the end of the reasoning after the current token. Returns false if the answer is not reasoning. */
  endReasoning(): boolean {
    return !this.#finished && this.#reasoningBudget?.end() === true;
  }

  /** Samples a token from the logits at an index of the last batch, and reads it. Throws an Error if all tokens are banned. */
  sample(index: number): number {
    const { vocabulary } = this.#environment;
    const { limits, logprobs, extras } = this.#options.message;
    this.#sampler ??= this.#newSampler();
    const { token, window } = this.#sampler.sample(index);
    const counts = this.#counts;
    counts.generated++;
    const bytes = vocabulary.bytes(token);
    if (this.#text) this.#text.text += this.#text.decoder.push(bytes);
    if (extras.wantsTokenIds) this.#assembler.add([{ type: "tokens", choice: this.#options.number, tokens: [token] }]);
    const logprob = window && tokenLogprob(vocabulary, token, window, logprobs?.top ?? 0);
    counts.logprobSum += logprob?.logprob ?? 0;
    const isStop = limits.stopTokenIds?.includes(token) === true && counts.generated > (limits.minTokens ?? 0);
    // Where a grammar allows the end of the answer, nothing else may follow.
    if (vocabulary.endsGeneration(token) && (!limits.ignoreEos || this.#hasGrammar)) this.finish("stop");
    else if (isStop) this.finish("stop", vocabulary.entry(token));
    else this.#read(token, bytes, logprobs ? logprob : undefined);
    return token;
  }

  /** Reads the text of a token, and ends the answer where a limit is reached. */
  #read(token: number, bytes: Uint8Array, logprob: ReturnType<typeof tokenLogprob> | undefined): void {
    const reader = this.#reader;
    const phaseBefore = reader.phase;
    const text = this.#decoder.push(this.#visibleBytes(token));
    this.#assembler.add(reader.push(text, logprob));
    const { phase } = reader;
    if (phaseBefore === "reasoning" || phase === "reasoning") this.#counts.reasoning++;
    this.#constraint?.read(text, bytes, reader);
    this.#reasoningBan?.read(bytes);
    this.#reasoningBudget?.read(token, phase);
    this.#stringBudget?.read(text, this.#hasGrammar && phase !== "reasoning");
    if (reader.stopped !== null) return this.finish("stop", reader.stopped);
    if (this.tokensLeft <= 0) return this.finish("length");
    const isStructured = phase === "call" || this.#hasGrammar;
    const place = phase === "reasoning" ? "reasoning" : isStructured ? "structured" : "text";
    const period = this.#loopGuard?.read(text, place) ?? 0;
    if (period === 0) return;
    this.#warn(loopWarning(period, this.#counts.generated));
    this.finish("length", undefined, "loop");
  }

  /** Ends the answer. `stop`: what it was stopped by. `limit`: the limit of reason "length". */
  finish(reason: "stop" | "length", stop?: string, limit?: "loop"): void {
    const reader = this.#reader;
    if (reader.stopped === null) {
      const rest = this.#decoder.end();
      if (rest !== "") this.#assembler.add(reader.push(rest));
      // A tool call that the token limit interrupts stays as it was streamed; only a complete text closes what it left open.
      this.#assembler.add(reader.end(reason === "length"));
    }
    this.#finished = true;
    const warning = unknownToolsWarning(reader.unknownTools);
    if (warning !== null) this.#warn(warning);
    // The text that was held back until the end may contain a stop string.
    this.#assembler.finish(reason, stop ?? reader.stopped ?? undefined, limit);
  }

  free(): void {
    this.#sampler?.free();
    this.#sampler = undefined;
    this.#constraint?.free();
  }

  #newSampler(): TokenSampler {
    const { context, vocabulary } = this.#environment;
    return new TokenSampler({
      ...this.#options,
      context,
      vocabulary,
      ...(this.#constraint && { constraint: this.#constraint }),
      forced: () => this.#reasoningBudget?.forced ?? this.#stringBudget?.forced,
      // While a grammar applies, it alone decides.
      banned: () => (this.#hasGrammar ? [] : (this.#reasoningBan?.banned ?? [])),
    });
  }

  get #hasGrammar(): boolean {
    return this.#constraint?.grammar !== undefined;
  }

  #warn(warning: string): void {
    this.#environment.log(`${this.#options.message.requestId}: ${warning}`, "warn");
  }
}

/** The bytes that a token adds to the text: none for a control token, unless it is part of one of the format's markers. */
function visibleBytes(vocabulary: Vocabulary, format: string): (token: number) => Uint8Array {
  const nothing = new Uint8Array();
  return (token) => {
    if (!vocabulary.isControl(token)) return vocabulary.bytes(token);
    const isInMarker = format.includes(JSON.stringify(vocabulary.entry(token)).slice(1, -1));
    return isInMarker ? vocabulary.bytes(token) : nothing;
  };
}
