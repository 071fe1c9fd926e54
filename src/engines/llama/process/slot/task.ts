import type { QueueTier } from "../../../../wire/core/request.ts";
import { ChoiceAssembler } from "../../../../wire/core/choice-assembler.ts";
import type { SlotState } from "../../../../wire/core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../../../../wire/core/events.ts";
import type { LogListener } from "../../../../wire/core/generation-observer.ts";
import { LoopGuard, loopWarning } from "../../../../wire/core/loop-guard.ts";
import { reasoningMarkers, textStart } from "../../../../text/formats/reasoning.ts";
import { TextReader, unknownToolsWarning } from "../../../../text/formats/text-reader.ts";
import type { NewPrompt } from "../../cache/known-prompts.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { RawText } from "../../protocol.ts";
import { type Draft, TaskDrafts } from "../batch/drafter.ts";
import { type AdapterScales, type NativeAdapters, requestedScales } from "../c-api/adapters.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import type { NativeModel } from "../c-api/native-model.ts";
import { checkpointPositions } from "../prompt-cache/prompt-cache.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";
import type { OpenConstraint, TokenConstraint } from "../sampling/constraint.ts";
import { tokenLogprob } from "../sampling/logits.ts";
import { isRow, outsideImage, type PlacedImage } from "../../vision/prompt-images.ts";
import { type BanReasoning, type ReasoningBan, ReasoningBudget, StringBudget } from "../sampling/token-limits.ts";
import { type SampledToken, TokenSampler } from "../sampling/token-sampler.ts";
import { TokenDecoder, type Vocabulary } from "../tokens/vocabulary.ts";
import { PromptReport } from "./prompt-report.ts";

/** What all tasks of a model share. */
export interface TaskEnvironment {
  readonly model: NativeModel;
  readonly context: NativeContext;
  readonly vocabulary: Vocabulary;
  readonly contextSize: number;
  readonly newCallId: () => string;
  /** Absent if the model has no adapters. */
  readonly adapters?: NativeAdapters | undefined;
  /** Returns the rows of an image, as long as they are wanted. Absent if the model does not take images. */
  readonly rowsOf?: ((image: PlacedImage["image"], isWanted: () => boolean) => Promise<Float32Array>) | undefined;
  /** Rows that a task waits for have arrived, or cannot be computed. */
  readonly onRows?: (() => void) | undefined;
  readonly openConstraint: OpenConstraint;
  readonly banReasoning: BanReasoning;
  /** Answers that repeat themselves are ended (`LoopGuard`). */
  readonly guardsLoops?: boolean;
  readonly log: LogListener;
  /** Is called with a line for each transition of a slot or a task; absent unless debug logging is on. */
  readonly debug?: ((line: string) => void) | undefined;
}

/** The request that a task belongs to. */
export interface TaskRequest {
  readonly id: number;
  readonly cancelled: boolean;
  /** All of its events were taken. */
  readonly ended: boolean;
  /** The client is not too far behind with reading. */
  readonly canContinue: boolean;
  /** Tokens that each task may still generate before the client must read. */
  readonly tokensAhead: number;
  /** Its events are sent after every step. */
  readonly emitsEachStep: boolean;
  /** A task of the request got a slot. */
  start(): void;
  /** Ends the request. Returns its last events. */
  fail(failure: GenerationFailure): GenerationEvent[];
  /** The number of tokens and the events since the last call; the last events end the request. */
  takeResults(): { readonly tokens: number; readonly events: GenerationEvent[]; readonly written?: RawText[] };
}

export interface TaskOptions {
  readonly request: TaskRequest;
  readonly message: PreparedRequest;
  /** The choice that the task's events carry. */
  readonly number: number;
  readonly prompt: readonly number[];
  /** The images in the prompt, in order. */
  readonly images?: readonly PlacedImage[];
  readonly seed: number;
  readonly owner: string | undefined;
  /** Newer tasks have larger numbers. */
  readonly order: number;
}

/** The tokens of a task in a batch. */
export interface TokenChunk {
  readonly tokens: readonly number[];
  /** The number of tokens at the end of the chunk whose logits are needed. */
  readonly outputs: number;
}

/** Rows of an image in a batch of their own. */
export interface RowChunk extends TokenChunk {
  readonly rows: Float32Array;
  /** The positions of the rows, as `BatchRows` has them. */
  readonly positions: Int32Array;
  readonly nonCausal: boolean;
}

