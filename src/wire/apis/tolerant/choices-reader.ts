import type { FinishReason, GenerationEnd, GenerationEvent, StartEvent, Usage } from "../../core/events.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerChoices, hasSharedIndex } from "./answer-choices.ts";
import type { ChoiceState, PlaceInChunk } from "./answer-choices.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { CallAssembler } from "./call-assembler.ts";
import { readFinishReason, trueFinishReason } from "./finish-reasons.ts";
import { KnownChunks } from "./known-chunks.ts";
import type { EmitKnown, Hole } from "./known-chunks.ts";
import { badAnswer, callsWithoutCall, failureOfText, readFailure } from "./read-failure.ts";
import { readUsage } from "./read-usage.ts";
import { SourceReader, ExtraReader } from "./source-reader.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** What differs between the APIs whose answers consist of choices. */
export interface ChoiceKind<Choice extends ChoiceState> {
  /** The `object` of streamed chunks; `bodyObject`: of whole answers. */
  readonly chunkObject: string;
  readonly bodyObject: string;
  create(choice: number, reader: ChoicesReader<Choice>): Choice;
  /** Whether an element begins a choice: only the first one of a choice has what this one has. */
  begins(raw: JsonObject): boolean;
  /** Reads one element of `choices`. Returns false if it has no content. */
  read(raw: JsonObject, state: Choice, reader: ChoicesReader<Choice>, out: GenerationEvent[]): boolean;
  /** Returns the path of the string that became this event; null if a template cannot be learned from such chunks. */
  holePath(raw: JsonObject, event: GenerationEvent): Hole | null;
  /** The calls of a choice; undefined if the API has none. */
  callsOf(state: Choice): CallAssembler | undefined;
  /** Whether a choice's call came in the legacy form. */
  isLegacyCall(state: Choice): boolean;
  /** Emits what has waited for the end of the content. All calls have ended. */
  endContent?(state: Choice, reader: ChoicesReader<Choice>, out: GenerationEvent[]): void;
}

/**
 * Reads an answer that consists of choices, of any server of OpenAI's dialect, into generation events in their legal order.
 *
 * A finish reason is held back until the choice has certainly ended ([DONE], the usage chunk, the end of the input, or a delta of another
 * choice while the answer has needed no repair), because servers send text and calls after it.
 */
export class ChoicesReader<Choice extends ChoiceState> extends AnswerReader {
  readonly options: AnswerReaderOptions;
  readonly #kind: ChoiceKind<Choice>;
  #choices: AnswerChoices<Choice>;
  #source = new SourceReader(this.repairs);
  #usage: Usage | null = null;
  #usageSent = false;
  /** llama.cpp's `timings`, which may come before the usage. */
  #timings: unknown;
  #extras = new ExtraReader();
  #sawWholeAnswer = false;
  #doneSeen = false;
  #knownChunks = new KnownChunks<Choice>();
  /** Choices whose finish reason is held back. */
  #finishing = new Set<Choice>();

  constructor(kind: ChoiceKind<Choice>, options: AnswerReaderOptions) {
    super(options.frameLimit);
    this.options = options;
    this.#kind = kind;
    const limit = options.choices ?? Number.POSITIVE_INFINITY;
    this.#choices = new AnswerChoices((choice) => kind.create(choice, this), this.repairs, limit);
  }

  /** Every choice that has begun has its finish reason. */
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

  /** Reads chunks that differ from an earlier one in one string only. Called by the frame reader. */
  take(text: string, start: number, end: number): number {
    // The place of each event is known if each is read alone.
    return this.ended ? -1 : this.#knownChunks.match(text, start, end, this.#emitKnown, !this.repairs.keepsPlaces);
  }

  readonly #emitKnown: EmitKnown<Choice> = (state, kind, text) => {
    if (kind !== "arguments") {
      if (!state.hasText && kind === "text") state.hasText = /\S/.test(text);
      this.add({ type: kind === "text" ? "text-delta" : "reasoning-delta", choice: state.choice, text });
    } else if (this.#kind.callsOf(state)?.continueLatest(text, this.out) !== true) return false;
    return true;
  };

