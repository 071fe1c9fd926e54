import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp";
import { ChoiceAssembler } from "../../../generation/choice-assembler.ts";
import type { SlotState } from "../../../generation/engine.ts";
import type { GenerationEvent } from "../../../generation/event.ts";
import { startOf } from "../../../formats/reading/start.ts";
import { TextReader } from "../../../formats/text-reader.ts";
import { thoughtMarkers } from "../../../formats/thought-markers.ts";
import { unknownToolsWarning } from "../../../formats/unknown-tools.ts";
import type { Observe } from "../../../generation/observe.ts";
import type { AskedPrompt } from "../cache/known-prompts.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import type { LogitWindow } from "./draw-token.ts";
import { rankedLogprobs, tokenLogprob } from "./logprobs.ts";
import { readPromptLogits } from "./raw-logits.ts";
import { SourcePicker } from "./source-picker.ts";
import { StringBudget } from "./string-budget.ts";
import type { BanThought, ThoughtBan } from "./thought-ban.ts";
import { ThoughtBudget } from "./thought-budget.ts";
import { TokenText } from "./token-text.ts";
import type { OpenConstraint, TokenConstraint } from "./token-constraint.ts";
import type { SampledToken, TokenSource } from "./token-source.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** What all choices of a process share. */
export interface ChoiceSurroundings {
  readonly model: LlamaModel;
  readonly vocabulary: Vocabulary;
  readonly contextSize: number;
  readonly newCallId: () => string;
  readonly openConstraint: OpenConstraint;
  readonly banThought: BanThought;
  readonly log: Observe;
}

export interface ChoiceOptions {
  readonly message: PreparedRequest;
  /** The number that its events carry. */
  readonly number: number;
  readonly prompt: readonly Token[];
  readonly seed: number;
}

/** What a choice's next step would do: how much of its prompt is left, and which kind of work it is. */
export interface NextWork {
  readonly promptLeft: number;
  readonly kind: "begin" | "native" | "raw";
}

/**
 * One choice: from its prompt to its finish event. The scheduler gives it a sequence and calls `step`; each step evaluates a piece of
 * the prompt or samples one token, reads what the token says, and leaves events in `takeEvents`.
 */
export class Choice {
  readonly number: number;
  readonly prompt: readonly Token[];
  /** Prompt tokens that the sequence already held. */
  cachedTokens = 0;
  generatedTokens = 0;
  reasoningTokens = 0;
  /** Sum of the raw logprobs of the generated tokens; for best_of. */
  logprobSum = 0;
  finished = false;

  readonly #around: ChoiceSurroundings;
  readonly #message: PreparedRequest;
  readonly #reader: TextReader;
  readonly #text = new TokenText();
  readonly #picker: SourcePicker;
  readonly #maxTokens: number;
  readonly #constraint: TokenConstraint | undefined;
  readonly #shown: (token: Token) => Uint8Array;
  #sequence: LlamaContextSequence | undefined;
  #source: TokenSource | undefined;
  /** What is to be evaluated next: the rest of the prompt, then each sampled token. */
  #input: Token[];
  /** What was likely in the place of each of the prompt's tokens, while that is gathered. */
  #promptWindows: (LogitWindow | null)[] | undefined;
  /** What is told of the prompt, beside the choice's own events. */
  #told: GenerationEvent[] = [];
  #budget: ThoughtBudget | undefined;
  #strings: StringBudget | undefined;
  readonly #noThought: ThoughtBan | undefined;
  #begun = 0;
  readonly #assembler: ChoiceAssembler;
  /** What the model wrote since that was last taken, where somebody wants to see it. */
  #written: { readonly decoder: TokenText; text: string } | undefined;