/** A cancelled or ended request needs none of its tasks. */
export function isCancelled({ request }: Task): boolean {
  return request.cancelled || request.ended;
}

/** In characters; few tokens are longer. */
const maxTokenLength = 8;

/**
 * One answer, from its prompt to its `finish` event. The scheduler assigns it a sequence, and takes a chunk of it for each batch: a part of
 * the prompt, or the last token with a draft of those that may follow. After the decode, `decoded` samples from the logits, reads the text
 * of the sampled tokens and makes events of it. As long as a sampled token is the drafted one, it samples from the next logits.
 */
export class Task {
  readonly request: TaskRequest;
  readonly owner: string | undefined;
  readonly tier: QueueTier | undefined;
  readonly order: number;
  readonly number: number;
  readonly prompt: readonly number[];
  readonly adapters: AdapterScales;
  readonly drafts: TaskDrafts;
  /** Prompt tokens that the sequence held when the task started. */
  cachedTokens = 0;
  generatedTokens = 0;
  reasoningTokens = 0;
  /** Sum of the logprobs of the generated tokens, for `best_of`. */
  logprobSum = 0;
  finished = false;
  /** Why the next image cannot be decoded. */
  failure: unknown;

  readonly #environment: TaskEnvironment;
  readonly #message: PreparedRequest;
  readonly #seed: number;
  readonly #maxTokens: number;
  readonly #images: readonly PlacedImage[];
  /** The rows of the image that is decoded next. */
  #rows: { readonly image: PlacedImage; readonly rows: Float32Array | undefined } | undefined;
  /** Prompt and answer. What the sequence does not hold is decoded next. */
  readonly #tokens: number[];
  /** Positions in the prompt at which checkpoints are useful, ascending. */
  #checkpoints: readonly number[] = [];
  #sequence: Sequence | undefined;
  #sampler: TokenSampler | undefined;
  readonly #constraint: TokenConstraint | undefined;
  readonly #reasoningBan: ReasoningBan | undefined;
  #reasoningBudget: ReasoningBudget | undefined;
  #stringBudget: StringBudget | undefined;
  readonly #loopGuard: LoopGuard | undefined;
  readonly #decoder = new TokenDecoder();
  readonly #visibleBytes: (token: number) => Uint8Array;
  readonly #reader: TextReader;
  readonly #assembler: ChoiceAssembler;
  readonly #report: PromptReport;
  /** The model's text since `takeText`, if the request is inspected. */
  #text: { readonly decoder: TokenDecoder; text: string } | undefined;

