import type { GenerationEnd, GenerationEvent, SourceIdentity, StartEvent, Usage } from "../../core/events.ts";
import type { CaptureForm } from "../capture-form.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerChoices } from "./answer-choices.ts";
import type { ChoiceState } from "./answer-choices.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { ChunkOrder } from "./chunk-order.ts";
import { readFinishReason, trueFinishReason } from "./finish-reasons.ts";
import { KnownChunks } from "./known-chunks.ts";
import type { Hole } from "./known-chunks.ts";
import { badAnswer, callsWithoutCall, failureOfText, readFailure } from "./read-failure.ts";
import { readUsage } from "./read-usage.ts";
import { SourceReader, ExtraReader } from "./source-reader.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

export interface ChoicesReaderOptions extends AnswerReaderOptions {
  /** Is told which chunk holds what, for a capture that is written again. */
  readonly order?: ChunkOrder;
}

/**
 * Reads the answer of any server of OpenAI's dialect, which is made of choices, into generation events in their legal order.
 *
 * A finish reason is held back until the choice is surely over ([DONE], the usage chunk, the end of the input, or another choice
 * going on while the source has been exact so far), because servers send text and calls after it.
 */
export abstract class ChoicesReader<Choice extends ChoiceState> extends AnswerReader {
  protected readonly options: ChoicesReaderOptions;
  /** Chunks of this object are streamed, those of `bodyObject` are whole answers. */
  protected abstract readonly chunkObject: string;
  protected abstract readonly bodyObject: string;

  /** How many events were handed out. */
  #taken = 0;
  #choices: AnswerChoices<Choice>;
  #source = new SourceReader(this.repairs);
  #usage: Usage | null = null;
  #usageTold = false;
  #extras = new ExtraReader();
  #sawWholeAnswer = false;
  #doneSeen = false;
  #knownChunks = new KnownChunks<Choice>();
  /** Choices whose finish reason has come and waits to be sent. */
  #finishing = new Set<Choice>();

  constructor(options: ChoicesReaderOptions) {
    super(options.frameLimit);
    this.options = options;
    const limit = options.choices ?? Number.POSITIVE_INFINITY;
    this.#choices = new AnswerChoices((choice) => this.newChoice(choice), this.repairs, limit);
  }

  /** Every choice that began has its finish reason. */
  get finished(): boolean {
    return this.#choices.finished;
  }

  /** Whether any choice has begun. */
  get begun(): boolean {
    return this.#choices.size > 0;
  }

  /** Whether the source is OpenAI itself. */
  get madeByOpenAi(): boolean {
    return this.#source.isOpenAi;
  }

  get identity(): SourceIdentity {
    return this.#source.identity ?? {};
  }

  /** The form of an answer of OpenAI's own; see `CaptureForm`. */
  get form(): CaptureForm {
    return this.#source.form;
  }

  readBody(body: unknown): GenerationEvent[] {
    this.#sawWholeAnswer = true;
    this.#chunk(body);
    if (this.ended) return this.handOut();
    if (this.finished) this.#finish();
    else this.fail(badAnswer("The upstream's answer has no choice that is complete."));
    return this.handOut();
  }

  frame(data: string, event: string, bare: boolean): void {
    if (this.ended) {
      if (this.#doneSeen) this.repairs.note("after-done");
      return;
    }
    const trimmed = data.trim();
    if (trimmed === "[DONE]") this.#done();
    else if (trimmed === "") this.repairs.note("keep-alive");
    else this.content(data, event, bare);
  }

  /** A chunk that differs from an earlier one in one string alone; called by the frame reader. */
  take(line: string, start: number, end: number): boolean {
    if (this.ended) return false;
    const isKnown = this.#knownChunks.match(line, start, end, (state, kind, text) => {
      const { choice } = state;
      if (kind === "text") this.out.push({ type: "text-delta", choice, text });
      else if (kind === "reasoning") this.out.push({ type: "reasoning-delta", choice, text });
      else return this.continueCall(state, text, this.out);
      return true;
    });
    if (isKnown) this.options.order?.endChunk(this.#position);
    return isKnown;
  }

