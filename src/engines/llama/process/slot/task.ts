import { ChoiceAssembler } from "../../../../core/choice-assembler.ts";
import type { SlotState } from "../../../../core/engine.ts";
import type { GenerationEvent } from "../../../../core/events.ts";
import { startOf } from "../../../../formats/reading/start.ts";
import { TextReader } from "../../../../formats/text-reader.ts";
import { thoughtMarkers } from "../../../../formats/thought-markers.ts";
import { unknownToolsWarning } from "../../../../formats/unknown-tools.ts";
import type { Observe } from "../../../../core/observe.ts";
import type { AskedPrompt } from "../../cache/known-prompts.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import { requestedScales, type AdapterScales, type NativeAdapters } from "../c-api/adapters.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import type { NativeModel } from "../c-api/native-model.ts";
import { checkpointPositions } from "../prompt-cache/prompt-cache.ts";
import { type Draft, Guesses } from "../batch/drafter.ts";
import { tokenLogprob } from "../sampling/logits.ts";
import { PromptReport } from "./prompt-report.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";
import { StringBudget, type BanReasoning, type ReasoningBan, ReasoningBudget } from "../sampling/token-limits.ts";
import { TokenDecoder, type Vocabulary } from "../tokens/vocabulary.ts";
import type { OpenConstraint, TokenConstraint } from "../sampling/constraint.ts";
import { TokenSampler, type SampledToken } from "../sampling/token-sampler.ts";

/** What all choices of a process share. */
export interface TaskEnvironment {
  readonly model: NativeModel;
  readonly context: NativeContext;
  readonly vocabulary: Vocabulary;
  readonly contextSize: number;
  readonly newCallId: () => string;
  /** Absent: the model has none. */
  readonly adapters?: NativeAdapters | undefined;
  readonly openConstraint: OpenConstraint;
  readonly banReasoning: BanReasoning;
  readonly log: Observe;
}

export interface ChoiceOptions {
  readonly message: PreparedRequest;
  /** The number that its events carry. */
  readonly number: number;
  readonly prompt: readonly number[];
  readonly seed: number;
}

/** What a choice has in the next pass. */
export interface Piece {
  readonly tokens: readonly number[];
  /** Behind so many of them, the last ones, logits are wanted. */
  readonly outputs: number;
}

/**
 * One choice: from its prompt to its finish event. The scheduler gives it a sequence, and asks before each pass for the choice's `piece`
 * of it: a part of the prompt, or the last token of the answer with a guess at those that follow. After the pass, `passed` draws the next
 * token from the logits, reads what it says, and leaves events in `takeEvents`; as long as what it draws is what was guessed, it goes on.
 */
export class Choice {
  readonly number: number;
  readonly prompt: readonly number[];
  readonly adapters: AdapterScales;
  /** Prompt tokens that the sequence already held. */
  cachedTokens = 0;
  generatedTokens = 0;
  reasoningTokens = 0;
  readonly guesses: Guesses;
  /** Sum of the raw logprobs of the generated tokens; for best_of. */
  logprobSum = 0;
  finished = false;

  readonly #around: TaskEnvironment;
  readonly #message: PreparedRequest;
  readonly #reader: TextReader;
  readonly #text = new TokenDecoder();
  readonly #seed: number;
  readonly #maxTokens: number;
  readonly #constraint: TokenConstraint | undefined;
  readonly #shown: (token: number) => Uint8Array;
  #sequence: Sequence | undefined;
  #sampler: TokenSampler | undefined;
  /** Prompt and answer. What of it the sequence does not hold is to be evaluated next. */
  readonly #tokens: number[];
  /** Where checkpoints of the prompt are to be made, ascending. */
  #places: readonly number[] = [];
  readonly #report: PromptReport;
  #budget: ReasoningBudget | undefined;
  #strings: StringBudget | undefined;
  readonly #noThought: ReasoningBan | undefined;
  readonly #assembler: ChoiceAssembler;
  /** What the model wrote since that was last taken, where somebody wants to see it. */
  #written: { readonly decoder: TokenDecoder; text: string } | undefined;

