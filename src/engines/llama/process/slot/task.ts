import type { QueueTier } from "../../../../wire/core/request.ts";
import type { SlotState } from "../../../../wire/core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../../../../wire/core/events.ts";
import { reasoningMarkers } from "../../../../text/formats/reasoning.ts";
import type { NewPrompt } from "../../cache/known-prompts.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { RawText } from "../../protocol.ts";
import { isRow, type PlacedImage } from "../../vision/prompt-images.ts";
import { type Draft, TaskDrafts } from "../batch/drafter.ts";
import { type AdapterScales, type NativeAdapters, requestedScales } from "../c-api/adapters.ts";
import { checkpointPositions } from "../prompt-cache/prompt-cache.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";
import { type AnswerEnvironment, AnswerReader } from "./answer-reader.ts";
import { ImageRows, type RowChunk, type RowEnvironment, type TokenChunk } from "./image-rows.ts";
import { PromptReport } from "./prompt-report.ts";

/** What all tasks of a model share. */
export interface TaskEnvironment extends AnswerEnvironment, RowEnvironment {
  readonly model: AnswerEnvironment["model"];
  readonly contextSize: number;
  /** Absent if the model has no adapters. */
  readonly adapters?: NativeAdapters | undefined;
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

/** A cancelled or ended request needs none of its tasks. */
export function isCancelled({ request }: Task): boolean {
  return request.cancelled || request.ended;
}

/** In characters; few tokens are longer. */
const maxTokenLength = 8;

/**
 * One answer, from its prompt to its `finish` event. The scheduler assigns it a sequence, and takes a chunk of it for each batch: a part of
 * the prompt, or the last token with a draft of those that may follow. After the decode, `decoded` has the answer sampled from the logits
 * (`AnswerReader`). As long as a sampled token is the drafted one, it samples from the next logits.
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
  readonly answer: AnswerReader;
  readonly #environment: TaskEnvironment;
  readonly #message: PreparedRequest;
  readonly #report: PromptReport;
  /** Absent for a prompt without images. */
  readonly #images: ImageRows | undefined;
  /** Prompt and answer. What the sequence does not hold is decoded next. */
  readonly #tokens: number[];
  /** Positions in the prompt at which checkpoints are useful, ascending. */
  #checkpoints: readonly number[] = [];
  #sequence: Sequence | undefined;
  /** Prompt tokens that the sequence held when the task started; `undefined` before that. */
  #cachedTokens: number | undefined;

  /** Throws FailureError for a request that cannot be served. */
  constructor(environment: TaskEnvironment, options: TaskOptions) {
    const { model, vocabulary, contextSize, context } = environment;
    const { request, message, prompt, number, seed, images = [] } = options;
    const { prediction, sampling, limits } = message;
    this.#environment = environment;
    this.#message = message;
    this.request = request;
    this.owner = options.owner;
    this.tier = message.tier;
    this.order = options.order;
    this.number = number;
    this.prompt = prompt;
    this.#tokens = prompt.slice();
    if (images.length > 0) this.#images = new ImageRows(environment, images, () => isCancelled(this));
    this.#report = new PromptReport({ message, number, prompt, vocabulary, context });
    this.adapters = requestedScales(sampling.adapters, environment.adapters?.scales ?? []);
    const maxTokens = Math.min(limits.maxTokens ?? Number.POSITIVE_INFINITY, contextSize - prompt.length);
    this.answer = new AnswerReader(environment, { message, number, prompt, seed, maxTokens });
    this.drafts = new TaskDrafts({
      prompt: prompt.length,
      isLast: (token) => !isRow(token) && vocabulary.endsGeneration(token),
      ...(prediction !== undefined && {
        // The part of a prediction that is longer than any answer is not tokenized.
        prediction: () => model.tokenize(prediction.slice(0, contextSize * maxTokenLength), false),
      }),
    });
  }

  /** `request.choice`, as it is in the log. */
  get id(): string {
    return `${this.request.id}.${this.number}`;
  }

  get finished(): boolean {
    return this.answer.finished;
  }