  protected object(value: object | null, data: string, event: string, bare: boolean): void {
    const isBody = bare && !this.begun && isWhole(value, this.bodyObject);
    const isShared = !isBody && isObject(value) && Array.isArray(value["choices"]) && value["choices"].length > 1;
    if (bare) this.repairs.note(isBody ? "json-body" : "bare-json");
    if (event === "error" && readFailure(value) === null) this.fail(failureOfText(JSON.stringify(value)));
    else this.#chunk(value, data);
    if (isShared && !this.#isOpenAiCompletion) this.repairs.note("shared-chunk");
    this.options.order?.endChunk(this.#position);
    if (isBody && !this.ended && this.finished) {
      this.#sawWholeAnswer = true;
      this.#finish();
    }
  }

  protected override inputOver(cause: Error | undefined): void {
    if (!this.finished) return super.inputOver(cause);
    this.repairs.note("no-done");
    this.#finish();
  }

  protected override givenUp(end: GenerationEnd): void {
    if (this.finished && end.kind !== "client-gone") this.#finish();
    else super.givenUp(end);
  }

  protected override handOut(): GenerationEvent[] {
    const out = super.handOut();
    this.#taken += out.length;
    return out;
  }

  /** Reads one element of `choices`; false when it holds nothing. */
  protected abstract readChoice(raw: JsonObject, state: Choice, out: GenerationEvent[]): boolean;
  /** A choice is over: what is open is closed. */
  protected abstract closeChoice(state: Choice, out: GenerationEvent[]): void;
  protected abstract newChoice(choice: number): Choice;
  /** How many calls a choice has. */
  protected abstract callCount(state: Choice): number;
  /** Where the one string of a chunk stood that became this one event; null when such chunks cannot be proved. */
  protected abstract holePath(raw: JsonObject, event: GenerationEvent): Hole | null;
  /** Continues a call with text that a template proved; false: not possible, read the chunk. */
  protected continueCall(_state: Choice, _text: string, _out: GenerationEvent[]): boolean {
    return false;
  }

  /** Whether a choice's call came in the legacy form. */
  protected sawLegacyCall(_state: Choice): boolean {
    return false;
  }

  /** Opens a choice, if it is not open. */
  protected start(state: Choice, out: GenerationEvent[], announced?: StartEvent["announced"]): void {
    if (state.started) return;
    state.started = true;
    out.push({
      type: "start",
      choice: state.choice,
      ...(announced && { announced }),
      ...(this.#source.identity && { source: this.#source.identity }),
    });
  }

  /** How many events there are so far. */
  get #position(): number {
    return this.#taken + this.out.length;
  }

  /** Whether this is OpenAI's own answer in its legacy API, which has freedoms that chat does not. */
  get #isOpenAiCompletion(): boolean {
    return this.chunkObject === "text_completion" && this.madeByOpenAi;
  }