  constructor(around: TaskEnvironment, options: ChoiceOptions) {
    const { message } = options;
    this.#around = around;
    this.#message = message;
    this.number = options.number;
    if (message.inspected) this.#written = { decoder: new TokenDecoder(), text: "" };
    this.#assembler = new ChoiceAssembler(options.number);
    this.#report = new PromptReport({ ...options, vocabulary: around.vocabulary, context: around.context });
    this.prompt = options.prompt;
    this.#tokens = options.prompt.slice();
    this.#seed = options.seed;
    this.adapters = requestedScales(message.sampling.adapters, around.adapters?.scales ?? []);
    this.#maxTokens = Math.min(
      message.limits.maxTokens ?? Number.POSITIVE_INFINITY,
      around.contextSize - options.prompt.length,
    );
    const { model, vocabulary } = around;
    const { prediction } = message;
    this.guesses = new Guesses({
      prompt: options.prompt.length,
      isLast: (token) => vocabulary.endsGeneration(token),
      ...(prediction !== undefined && {
        // What is longer than an answer can be is not read to its end.
        prediction: () => model.tokenize(prediction.slice(0, around.contextSize * longToken), false),
      }),
    });
    const { format, prefix, tools, callsAllowed, thinking, separateReasoning = true } = message.reading;
    this.#reader = new TextReader({
      format,
      prefix,
      choice: options.number,
      newCallId: around.newCallId,
      callsAllowed,
      separateReasoning,
      ...(tools && { tools }),
      ...(thinking !== undefined && { thinking }),
      ...(message.limits.stop && { stop: message.limits.stop }),
    });
    this.#shown = shownBytes(around.vocabulary, JSON.stringify(format));
    this.#constraint = message.constraint && around.openConstraint(message.constraint);
    if (message.thoughtLimit) {
      const { tokens, closing } = message.thoughtLimit;
      this.#budget = new ReasoningBudget({
        tokens,
        closings: closing.map((text) => around.model.tokenize(text, true)),
        startsInReasoning:
          startOf(format.kind === "plain" ? format.reasoning : undefined, { prefix }).place === "inside",
      });
    }
    const [quote, ...more] = around.model.tokenizeContinuation('"', false);
    if (message.stringLimit !== undefined && message.constraint?.json && quote !== undefined && more.length === 0)
      this.#strings = new StringBudget(message.stringLimit, quote);
    if (thinking === false) this.#noThought = around.banReasoning(format, prefix);
  }

  /** Where a grammar binds, it has the say. */
  get #bannedNow(): readonly number[] {
    return this.#constraint?.grammar === undefined ? (this.#noThought?.banned ?? []) : [];
  }

  /** Of the choices of a prompt, this one tells of it. */
  get tellsOfPrompt(): boolean {
    return this.#report.isTeller;
  }

  /** What explains why the prompt is not in the cache. */
  get outlined(): Pick<AskedPrompt, "outline" | "thoughtMarkers"> {
    const { prompts, reading } = this.#message;
    const prompt = prompts[this.#report.promptNumber];
    const outline = prompt?.type === "spans" ? prompt.outline : undefined;
    return { ...(outline && { outline }), thoughtMarkers: thoughtMarkers(reading.format) };
  }

  /** How many of its tokens are to be evaluated before the next one can be drawn, beside the one that was drawn last. */
  get promptLeft(): number {
    const left = this.#tokens.length - (this.#sequence?.length ?? 0);
    return this.generatedTokens > 0 && left === 1 ? 0 : left;
  }

  /** How far it is. */
  get state(): Omit<SlotState, "id" | "busy" | "task" | "contextSize"> {
    const left = Math.min(this.prompt.length, this.promptLeft);
    return {
      promptTokens: this.prompt.length,
      cachedTokens: this.cachedTokens,
      evaluatedTokens: this.prompt.length - left,
      generatedTokens: this.generatedTokens,
      tokensLeft: this.#maxTokens - this.generatedTokens,
    };
  }

  /** What a sequence already knows of the prompt may be kept: not where it is unwanted, nor where the prompt's own logprobs are asked. */
  get usesCache(): boolean {
    return this.#message.limits.cachePrompt !== false && this.#report.top === undefined;
  }

  /** Takes a sequence, of which it keeps what it can use; once more after `giveBack`. */
  begin(sequence: Sequence): void {
    this.#sequence = sequence;
    sequence.setAdapters(this.adapters);
    this.#places = this.#checkpointPlaces();
    sequence.truncate(this.usesCache ? Math.min(sequence.commonLength(this.#tokens), this.#tokens.length - 1) : 0);
    if (this.#sampler) return;
    const { vocabulary, context } = this.#around;
    this.#sampler = new TokenSampler({
      context,
      vocabulary,
      message: this.#message,
      seed: this.#seed,
      prompt: this.prompt,
      ...(this.#constraint && { constraint: this.#constraint }),
      ...((this.#budget ?? this.#strings) && { forced: () => this.#budget?.forced ?? this.#strings?.forced }),
      ...(this.#noThought && { banned: () => this.#bannedNow }),
    });
    this.cachedTokens = sequence.length;
    this.#assembler.add(this.#report.begin(this.cachedTokens));
    if (this.#maxTokens <= 0 && !this.#report.gathers) this.#finish("length");
    else this.#report.tellProgress(this.cachedTokens);
  }

  /** Lets the sequence go, and with it what was evaluated: there is no room for it just now. */
  giveBack(): void {
    this.#sequence?.clear();
    this.#sequence = undefined;
    this.#report.beginAgain();
  }

  /** There is no room for another token, and none will become free. */
  cut(): void {
    this.#finish("length");
  }

  /** Its part of the next pass while its prompt is read: at most `most` tokens, and logits behind at most `outputs` of them. */
  piece(most: number, outputs: number): Piece {
    const left = this.#tokens.length - (this.#sequence?.length ?? 0);
    const from = this.#tokens.length - left;
    const place = this.#places.find((at) => at > from);
    const tokens = place === undefined ? most : Math.min(most, place - from);
    if (this.#report.gathers && left > 1) {
      const count = Math.min(tokens, outputs, left - 1);
      return { tokens: this.#tokens.slice(from, from + count), outputs: count };
    }
    if (left > tokens) return { tokens: this.#tokens.slice(from, from + tokens), outputs: 0 };
    return { tokens: this.#tokens.slice(from), outputs: 1 };
  }

  /** Its part of the next pass afterwards: the last token, and what may follow it. */
  answerPiece(draft: readonly number[] = []): Piece {
    return { tokens: [...this.#tokens.slice(-1), ...draft], outputs: 1 + draft.length };
  }

  /** A guess at the tokens behind the last one: `most` at most. */
  draft(most: number): Draft {
    return this.guesses.next(this.#tokens, Math.min(most, this.#maxTokens - this.generatedTokens - 1));
  }

  /** The pass with this piece was made; its first token stood at this index of the batch. */
  passed({ tokens, outputs }: Piece, index: number): void {
    const sequence = this.#sequence;
    if (!sequence) throw new Error("The choice has not begun.");
    sequence.append(tokens);
    const first = tokens.length - outputs;
    const isRead = sequence.length >= this.#tokens.length;
    if (this.#report.gathers && !isRead) this.#readPrompt(outputs, index + first);
    else if (outputs > 0) this.#draw(sequence, tokens.slice(first), index + first);
    if (this.generatedTokens === 0) this.#report.tellProgress(this.prompt.length - this.promptLeft);
  }

  /** The sequence stands where a checkpoint is of use. */
  get wantsCheckpoint(): boolean {
    return this.#places.length > 0 && this.#places.includes(this.#sequence?.length ?? 0);
  }

  #checkpointPlaces(): readonly number[] {
    const { model, vocabulary } = this.#around;
    if (!this.usesCache || !model.needsCheckpoints) return [];
    return checkpointPositions(this.prompt, this.outlined.outline, (token) => vocabulary.bytes(token).length);
  }

  /** Draws behind the first of these tokens, and behind each further one that is what was drawn before it. The rest of them goes. */
  #draw(sequence: Sequence, tokens: readonly number[], index: number): void {
    const drafted = tokens.length - 1;
    let right = 0;
    for (;;) {
      const drawn = this.#sample(index + right);
      this.#accept(drawn);
      if (this.finished || right === drafted || drawn.token !== tokens[right + 1]) break;
      right++;
    }
    if (drafted === 0) return;
    this.guesses.judge(drafted, right);
    const wanted = sequence.length - drafted + right;
    // What cannot be cut is read again, which is dearer than any draft.
    if (sequence.truncate(wanted) < wanted) this.guesses.stop();
  }

  #sample(index: number): SampledToken {
    if (!this.#sampler) throw new Error("The choice has not begun.");
    return this.#sampler.sample(index);
  }

  /** Behind so many tokens of the prompt, from an index of the batch on. */
  #readPrompt(count: number, index: number): void {
    this.#assembler.add(this.#report.read(count, index));
    if (this.#maxTokens <= 0 && !this.#report.gathers) this.#finish("length");
  }

  #accept({ token, window }: SampledToken): void {
    const { vocabulary } = this.#around;
    const { limits, logprobs } = this.#message;
    this.#tokens.push(token);
    if (this.generatedTokens === 0) this.#report.tellProgress(this.prompt.length);
    this.generatedTokens++;
    if (this.#written) this.#written.text += this.#written.decoder.push(vocabulary.bytes(token));
    if (this.#message.telling.wantsTokenIds)
      this.#assembler.add([{ type: "tokens", choice: this.number, tokens: [token] }]);
    const logprob = window && tokenLogprob(vocabulary, token, window, logprobs?.top ?? 0);
    this.logprobSum += logprob?.logprob ?? 0;
    // Where a grammar lets a turn end, nothing else may come.
    const mayEnd = !limits.ignoreEos || this.#constraint?.grammar !== undefined;
    const ends = vocabulary.endsGeneration(token) && mayEnd;
    if (ends) return this.#finish("stop");
    if (limits.stopTokenIds?.includes(token) && this.generatedTokens > (limits.minTokens ?? 0))
      return this.#finish("stop", vocabulary.entry(token));
    const before = this.#phase;
    const text = this.#text.push(this.#shown(token));
    this.#assembler.add(this.#reader.push(text, logprobs ? logprob : undefined));
    if (before === "reasoning" || this.#phase === "reasoning") this.reasoningTokens++;
    this.#constraint?.read(text, vocabulary.bytes(token), this.#reader);
    this.#noThought?.read(vocabulary.bytes(token));
    this.#budget?.read(token, this.#phase);
    const isHeld = this.#constraint?.grammar !== undefined;
    this.#strings?.read(text, isHeld && this.#phase !== "reasoning");
    if (this.#reader.stopped !== null) return this.#finish("stop", this.#reader.stopped);
    if (this.generatedTokens >= this.#maxTokens) this.#finish("length");
  }

  get #phase(): TextReader["phase"] {
    return this.#reader.phase;
  }

  #finish(reason: "stop" | "length", stop?: string): void {
    if (this.#reader.stopped === null) {
      const rest = this.#text.end();
      // A call that the budget cut is what was streamed of it; only a text that ended by itself closes what it left open.
      const cut = reason === "length";
      if (rest !== "") this.#assembler.add(this.#reader.push(rest));
      this.#assembler.add(this.#reader.end(cut));
    }
    this.finished = true;
    const warning = unknownToolsWarning(this.#reader.unknownTools);
    if (warning !== null) this.#around.log(`${this.#message.requestId}: ${warning}`, "warn");
    // A stop string may stand in what was held back to the end.
    this.#assembler.finish(reason, stop ?? this.#reader.stopped ?? undefined);
  }

  takeEvents(): GenerationEvent[] {
    const events = this.#assembler.take();
    const told = this.#report.take();
    return told.length === 0 ? events : [...told, ...events];
  }

  /** What the model wrote since the last call; "": nothing, or nobody wants to see it. */
  takeWritten(): string {
    const text = this.#written?.text ?? "";
    if (this.#written) this.#written.text = "";
    return text;
  }

  /** Lets go of the sequence, whatever state the choice is in. Touches nothing of the context, which may be at work. */
  release(): void {
    this.#sampler?.free();
    this.#sampler = undefined;
    this.#constraint?.free();
    this.#sequence = undefined;
  }

  /** What its sequence knows is not to be kept for others. */
  get forgets(): boolean {
    return this.#message.limits.cachePrompt === false;
  }
}

/** In characters: few tokens are longer. */
const longToken = 8;

/** The bytes that a token shows: none for a control token, unless the format has it in one of its markers. */
function shownBytes(vocabulary: Vocabulary, format: string): (token: number) => Uint8Array {
  const nothing = new Uint8Array();
  return (token) => {
    if (!vocabulary.isControl(token)) return vocabulary.bytes(token);
    const inMarker = format.includes(JSON.stringify(vocabulary.entry(token)).slice(1, -1));
    return inMarker ? vocabulary.bytes(token) : nothing;
  };
}