  /** Why the next image cannot be decoded. */
  get failure(): unknown {
    return this.#images?.failure;
  }

  get cachedTokens(): number {
    return this.#cachedTokens ?? 0;
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

  /** The tokens of the prompt and of the answer. */
  get tokens(): readonly number[] {
    return this.#tokens;
  }

  /** Tokens that the sequence holds. */
  get #length(): number {
    return this.#sequence?.length ?? 0;
  }

  /** Tokens to decode before the next one can be sampled, except the one that was sampled last. */
  get promptLeft(): number {
    const left = this.#tokens.length - this.#length;
    return this.answer.counts.generated > 0 && left === 1 ? 0 : left;
  }

  get progress(): Omit<SlotState, "id" | "busy" | "task" | "contextSize" | "speculative"> {
    const left = Math.min(this.prompt.length, this.promptLeft);
    return {
      promptTokens: this.prompt.length,
      cachedTokens: this.cachedTokens,
      evaluatedTokens: this.prompt.length - left,
      generatedTokens: this.answer.counts.generated,
      tokensLeft: this.answer.tokensLeft,
    };
  }

  /** Cached tokens of the prompt may be used: not if the client declines, nor if the logprobs of the prompt are requested. */
  get usesCache(): boolean {
    return !this.discardsCache && this.#report.top === undefined;
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
    return this.#checkpoints.includes(this.#length);
  }