  /** Throws FailureError for a request that cannot be served. */
  constructor(environment: TaskEnvironment, options: TaskOptions) {
    const { model, vocabulary, contextSize } = environment;
    const { message, prompt, number, images = [] } = options;
    const { prediction, sampling, limits, reading, constraint } = message;
    this.#environment = environment;
    this.#message = message;
    this.request = options.request;
    this.owner = options.owner;
    this.tier = message.tier;
    this.order = options.order;
    this.number = number;
    this.prompt = prompt;
    this.#images = images;
    this.#tokens = prompt.slice();
    this.#seed = options.seed;
    this.#assembler = new ChoiceAssembler(number);
    this.#report = new PromptReport({ message, number, prompt, vocabulary, context: environment.context });
    this.adapters = requestedScales(sampling.adapters, environment.adapters?.scales ?? []);
    this.#maxTokens = Math.min(limits.maxTokens ?? Number.POSITIVE_INFINITY, contextSize - prompt.length);
    if (message.inspected) this.#text = { decoder: new TokenDecoder(), text: "" };
    this.drafts = new TaskDrafts({
      prompt: prompt.length,
      isLast: (token) => !isRow(token) && vocabulary.endsGeneration(token),
      ...(prediction !== undefined && {
        // The part of a prediction that is longer than any answer is not tokenized.
        prediction: () => model.tokenize(prediction.slice(0, contextSize * maxTokenLength), false),
      }),
    });
    const { format, prefix, tools, callsAllowed, thinking, separateReasoning = true } = reading;
    this.#reader = new TextReader({
      format,
      prefix,
      choice: number,
      newCallId: environment.newCallId,
      callsAllowed,
      separateReasoning,
      tools,
      thinking,
      stop: limits.stop,
    });
    this.#visibleBytes = visibleBytes(vocabulary, JSON.stringify(format));
    this.#constraint = constraint && environment.openConstraint(constraint);
    // Who ignores the end of the answer measures, or wants its whole length.
    if (environment.guardsLoops && !limits.ignoreEos) this.#loopGuard = new LoopGuard();
    if (message.reasoningLimit) {
      const { tokens = Number.POSITIVE_INFINITY, closing } = message.reasoningLimit;
      this.#reasoningBudget = new ReasoningBudget({
        tokens,
        closings: closing.map((text) => model.tokenize(text, true)),
        startsInReasoning:
          textStart(format.kind === "plain" ? format.reasoning : undefined, { prefix }).place === "inside",
      });
    }
    const [quote, ...more] = model.tokenizeContinuation('"', false);
    if (message.maxStringTokens !== undefined && constraint?.json && quote !== undefined && more.length === 0)
      this.#stringBudget = new StringBudget(message.maxStringTokens, quote);
    if (thinking === false) this.#reasoningBan = environment.banReasoning(format, prefix);
  }

  /** `request.choice`, as it is in the log. */
  get id(): string {
    return `${this.request.id}.${this.number}`;
  }

  /** Whether this task reports on the prompt: the first one of each prompt does. */
  get reportsPrompt(): boolean {
    return this.#report.isReporter;
  }

  /** The parts of the prompt, for the explanation of a cache miss. */
  get outlined(): Pick<NewPrompt, "outline" | "reasoningMarkers"> {
    const { prompts, reading } = this.#message;
    const prompt = prompts[this.#report.promptNumber];
    const outline = prompt?.type === "spans" ? prompt.outline : undefined;
    return { outline, reasoningMarkers: reasoningMarkers(reading.format) };
  }

  /** Tokens to decode before the next one can be sampled, except the one that was sampled last. */
  get promptLeft(): number {
    const left = this.#tokens.length - (this.#sequence?.length ?? 0);
    return this.generatedTokens > 0 && left === 1 ? 0 : left;
  }

  get progress(): Omit<SlotState, "id" | "busy" | "task" | "contextSize" | "speculative"> {
    const left = Math.min(this.prompt.length, this.promptLeft);
    return {
      promptTokens: this.prompt.length,
      cachedTokens: this.cachedTokens,
      evaluatedTokens: this.prompt.length - left,
      generatedTokens: this.generatedTokens,
      tokensLeft: this.#maxTokens - this.generatedTokens,
    };
  }

  /** Cached tokens of the prompt may be used: not if the client declines, nor if the logprobs of the prompt are requested. */
  get usesCache(): boolean {
    return this.#message.limits.cachePrompt !== false && this.#report.top === undefined;
  }

  /** The tokens of its sequence must not be used for other requests. */
  get discardsCache(): boolean {
    return this.#message.limits.cachePrompt === false;
  }

  /** The number of the first `count` tokens of the prompt that another sequence can take over once they are decoded. */
  sharablePrefix(count: number): number {
    if (!this.#environment.model.needsCheckpoints) return count;
    return this.#checkpoints.findLast((position) => position <= count) ?? 0;
  }

  /** The sequence ends at a position at which a checkpoint is useful. */
  get wantsCheckpoint(): boolean {
    return this.#checkpoints.length > 0 && this.#checkpoints.includes(this.#sequence?.length ?? 0);
  }

  /** Takes a sequence, and keeps the tokens of it that the prompt starts with. Called again after `preempt`. */
  start(sequence: Sequence): void {
    const { vocabulary, context } = this.#environment;
    this.#sequence = sequence;
    sequence.setAdapters(this.adapters);
    sequence.startPrompt(this.prompt.length);
    this.#checkpoints = this.#checkpointPositions();
    sequence.truncate(this.usesCache ? Math.min(sequence.commonLength(this.#tokens), this.#tokens.length - 1) : 0);
    this.#loadRows();
    if (this.#sampler) return;
    this.#sampler = new TokenSampler({
      context,
      vocabulary,
      message: this.#message,
      seed: this.#seed,
      prompt: this.prompt,
      ...(this.#constraint && { constraint: this.#constraint }),
      ...((this.#reasoningBudget ?? this.#stringBudget) && {
        forced: () => this.#reasoningBudget?.forced ?? this.#stringBudget?.forced,
      }),
      // While a grammar applies, it alone decides.
      ...(this.#reasoningBan && { banned: () => (this.#hasGrammar ? [] : (this.#reasoningBan?.banned ?? [])) }),
    });
    this.cachedTokens = sequence.length;
    this.#assembler.add(this.#report.start(this.cachedTokens));
    // A prompt that is only echoed, or fills the context, is not processed: no answer can follow.
    const { limits, echo } = this.#message;
    const isPrewarm = limits.maxTokens === 0 && !echo;
    if (this.#maxTokens <= 0 && !isPrewarm && !this.#report.isReading) this.#finish("length");
    else this.#report.progress(this.cachedTokens);
  }

  /** Gives up the sequence with its tokens. The task continues when it is started again. */
  preempt(): void {
    this.#sequence?.clear();
    this.#sequence = undefined;
    this.#rows = undefined;
    this.#report.restart();
  }

  /** The next items of the prompt are rows of an image. */
  get isAtImage(): boolean {
    return this.#images.length > 0 && this.#nextImage?.start === this.#nextStart;
  }

  /** It cannot continue before the rows of the next image are computed. */
  get awaitsRows(): boolean {
    return this.isAtImage && this.#rows?.rows === undefined;
  }

  /** The first image that the sequence does not hold completely. */
  get #nextImage(): PlacedImage | undefined {
    const length = this.#sequence?.length ?? 0;
    return this.#images.find(({ start, count }) => start + count > length);
  }

  /** The start of what is decoded next: of the image, if a part of it is decoded. */
  get #nextStart(): number {
    return outsideImage(this.#sequence?.length ?? 0, this.#images);
  }

  /** Requests the rows of the next image. */
  #loadRows(): void {
    const { rowsOf, onRows } = this.#environment;
    if (this.#images.length === 0 || !rowsOf) return;
    const image = this.#nextImage;
    if (!image || this.#rows?.image === image) return;
    this.#rows = { image, rows: undefined };
    const isWanted = (): boolean => this.#rows?.image === image && !isCancelled(this);
    rowsOf(image.image, isWanted)
      .then(
        (rows) => {
          if (isWanted()) this.#rows = { image, rows };
        },
        (error: unknown) => {
          if (isWanted()) this.failure = error;
        },
      )
      .finally(() => onRows?.());
  }

  /** Ends the answer because the KV cache has no cell for another token. */
  endAtLength(): void {
    this.#finish("length");
  }

  /** The next chunk of the prompt: at most `max` tokens, with logits of at most `maxOutputs` of them. */
  promptChunk(max: number, maxOutputs: number): TokenChunk {
    const from = this.#sequence?.length ?? 0;
    const left = this.#tokens.length - from;
    const checkpoint = this.#checkpoints.find((position) => position > from);
    const toCheckpoint = checkpoint === undefined ? max : Math.min(max, checkpoint - from);
    const image = this.#images.length === 0 ? undefined : this.#nextImage;
    const count = image ? Math.min(toCheckpoint, image.start - from) : toCheckpoint;
    if (this.#report.isReading && left > 1) {
      const outputs = Math.min(count, maxOutputs, left - 1);
      return { tokens: this.#tokens.slice(from, from + outputs), outputs };
    }
    if (left > count) return { tokens: this.#tokens.slice(from, from + count), outputs: 0 };
    return { tokens: this.#tokens.slice(from), outputs: 1 };
  }

  /** The next rows of the image at which the prompt is: at most `max`, or `maxCausal` if they do not attend to later ones. */
  rowChunk(max: number, maxCausal: number): RowChunk {
    const { image, rows } = this.#rows ?? {};
    const sequence = this.#sequence;
    if (!image || !rows || !sequence) throw new Error("The rows of the image are not there.");
    const from = sequence.length;
    const offset = from - image.start;
    const count = Math.min(image.nonCausal ? max : Math.max(1, maxCausal), image.count - offset);
    const rowLength = this.#environment.model.rowLength;
    const first = image.firstRow + offset;
    return {
      tokens: this.#tokens.slice(from, from + count),
      outputs: from + count === this.#tokens.length ? 1 : 0,
      rows: rows.subarray(first * rowLength, (first + count) * rowLength),
      positions: rowPositions(image, { offset, count, next: sequence.nextPosition }),
      nonCausal: image.nonCausal,
    };
  }

  /** The last token of the answer with a draft of the next ones. */
  answerChunk(draft: readonly number[] = []): TokenChunk {
    return { tokens: [this.#tokens.at(-1) ?? 0, ...draft], outputs: 1 + draft.length };
  }

  /** The tokens of the prompt and of the answer. */
  get tokens(): readonly number[] {
    return this.#tokens;
  }

  /** Draft tokens that may be decoded after the last token: more would be past the end, or too far ahead of the client. */
  get maxDraft(): number {
    return Math.min(
      this.#environment.context.maxRollback,
      this.request.tokensAhead - 1,
      this.#maxTokens - this.generatedTokens - 1,
    );
  }

  /** Drafts at most `max` tokens after the last one. */
  draft(max: number): Draft {
    const draft = this.drafts.next(this.#tokens, Math.min(max, this.maxDraft));
    if (this.#images.length === 0) return draft;
    const end = draft.tokens.findIndex(isRow);
    if (end === -1) return draft;
    return { ...draft, tokens: draft.tokens.slice(0, end), probabilities: draft.probabilities.slice(0, end) };
  }

  /** A batch with this chunk was decoded. `index`: that of the chunk's first token in the batch. */
  decoded({ tokens, outputs }: TokenChunk, index: number): void {
    const sequence = this.#sequence;
    if (!sequence) throw new Error("The task has not started.");
    if (this.#images.length > 0) this.#decodedImage(sequence);
    sequence.append(tokens);
    if (this.#images.length > 0) this.#loadRows();
    const first = tokens.length - outputs;
    const isPrefilled = sequence.length >= this.#tokens.length;
    if (this.#report.isReading && !isPrefilled) this.#readPromptLogits(outputs, index + first);
    else if (isPrefilled && this.#maxTokens <= 0) this.#finish("length");
    else if (outputs > 0) this.#sampleAfter(sequence, tokens.slice(first), index + first);
    if (this.generatedTokens === 0) this.#report.progress(this.prompt.length - this.promptLeft);
  }

  /** A batch was decoded: before its tokens are appended, an image of which they are the first rows. */
  #decodedImage(sequence: Sequence): void {
    const image = this.#nextImage;
    if (image?.start === sequence.length) sequence.appendImage(image);
  }

  /** Forces the end of the reasoning after the current token. Returns false if the answer is not reasoning. */
  endReasoning(): boolean {
    return !this.finished && this.#sampler !== undefined && this.#reasoningBudget?.end() === true;
  }

  takeEvents(): GenerationEvent[] {
    const events = this.#assembler.take();
    const reports = this.#report.take();
    return reports.length === 0 ? events : [...reports, ...events];
  }

  /** The model's text since the last call; "" unless the request is inspected. */
  takeText(): string {
    const text = this.#text?.text ?? "";
    if (this.#text) this.#text.text = "";
    return text;
  }

  /** Frees what the task holds, in any state. Does not access the context, which may be decoding. */
  release(): void {
    this.#sampler?.free();
    this.#sampler = undefined;
    this.#constraint?.free();
    this.#sequence = undefined;
    this.#rows = undefined;
  }

  #checkpointPositions(): readonly number[] {
    const { model, vocabulary } = this.#environment;
    if (!this.usesCache || !model.needsCheckpoints) return [];
    const positions = checkpointPositions(
      this.prompt,
      this.outlined.outline,
      (token) => vocabulary.bytes(token).length,
    );
    if (this.#images.length === 0) return positions;
    return [...new Set(positions.map((position) => outsideImage(position, this.#images)))];
  }

  /**
   * Samples after the first of these tokens, and after each draft token that is the one sampled before it. The rejected rest of the draft is
   * removed from the sequence.
   */
  #sampleAfter(sequence: Sequence, tokens: readonly number[], index: number): void {
    if (!this.#sampler) throw new Error("The task has not started.");
    const drafted = tokens.length - 1;
    let accepted = 0;
    for (;;) {
      const sampled = this.#sampler.sample(index + accepted);
      this.#accept(sampled);
      if (this.finished || accepted === drafted || sampled.token !== tokens[accepted + 1]) break;
      accepted++;
    }
    if (drafted === 0) return;
    this.drafts.record(drafted, accepted);
    const length = sequence.length - drafted + accepted;
    // Where the sequence cannot be truncated there, tokens are decoded again, which costs more than any draft gains.
    if (sequence.truncate(length) < length) this.drafts.stop();
  }

  #readPromptLogits(count: number, index: number): void {
    this.#assembler.add(this.#report.read(count, index));
    if (this.#maxTokens <= 0 && !this.#report.isReading) this.#finish("length");
  }

  #accept({ token, window }: SampledToken): void {
    const { vocabulary } = this.#environment;
    const { limits, logprobs, extras } = this.#message;
    this.#tokens.push(token);
    if (this.generatedTokens === 0) this.#report.progress(this.prompt.length);
    this.generatedTokens++;
    const bytes = vocabulary.bytes(token);
    if (this.#text) this.#text.text += this.#text.decoder.push(bytes);
    if (extras.wantsTokenIds) this.#assembler.add([{ type: "tokens", choice: this.number, tokens: [token] }]);
    const logprob = window && tokenLogprob(vocabulary, token, window, logprobs?.top ?? 0);
    this.logprobSum += logprob?.logprob ?? 0;
    // Where a grammar allows the end of the answer, nothing else may follow.
    if (vocabulary.endsGeneration(token) && (!limits.ignoreEos || this.#hasGrammar)) return this.#finish("stop");
    if (limits.stopTokenIds?.includes(token) && this.generatedTokens > (limits.minTokens ?? 0))
      return this.#finish("stop", vocabulary.entry(token));
    const reader = this.#reader;
    const phaseBefore = reader.phase;
    const text = this.#decoder.push(this.#visibleBytes(token));
    this.#assembler.add(reader.push(text, logprobs ? logprob : undefined));
    const { phase } = reader;
    if (phaseBefore === "reasoning" || phase === "reasoning") this.reasoningTokens++;
    this.#constraint?.read(text, bytes, reader);
    this.#reasoningBan?.read(bytes);
    this.#reasoningBudget?.read(token, phase);
    this.#stringBudget?.read(text, this.#hasGrammar && phase !== "reasoning");
    if (reader.stopped !== null) return this.#finish("stop", reader.stopped);
    if (this.generatedTokens >= this.#maxTokens) return this.#finish("length");
    const isStructured = phase === "call" || this.#hasGrammar;
    const place = phase === "reasoning" ? "reasoning" : isStructured ? "structured" : "text";
    const period = this.#loopGuard?.read(text, place) ?? 0;
    if (period === 0) return;
    this.#environment.log(`${this.#message.requestId}: ${loopWarning(period, this.generatedTokens)}`, "warn");
    this.#finish("length", undefined, "loop");
  }

  get #hasGrammar(): boolean {
    return this.#constraint?.grammar !== undefined;
  }

  #finish(reason: "stop" | "length", stop?: string, limit?: "loop"): void {
    const reader = this.#reader;
    if (reader.stopped === null) {
      const rest = this.#decoder.end();
      if (rest !== "") this.#assembler.add(reader.push(rest));
      // A tool call that the token limit interrupts stays as it was streamed; only a complete text closes what it left open.
      this.#assembler.add(reader.end(reason === "length"));
    }
    this.finished = true;
    const warning = unknownToolsWarning(reader.unknownTools);
    if (warning !== null) this.#environment.log(`${this.#message.requestId}: ${warning}`, "warn");
    // The text that was held back until the end may contain a stop string.
    this.#assembler.finish(reason, stop ?? reader.stopped ?? undefined, limit);
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

/** The positions of `count` rows of an image from `offset` on. `next`: the position of the sequence. */
function rowPositions(
  { count: all, mrope }: PlacedImage,
  { offset, count, next }: { readonly offset: number; readonly count: number; readonly next: number },
): Int32Array {
  if (!mrope) return Int32Array.from({ length: count }, (_, at) => next + at);
  const positions = new Int32Array(4 * count);
  for (let dimension = 0; dimension < 4; dimension++)
    for (let at = 0; at < count; at++) {
      const row = dimension * all + offset + at;
      positions[dimension * count + at] = (mrope.at[row] ?? 0) + (mrope.moves[row] === 1 ? next : 0);
    }
  return positions;
}