  protected object(value: object | null, data: string, event: string, bare: boolean): void {
    const isBody = bare && !this.begun && isWhole(value, this.#kind.bodyObject);
    const isShared = !isBody && isObject(value) && Array.isArray(value["choices"]) && value["choices"].length > 1;
    if (bare) this.repairs.note(isBody ? "json-body" : "bare-json");
    if (event === "error" && readFailure(value) === null) this.fail(failureOfText(JSON.stringify(value)));
    else this.#chunk(value, data);
    if (isShared && !this.#isOpenAiCompletion) this.repairs.note("shared-chunk");
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

  /** Opens a choice, if it is not open. */
  start(state: Choice, out: GenerationEvent[], announced?: StartEvent["announced"]): void {
    if (state.started) return;
    state.started = true;
    out.push({
      type: "start",
      choice: state.choice,
      ...(announced && { announced }),
      ...(this.#source.identity && { source: this.#source.identity }),
    });
  }

  /** Whether this is OpenAI's own answer in its legacy API, which is less regular than chat. */
  get #isOpenAiCompletion(): boolean {
    return this.#kind.chunkObject === "text_completion" && this.madeByOpenAi;
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
    if (first && !this.begun) this.#source.recognize(value);
    const object = isWhole(value, this.#kind.bodyObject) ? this.#kind.bodyObject : this.#kind.chunkObject;
    if (value["object"] !== object) this.repairs.note("object");
    const isIndexShared = hasSharedIndex(choices);
    for (const [position, raw] of choices.entries())
      this.#choice(raw, { position, siblings: choices.length, isIndexShared });
    if (this.ended) return;
    if (choices.length === 0 && usage && this.finished) this.#sendUsage();
    this.#extras.chunk(value, this.out);
    const isLearnable =
      text !== undefined && choices.length === 1 && !usage && this.#source.identity === before.identity;
    // A chunk with more than one delta may change the meaning of known chunks: which call is open, which extra came last.
    if (!isLearnable || !this.#learn(text, first ?? {}, before)) this.#knownChunks.forget();
  }

  /** The choice of an element. One that begins after the end of a choice under the same index is the next requested one. */
  #choiceOf(raw: JsonObject, place: PlaceInChunk): Choice | undefined {
    const state = this.#choices.of(raw, place);
    if (!state || state.finish === null || !this.#choices.isAnyMissing || !this.#kind.begins(raw)) return state;
    this.repairs.note("choice-index");
    this.#knownChunks.forget();
    return this.#choices.openNext(raw, place);
  }

  #choice(raw: JsonObject, place: PlaceInChunk): void {
    if (this.ended) return;
    const state = this.#choiceOf(raw, place);
    if (!state) return;
    const out = this.out;
    if (state.finished) {
      // The choice has ended (see above). What follows may be the last chunk of OpenAI's audio.
      const before = out.length;
      this.#extras.choice(raw, state.choice, out);
      const again = readFinishReason(raw["finish_reason"]);
      if (again) this.#finishAgain(state, again.reason, raw["text"] === "");
      else if (out.length === before) this.repairs.note("early-finish");
      return;
    }
    if (this.#choices.size > 1 && this.repairs.total === 0) this.#finishOthers(state);
    const eventsBefore = out.length;
    const hadContent = this.#kind.read(raw, state, this, out);
    this.#extras.choice(raw, state.choice, out);
    if (hadContent && state.finish !== null) this.repairs.note("early-finish");
    if (!state.hasText) state.hasText = hasVisibleText(out, eventsBefore);
    const finish = readFinishReason(raw["finish_reason"]);
    if (!finish) return;
    this.start(state, out);
    if (finish.reason === "failed") {
      this.fail(badAnswer(`The upstream ended the answer with finish_reason "${String(raw["finish_reason"])}".`));
      return;
    }
    if (!finish.exact) this.repairs.note("finish-reason");
    if (state.finish !== null) {
      this.#finishAgain(state, finish.reason, !hadContent);
      return;
    }
    const whole = raw["message"] !== undefined || this.#sawWholeAnswer;
    if (out.length > eventsBefore && !whole && this.#kind.chunkObject !== "text_completion") {
      this.repairs.note("finish-with-content");
    }
    this.#setFinish(state, finish.reason);
    const stop = raw["stop_reason"] ?? raw["matched_stop"] ?? raw["stopping_word"];
    if (typeof stop === "string" && stop !== "") state.stop = stop;
  }

  #setFinish(state: Choice, reason: FinishReason): void {
    state.finish = reason;
    this.#finishing.add(state);
  }

  /**
   * A further finish reason of a choice. Some servers send the ends of all choices under one index: a further one belongs to the next
   * choice without an end. OpenAI's legacy completions occasionally repeat `length` in a chunk without text (2 of 22 recordings).
   */
  #finishAgain(state: Choice, reason: FinishReason | "failed", isAlone: boolean): void {
    if (isAlone && this.#isOpenAiCompletion) return;
    this.repairs.note("repeated-finish");
    if (reason === "failed") return;
    const other = this.#choices.unfinished;
    if (state.isFinishBorrowed && !state.finished) {
      state.isFinishBorrowed = false;
      state.finish = reason;
    } else if (isAlone && other) {
      other.isFinishBorrowed = true;
      this.#setFinish(other, reason);
    }
  }

  /** Stores a chunk's usage. Returns whether there is any. */
  #readUsage(value: JsonObject): boolean {
    const groq = isObject(value["x_groq"]) ? value["x_groq"]["usage"] : undefined;
    this.#timings = value["timings"] ?? this.#timings;
    const usage = readUsage(value["usage"] ?? groq, this.repairs, this.#timings);
    if (!usage) return false;
    const hasChoices = Array.isArray(value["choices"]) && value["choices"].length > 0;
    if ((hasChoices && value["object"] === this.#kind.chunkObject && !this.#sawWholeAnswer) || isObject(groq)) {
      if (this.#kind.chunkObject !== this.#kind.bodyObject) this.repairs.note("usage-place");
    }
    this.#usage = usage;
    return true;
  }

  #sendUsage(): void {
    this.#finishAll();
    if (this.#usageSent || this.ended || !this.#usage) return;
    this.#usageSent = true;
    this.out.push({ type: "usage", usage: this.#usage });
  }

  /** Emits the finish of all other choices that have a finish reason. */
  #finishOthers(current: Choice): void {
    for (const state of this.#finishing) if (state !== current) this.#sendFinish(state);
  }

  #finishAll(): void {
    for (const state of this.#finishing) this.#sendFinish(state);
  }

  #sendFinish(state: Choice): void {
    if (state.finished || state.finish === null || this.ended) return;
    state.finished = true;
    this.#finishing.delete(state);
    const from = this.out.length;
    const choiceCalls = this.#kind.callsOf(state);
    choiceCalls?.close(this.out);
    this.#kind.endContent?.(state, this, this.out);
    const { choice, stop, finish: received } = state;
    const calls = choiceCalls?.started ?? 0;
    const hasText = state.hasText || hasVisibleText(this.out, from);
    const { callsInText = false, legacyFunctions } = this.options;
    const sawLegacyCall = this.#kind.isLegacyCall(state);
    const isOpenAi = this.madeByOpenAi;
    const reason = trueFinishReason({
      received,
      calls,
      sawLegacyCall,
      hasText,
      callsInText,
      legacyFunctions,
      isOpenAi,
    });
    if (reason === null) {
      this.fail(callsWithoutCall());
      return;
    }
    if (reason !== received) {
      if (received !== "stop") this.repairs.note(reason === "stop" ? "finish-without-calls" : "finish-reason");
      // OpenAI ends calls that the request forces by name with "stop".
      else if (!isOpenAi) this.repairs.note("finish-calls");
    }
    this.out.push({ type: "finish", choice, reason, ...(stop !== undefined && { stop }) });
  }

  /** [DONE] also ends choices without a finish reason: the source reports the answer as complete. */
  #done(): void {
    this.#doneSeen = true;
    for (const state of this.#choices) {
      if (state.finish !== null || state.finished) continue;
      this.repairs.note("no-finish");
      // OpenAI's own "stop" after calls is correct if the request named the tool, but here the reason is invented.
      state.finish = (this.#kind.callsOf(state)?.started ?? 0) > 0 ? "tool-calls" : "stop";
      this.#finishing.add(state);
    }
    if (!this.begun) {
      const stray = this.strayText;
      this.fail(stray === "" ? badAnswer("The upstream ended its answer without any choice.") : failureOfText(stray));
    } else this.#finish();
  }

  #finish(): void {
    for (const state of this.#choices) this.start(state, this.out);
    this.#sendUsage();
    if (!this.ended) this.conclude({ kind: "done" });
  }

  /** Learns a chunk that needed no repair and became one delta. Returns false for any other chunk. */
  #learn(chunk: string, raw: JsonObject, before: { readonly repairs: number; readonly events: number }): boolean {
    const event = this.out[before.events];
    if (!event || this.out.length !== before.events + 1 || this.repairs.total !== before.repairs) return false;
    const hole = this.#kind.holePath(raw, event);
    const state = "choice" in event && event.choice !== undefined ? this.#choices.get(event.choice) : undefined;
    if (!hole || !state || state.finish !== null) return false;
    this.#knownChunks.learn(chunk, hole, event, state);
    return true;
  }
}

/** Whether there is a text that is not blank, from an index on. */
function hasVisibleText(events: readonly GenerationEvent[], from: number): boolean {
  for (let at = from; at < events.length; at++) {
    const event = events[at];
    if ((event?.type === "text-delta" || event?.type === "refusal-delta") && /\S/.test(event.text)) return true;
  }
  return false;
}

/** Whether a chunk without choices is legitimate: Azure's filter results, OpenAI's moderation. */
function isAnnouncement(value: JsonObject): boolean {
  return value["prompt_filter_results"] !== undefined || value["moderation"] !== undefined;
}

/** Whether this is a whole answer, not a chunk. `bodyObject`: the `object` of a whole answer of the endpoint. */
function isWhole(value: unknown, bodyObject: string): boolean {
  if (!isObject(value)) return false;
  const first: unknown = Array.isArray(value["choices"]) ? value["choices"][0] : undefined;
  return (
    isObject(first) &&
    (isObject(first["message"]) || (bodyObject === "text_completion" && first["finish_reason"] !== null))
  );
}