  constructor(around: ChoiceSurroundings, options: ChoiceOptions) {
    const { message } = options;
    this.#around = around;
    this.#message = message;
    this.number = options.number;
    if (message.inspected) this.#written = { decoder: new TokenText(), text: "" };
    this.#assembler = new ChoiceAssembler(options.number);
    this.prompt = options.prompt;
    this.#input = options.prompt.slice();
    this.#maxTokens = Math.min(
      message.limits.maxTokens ?? Number.POSITIVE_INFINITY,
      around.contextSize - options.prompt.length,
    );
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
      this.#budget = new ThoughtBudget({
        tokens,
        closings: closing.map((text) => around.model.tokenize(text, true)),
        thinksAlready: startOf(format.kind === "plain" ? format.reasoning : undefined, { prefix }).place === "inside",
      });
    }
    const [quote, ...more] = around.model.tokenize('"', false, "trimLeadingSpace");
    if (message.stringLimit !== undefined && message.constraint?.json && quote !== undefined && more.length === 0)
      this.#strings = new StringBudget(message.stringLimit, quote);
    if (thinking === false) this.#noThought = around.banThought(format, prefix);
    this.#picker = new SourcePicker({
      model: around.model,
      vocabulary: around.vocabulary,
      message,
      seed: options.seed,
      prompt: options.prompt,
      maxTokens: this.#maxTokens,
      ...(this.#constraint && { constraint: this.#constraint }),
      ...((this.#budget ?? this.#strings) && { forced: () => this.#budget?.forced ?? this.#strings?.forced }),
      ...(this.#noThought && { banned: () => this.#bannedNow }),
    });
  }

  /** Where a grammar binds, it has the say. */
  get #bannedNow(): readonly Token[] {
    return this.#constraint?.evaluationState === undefined ? (this.#noThought?.banned ?? []) : [];
  }

  /** Of the choices of a prompt, this one tells of it. */
  get tellsOfPrompt(): boolean {
    return this.number % Math.max(this.#message.n, this.#message.bestOf) === 0;
  }

  /** The prompt's own logprobs are wanted, with so many alternatives. */
  get #promptTop(): number | undefined {
    const { logprobs, echo, telling } = this.#message;
    const ofEcho = echo ? logprobs?.top : undefined;
    const told = this.tellsOfPrompt ? telling.promptLogprobs?.top : undefined;
    return ofEcho === undefined ? told : Math.max(ofEcho, told ?? 0);
  }

  /** What explains why the prompt is not in the cache. */
  get outlined(): Pick<AskedPrompt, "outline" | "thoughtMarkers"> {
    const { prompts, reading } = this.#message;
    const prompt = prompts[this.#promptNumber];
    const outline = prompt?.type === "spans" ? prompt.outline : undefined;
    return { ...(outline && { outline }), thoughtMarkers: thoughtMarkers(reading.format) };
  }

  get nextWork(): NextWork {
    const promptLeft = this.generatedTokens > 0 ? 0 : this.#input.length;
    return { promptLeft, kind: this.#source && promptLeft === 0 ? this.#source.kind : "begin" };
  }

  /** How far it is. */
  get state(): Omit<SlotState, "id" | "busy" | "task" | "contextSize"> {
    const { promptLeft } = this.nextWork;
    return {
      promptTokens: this.prompt.length,
      cachedTokens: this.cachedTokens,
      evaluatedTokens: this.prompt.length - promptLeft,
      generatedTokens: this.generatedTokens,
      tokensLeft: this.#maxTokens - this.generatedTokens,
    };
  }

  /** What a sequence already knows of the prompt may be kept: not where it is unwanted, nor where the prompt's own logprobs are asked. */
  get usesCache(): boolean {
    return this.#message.limits.cachePrompt !== false && this.#promptTop === undefined;
  }

  /** Takes a sequence and keeps what it already knows of the prompt. */
  async begin(sequence: LlamaContextSequence): Promise<void> {
    this.#sequence = sequence;
    const { logprobs, echo, telling } = this.#message;
    this.#begun = performance.now();
    await sequence.adaptStateToTokens(this.usesCache ? this.prompt.slice(0, -1) : [], false);
    this.cachedTokens = sequence.nextTokenIndex;
    this.#input = this.prompt.slice(this.cachedTokens);
    if (telling.wantsTokenIds && this.tellsOfPrompt && telling.promptLogprobs === undefined)
      this.#told.push({ type: "prompt", prompt: this.#promptNumber, tokens: this.prompt });
    if (this.#promptTop !== undefined) {
      this.#promptWindows = [null];
      if (this.prompt.length === 1) this.#tellPrompt();
    }
    if (echo && logprobs === undefined)
      this.#assembler.add([{ type: "text-delta", choice: this.number, text: this.#promptText() }]);
    if (this.#maxTokens <= 0 && !this.#promptWindows && !this.finished) this.#finish("length");
    else this.#tellProgress(this.cachedTokens);
  }

  /** One step: at most `allowance` tokens of the prompt, or one token of the answer. */
  async step(allowance: number): Promise<void> {
    const sequence = this.#sequence;
    if (!sequence || this.finished) return;
    const piece = this.#promptPiece(allowance);
    if (piece) {
      await this.#evaluatePiece(sequence, piece);
      return this.#tellProgress(this.prompt.length - this.#input.length);
    }
    const source = this.#picker.source(sequence, this.generatedTokens);
    if (this.#source !== source) await this.#source?.release();
    this.#source = source;
    const input = this.#input;
    this.#input = [];
    this.#accept(await source.next(input));
  }

  /** What of the prompt is to be evaluated without sampling; null: the next evaluation samples. */
  #promptPiece(allowance: number): Token[] | null {
    const { promptLeft } = this.nextWork;
    if (this.#promptWindows) return promptLeft > 1 ? this.#input.splice(0, Math.min(allowance, promptLeft - 1)) : null;
    return promptLeft > allowance ? this.#input.splice(0, allowance) : null;
  }

  async #evaluatePiece(sequence: LlamaContextSequence, piece: readonly Token[]): Promise<void> {
    if (!this.#promptWindows) {
      await sequence.evaluateWithoutGeneratingNewTokens(piece.slice());
      return;
    }
    const start = this.#promptWindows.length - 1;
    const following = piece.map((_, i) => this.prompt[start + i + 1]);
    const { vocabulary } = this.#around;
    const windows = await readPromptLogits(sequence, piece, following, this.#promptTop ?? 0, vocabulary.size);
    for (const [i, window] of windows.entries())
      if (following[i] !== undefined) this.#promptWindows.push(window ?? null);
    if (this.#promptWindows.length === this.prompt.length) this.#tellPrompt();
  }

  /** The prompt, told with the logprobs of its tokens, and given back. The first token has none: nothing stood before it. */
  #tellPrompt(): void {
    const windows = this.#promptWindows ?? [];
    this.#promptWindows = undefined;
    const { vocabulary } = this.#around;
    const { logprobs, echo, telling } = this.#message;
    const { promptLogprobs } = telling;
    if (promptLogprobs && this.tellsOfPrompt) {
      const told = this.prompt.map((token, at) => {
        const window = windows[at] ?? null;
        return window && rankedLogprobs(vocabulary, token, window, promptLogprobs.top);
      });
      this.#told.push({ type: "prompt", prompt: this.#promptNumber, tokens: this.prompt, logprobs: told });
    }
    if (echo && logprobs) {
      const own = this.prompt.map((token, at) => tokenLogprob(vocabulary, token, windows[at] ?? null, logprobs.top));
      this.#assembler.add([{ type: "text-delta", choice: this.number, text: this.#promptText(), logprobs: own }]);
    }
    if (this.#maxTokens <= 0) this.#finish("length");
  }

  get #promptNumber(): number {
    return Math.floor(this.number / Math.max(this.#message.n, this.#message.bestOf));
  }

  #tellProgress(processed: number): void {
    if (!this.#message.telling.wantsProgress || !this.tellsOfPrompt) return;
    this.#told.push({
      type: "progress",
      choice: this.number,
      total: this.prompt.length,
      cached: this.cachedTokens,
      processed,
      ms: performance.now() - this.#begun,
    });
  }

  #promptText(): string {
    const text = new TokenText();
    return this.prompt.map((token) => text.push(this.#around.vocabulary.bytes(token))).join("") + text.end();
  }

  #accept({ token, window }: SampledToken): void {
    const { vocabulary } = this.#around;
    const { limits, logprobs } = this.#message;
    this.#input = [token];
    if (this.generatedTokens === 0) this.#tellProgress(this.prompt.length);
    this.generatedTokens++;
    if (this.#written) this.#written.text += this.#written.decoder.push(vocabulary.bytes(token));
    if (this.#message.telling.wantsTokenIds)
      this.#assembler.add([{ type: "tokens", choice: this.number, tokens: [token] }]);
    this.#picker.sampled(token);
    const logprob = window && tokenLogprob(vocabulary, token, window, logprobs?.top ?? 0);
    this.logprobSum += logprob?.logprob ?? 0;
    // Where a grammar lets a turn end, nothing else may come.
    const mayEnd = !limits.ignoreEos || this.#constraint?.evaluationState !== undefined;
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
    const isHeld = this.#constraint?.evaluationState !== undefined;
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
    if (this.#told.length === 0) return events;
    const told = this.#told;
    this.#told = [];
    return [...told, ...events];
  }

  /** What the model wrote since the last call; "": nothing, or nobody wants to see it. */
  takeWritten(): string {
    const text = this.#written?.text ?? "";
    if (this.#written) this.#written.text = "";
    return text;
  }

  /** Lets go of the sequence, whatever state the choice is in. */
  async release(): Promise<void> {
    await this.#source?.release();
    if (this.#message.limits.cachePrompt === false) await this.#sequence?.clearHistory();
    this.#sequence = undefined;
  }
}

/** The bytes that a token shows: none for a control token, unless the format has it in one of its markers. */
function shownBytes(vocabulary: Vocabulary, format: string): (token: Token) => Uint8Array {
  const nothing = new Uint8Array();
  return (token) => {
    if (!vocabulary.isControl(token)) return vocabulary.bytes(token);
    const inMarker = format.includes(JSON.stringify(vocabulary.entry(token)).slice(1, -1));
    return inMarker ? vocabulary.bytes(token) : nothing;
  };
}