  /** Takes a sequence, and keeps the tokens of it that the prompt starts with. Called again after `preempt`. */
  start(sequence: Sequence): void {
    this.#sequence = sequence;
    sequence.setAdapters(this.adapters);
    sequence.startPrompt(this.prompt.length);
    this.#checkpoints = this.#checkpointPositions();
    sequence.truncate(this.usesCache ? Math.min(sequence.commonLength(this.#tokens), this.#tokens.length - 1) : 0);
    this.#images?.load(sequence.length);
    if (this.#cachedTokens !== undefined) return;
    this.#cachedTokens = sequence.length;
    this.answer.add(this.#report.start(this.#cachedTokens));
    // A prompt that is only echoed, or fills the context, is not processed: no answer can follow.
    const { limits, echo } = this.#message;
    const isPrewarm = limits.maxTokens === 0 && !echo;
    if (this.answer.tokensLeft <= 0 && !isPrewarm && !this.#report.isReading) this.answer.finish("length");
    else this.#report.progress(this.#cachedTokens);
  }

  /** Gives up the sequence with its tokens. The task continues when it is started again. */
  preempt(): void {
    this.#sequence?.clear();
    this.#sequence = undefined;
    this.#images?.drop();
    this.#report.restart();
  }

  /** It cannot continue before the rows of the next image are computed. */
  get awaitsRows(): boolean {
    return this.#images?.isAt(this.#length) === true && !this.#images.areThere;
  }

  /** Tokens that the next chunk of the prompt has at most; 0 at an image. */
  get chunkLimit(): number {
    if (this.#images?.isAt(this.#length) === true) return 0;
    const from = this.#length;
    const left = this.#tokens.length - from;
    const checkpoint = this.#checkpoints.find((position) => position > from) ?? Infinity;
    const image = this.#images?.after(from)?.start ?? Infinity;
    return Math.min(this.readsPrompt ? left - 1 : left, checkpoint - from, image - from);
  }

  /** Logits of all tokens of the next chunk are needed. The last token is not among them. */
  get readsPrompt(): boolean {
    return this.#report.isReading && this.#tokens.length > this.#length + 1;
  }

  /** The next chunk of the prompt, with this number of tokens. */
  promptChunk(count: number): TokenChunk {
    const from = this.#length;
    const isLast = from + count === this.#tokens.length;
    return { tokens: this.#tokens.slice(from, from + count), outputs: this.readsPrompt ? count : isLast ? 1 : 0 };
  }

  /** The next rows of the image at which the prompt is: at most `max`, or `maxCausal` if they do not attend to later ones. */
  rowChunk(max: number, maxCausal: number): RowChunk {
    if (!this.#images || !this.#sequence) throw new Error("The prompt is not at an image.");
    return this.#images.chunk(this.#sequence, this.#tokens, { max, maxCausal });
  }

  /** The last token of the answer with a draft of the next ones. */
  answerChunk(draft: readonly number[] = []): TokenChunk {
    return { tokens: [this.#tokens.at(-1) ?? 0, ...draft], outputs: 1 + draft.length };
  }

  /** Draft tokens that may be decoded after the last token: more would be past the end, or too far ahead of the client. */
  get maxDraft(): number {
    const { maxRollback } = this.#environment.context;
    return Math.min(maxRollback, this.request.tokensAhead - 1, this.answer.tokensLeft - 1);
  }

  /** Drafts at most `max` tokens after the last one. */
  draft(max: number): Draft {
    const draft = this.drafts.next(this.#tokens, Math.min(max, this.maxDraft));
    const end = this.#images ? draft.tokens.findIndex(isRow) : -1;
    if (end === -1) return draft;
    return { ...draft, tokens: draft.tokens.slice(0, end), probabilities: draft.probabilities.slice(0, end) };
  }

  /** A batch with this chunk was decoded. `index`: that of the chunk's first token in the batch. */
  decoded({ tokens, outputs }: TokenChunk, index: number): void {
    const { answer } = this;
    const sequence = this.#sequence;
    if (!sequence) throw new Error("The task has not started.");
    const image = this.#images?.after(sequence.length);
    if (image?.start === sequence.length) sequence.appendImage(image);
    sequence.append(tokens);
    this.#images?.load(sequence.length);
    const first = tokens.length - outputs;
    const isPrefilled = sequence.length >= this.#tokens.length;
    if (this.#report.isReading && !isPrefilled) {
      answer.add(this.#report.read(outputs, index + first));
      if (answer.tokensLeft <= 0 && !this.#report.isReading) answer.finish("length");
    } else if (isPrefilled && answer.tokensLeft <= 0) answer.finish("length");
    else if (outputs > 0) this.#sampleAfter(sequence, tokens.slice(first), index + first);
    if (answer.counts.generated === 0) this.#report.progress(this.prompt.length - this.promptLeft);
  }

  /** Forces the end of the reasoning after the current token. Returns false if the answer is not reasoning. */
  endReasoning(): boolean {
    return this.#cachedTokens !== undefined && this.answer.endReasoning();
  }

  takeEvents(): GenerationEvent[] {
    const events = this.answer.takeEvents();
    const reports = this.#report.take();
    return reports.length === 0 ? events : [...reports, ...events];
  }

  /** Frees what the task holds, in any state. Does not access the context, which may be decoding. */
  release(): void {
    this.answer.free();
    this.#sequence = undefined;
    this.#images?.drop();
  }

  #checkpointPositions(): readonly number[] {
    const { model, vocabulary } = this.#environment;
    if (!this.usesCache || !model.needsCheckpoints) return [];
    const bytesOf = (token: number): number => vocabulary.bytes(token).length;
    const positions = checkpointPositions(this.prompt, this.outlined.outline, bytesOf);
    const images = this.#images;
    return images ? [...new Set(positions.map((position) => images.outside(position)))] : positions;
  }

  /**
   * Samples after the first of these tokens, and after each draft token that is the one sampled before it. The rejected rest of the draft is
   * removed from the sequence.
   */
  #sampleAfter(sequence: Sequence, tokens: readonly number[], index: number): void {
    const drafted = tokens.length - 1;
    if (this.answer.counts.generated === 0) this.#report.progress(this.prompt.length);
    let accepted = 0;
    for (;;) {
      const sampled = this.answer.sample(index + accepted);
      this.#tokens.push(sampled);
      if (this.finished || accepted === drafted || sampled !== tokens[accepted + 1]) break;
      accepted++;
    }
    if (drafted === 0) return;
    this.drafts.record(drafted, accepted);
    const length = sequence.length - drafted + accepted;
    // Where the sequence cannot be truncated there, tokens are decoded again, which costs more than any draft gains.
    if (sequence.truncate(length) < length) this.drafts.stop();
  }
}