  #chunk(value: unknown, text?: string): void {
    const failure = readFailure(value);
    if (failure) {
      this.fail(failure);
      return;
    }
    if (!isObject(value)) {
      this.fail(badAnswer("The upstream's answer is not an object."));
      return;
    }
    const before = { repairs: this.repairs.total, events: this.out.length, identity: this.#source.identity };
    const choices = Array.isArray(value["choices"]) ? value["choices"].filter(isObject) : [];
    const usage = this.#readUsage(value);
    if (choices.length === 0 && !usage && !isAnnouncement(value)) this.repairs.note("no-choices");
    const [first] = choices;
    this.#source.identify(value, first !== undefined);
    if (first && !this.begun) this.#source.describeForm(value, first);
    const object = isWhole(value, this.bodyObject) ? this.bodyObject : this.chunkObject;
    if (value["object"] !== object) this.repairs.note("object");
    for (const [position, raw] of choices.entries()) this.#choice(raw, position, choices.length);
    if (this.ended) return;
    if (choices.length === 0 && usage && this.finished) this.#tellUsage();
    this.#extras.chunk(value, this.out);
    const isLearnable =
      text !== undefined && choices.length === 1 && !usage && this.#source.identity === before.identity;
    // A chunk that says more than one delta may change what the known chunks mean: which call is open, which extra came last.
    if (!isLearnable || !this.#learn(text, first ?? {}, before)) this.#knownChunks.forget();
  }

  #choice(raw: JsonObject, position: number, siblings: number): void {
    if (this.ended) return;
    const state = this.#choices.of(raw, position, siblings);
    if (!state) return;
    const out = this.out;
    if (state.told) {
      // Usage came, or another choice went on while the source was exact. What follows may be OpenAI's farewell to audio.
      const before = out.length;
      this.#extras.choice(raw, state.choice, out);
      if (readFinishReason(raw["finish_reason"])) this.#finishAgain(state, raw["text"] === "");
      else if (out.length === before) this.repairs.note("early-finish");
      return;
    }
    if (this.#choices.size > 1 && this.repairs.total === 0) this.#settleOthers(state);
    const eventsBefore = out.length;
    const hadContent = this.readChoice(raw, state, out);
    this.#extras.choice(raw, state.choice, out);
    if (hadContent && state.finish !== null) {
      this.repairs.note("early-finish");
      this.options.order?.moveFinish(state.choice);
    }
    const finish = readFinishReason(raw["finish_reason"]);
    if (!finish) return;
    this.start(state, out);
    if (finish.reason === "failed") {
      this.fail(badAnswer(`The upstream ended the answer with finish_reason "${String(raw["finish_reason"])}".`));
      return;
    }
    if (!finish.exact) this.repairs.note("finish-reason");
    if (state.finish !== null) {
      this.#finishAgain(state, !hadContent);
      return;
    }
    const whole = raw["message"] !== undefined || this.#sawWholeAnswer;
    if (out.length > eventsBefore && !whole && this.chunkObject !== "text_completion") {
      this.repairs.note("finish-with-content");
    }
    state.finish = finish.reason;
    this.#finishing.add(state);
    this.options.order?.addFinish(state.choice);
    const stop = raw["stop_reason"] ?? raw["matched_stop"] ?? raw["stopping_word"];
    if (typeof stop === "string" && stop !== "") state.stop = stop;
  }

  /** OpenAI's legacy completions say `length` on the last text and once more alone, now and then (2 of 22 recordings). */
  #finishAgain({ choice }: Choice, isAlone: boolean): void {
    if (isAlone && this.#isOpenAiCompletion) this.options.order?.addFinish(choice);
    else this.repairs.note("repeated-finish");
  }

  /** Keeps the usage that a chunk carries; true when it does. */
  #readUsage(value: JsonObject): boolean {
    const groq = isObject(value["x_groq"]) ? value["x_groq"]["usage"] : undefined;
    const usage = readUsage(value["usage"] ?? groq, this.repairs);
    if (!usage) return false;
    const hasChoices = Array.isArray(value["choices"]) && value["choices"].length > 0;
    if ((hasChoices && value["object"] === this.chunkObject && !this.#sawWholeAnswer) || isObject(groq)) {
      if (this.chunkObject !== this.bodyObject) this.repairs.note("usage-place");
    }
    this.#usage = usage;
    return true;
  }

  #tellUsage(): void {
    this.#settle();
    if (this.#usageTold || this.ended || !this.#usage) return;
    this.#usageTold = true;
    this.out.push({ type: "usage", usage: this.#usage });
  }

  /** Tells the finish of the choices that have one, but for `current`, which goes on. */
  #settleOthers(current: Choice): void {
    for (const state of this.#finishing) if (state !== current) this.#tellFinish(state);
  }

  #settle(): void {
    for (const state of this.#finishing) this.#tellFinish(state);
  }

  #tellFinish(state: Choice): void {
    if (state.told || state.finish === null || this.ended) return;
    state.told = true;
    this.#finishing.delete(state);
    const from = this.#position;
    this.closeChoice(state, this.out);
    const { choice, stop, finish: said } = state;
    const calls = this.callCount(state);
    const form = this.form.choices.get(choice);
    const { callsInText = false, legacyFunctions } = this.options;
    const sawLegacyCall = this.sawLegacyCall(state);
    const isOpenAi = this.madeByOpenAi;
    const reason = trueFinishReason({ said, calls, sawLegacyCall, callsInText, legacyFunctions, isOpenAi });
    if (reason === null) {
      this.fail(callsWithoutCall());
      return;
    }
    if (reason !== said) {
      if (said !== "stop") this.repairs.note("finish-reason");
      else if (form) form.stopWithCalls = true;
      else this.repairs.note("finish-calls");
    }
    this.out.push({ type: "finish", choice, reason, ...(stop !== undefined && { stop }) });
    this.options.order?.close(choice, from, this.#position);
  }

  /** [DONE]. A choice without a finish reason ends here all the same: the source says that it is complete. */
  #done(): void {
    this.#doneSeen = true;
    for (const state of this.#choices) {
      if (state.finish !== null || state.told) continue;
      this.repairs.note("no-finish");
      // OpenAI's own "stop" after calls is right where the request named the tool; one that is made here is not.
      state.finish = this.callCount(state) > 0 ? "tool-calls" : "stop";
      this.#finishing.add(state);
    }
    if (!this.begun) {
      const stray = this.strayText;
      this.fail(stray === "" ? badAnswer("The upstream ended its answer without any choice.") : failureOfText(stray));
    } else this.#finish();
  }

  #finish(): void {
    for (const state of this.#choices) this.start(state, this.out);
    this.#tellUsage();
    if (!this.ended) this.conclude({ kind: "done" });
  }

  /** Learns a chunk that needed no repair and became one delta. False where the chunk was more, or less, than that. */
  #learn(chunk: string, raw: JsonObject, before: { readonly repairs: number; readonly events: number }): boolean {
    const event = this.out[before.events];
    if (!event || this.out.length !== before.events + 1 || this.repairs.total !== before.repairs) return false;
    const hole = this.holePath(raw, event);
    const state = "choice" in event && event.choice !== undefined ? this.#choices.get(event.choice) : undefined;
    if (!hole || !state || state.finish !== null) return false;
    this.#knownChunks.learn(chunk, hole, event, state);
    return true;
  }
}

/** A chunk without choices that has a reason to be there: Azure's filter results, OpenAI's moderation. */
function isAnnouncement(value: JsonObject): boolean {
  return value["prompt_filter_results"] !== undefined || value["moderation"] !== undefined;
}

/** Whether this is a whole answer and no chunk of one. `bodyObject`: the `object` of a whole answer of the endpoint. */
function isWhole(value: unknown, bodyObject: string): boolean {
  if (!isObject(value)) return false;
  const first: unknown = Array.isArray(value["choices"]) ? value["choices"][0] : undefined;
  return (
    isObject(first) &&
    (isObject(first["message"]) || (bodyObject === "text_completion" && first["finish_reason"] !== null))
  );
}
