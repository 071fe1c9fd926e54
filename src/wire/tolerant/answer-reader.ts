import type {
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  SourceIdentity,
  StartEvent,
  Usage,
} from "../../generation/event.ts";
import { obfuscationSince } from "../capture-form.ts";
import type { CaptureForm } from "../capture-form.ts";
import { answerId } from "../ids.ts";
import { FrameReader } from "../sse/frame-reader.ts";
import { ChunkTemplate } from "./chunk-template.ts";
import type { HolePath } from "./chunk-template.ts";
import { ExtraReader } from "./extra-reader.ts";
import { readFinishReason } from "./finish-reasons.ts";
import { failureOfText, readFailure } from "./read-failure.ts";
import { readUsage } from "./read-usage.ts";
import { RepairLog } from "./repairs.ts";
import { isObject, parseTolerantly } from "./tolerant-json.ts";
import type { JsonObject } from "./tolerant-json.ts";

export interface AnswerReaderOptions {
  /** Makes an id for a tool call that has none, or one that is taken. */
  readonly newCallId: () => string;
  /** The client asked with legacy `functions`, so a call ends with "function-call". Absent: as the source does, if that is OpenAI. */
  readonly legacyFunctions?: boolean;
  /** Calls may stand in the text, for a format's reader to find: "tool-calls" without a call is then no error. */
  readonly callsInText?: boolean;
  /** The longest event, in characters; default 16 Mi. */
  readonly frameLimit?: number;
}

/** What a subclass keeps of a choice, and what this class does. */
export interface ChoiceState {
  readonly choice: number;
  started: boolean;
  /** The reason that came, while it waits to be told. */
  finish: FinishReason | null;
  stop: string | undefined;
  told: boolean;
}

/**
 * Reads the answer of any server of OpenAI's dialect, streamed or whole, into generation events. What arrives may be broken in every
 * way that servers are known to break it; what leaves is in the waist's order. What was mended is counted in `repairs`.
 *
 * A finish reason is held back until the choice is surely over ([DONE], the usage chunk, the end of the input, or another choice
 * going on while the source has been exact so far), because servers send text and calls after it.
 */
export abstract class AnswerReader<Choice extends ChoiceState> {
  readonly repairs: RepairLog = new RepairLog();
  /** The form of an answer of OpenAI's own; see `CaptureForm`. */
  readonly form: CaptureForm = {
    serviceTier: false,
    systemFingerprint: false,
    logprobs: false,
    usage: false,
    obfuscation: false,
    choices: new Map(),
  };
  protected readonly options: AnswerReaderOptions;
  /** Chunks of this object are streamed, those of `bodyObject` are whole answers. */
  protected abstract readonly chunkObject: string;
  protected abstract readonly bodyObject: string;

  #frames: FrameReader;
  #out: GenerationEvent[] = [];
  #choices = new Map<number, Choice>();
  #identity: SourceIdentity | undefined;
  #usage: Usage | null = null;
  #usageTold = false;
  #extras = new ExtraReader();
  #ended = false;
  #sawWholeAnswer = false;
  #doneSeen = false;
  /** The input is over: an event that is not complete now was cut. */
  #ending = false;
  /** Text that was no event: what a proxy or a framework said instead. */
  #strayText = "";
  #templates: { readonly choice: Choice; readonly kind: TemplateKind; readonly template: ChunkTemplate }[] = [];
  /** Learning costs a parse more; a source whose chunks never repeat is left in peace. */
  #learnings = 0;
  #matches = 0;

  constructor(options: AnswerReaderOptions) {
    this.options = options;
    this.#frames = new FrameReader(this, this.repairs, options.frameLimit);
  }

  /** The `end` event is out; further input is ignored. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Every choice that began has its finish reason: only usage, [DONE] and noise are still due. */
  get finished(): boolean {
    if (this.#choices.size === 0) return false;
    for (const choice of this.#choices.values()) if (choice.finish === null && !choice.told) return false;
    return true;
  }

  /** Whether any choice has begun: a failure before is still a failure with a status. */
  get begun(): boolean {
    return this.#choices.size > 0;
  }

  /** Whether the source is OpenAI itself: its ids carry the time of creation (wire.md section 7). */
  get madeByOpenAi(): boolean {
    return isOpenAiId(this.#identity?.id ?? "", this.#identity?.created ?? 0, this.form);
  }

  get identity(): SourceIdentity {
    return this.#identity ?? {};
  }

  /** A piece of the answer, cut anywhere (text: at characters). Never throws for what it reads. */
  push(input: Uint8Array | string): GenerationEvent[] {
    if (this.#ended) return [];
    try {
      this.#frames.push(input);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#fail({ message: error.message, status: 502, type: "server_error", cause: error });
    }
    return this.#take();
  }

  /** The input is over. `cause`: it did not end by itself, but was cut off. */
  end(cause?: Error): GenerationEvent[] {
    if (this.#ended) return [];
    this.#ending = true;
    this.#frames.end();
    if (this.#ended) return this.#take();
    if (this.finished) {
      if (!this.#sawWholeAnswer) this.repairs.note("no-done");
      this.#finish();
      return this.#take();
    }
    if (!this.begun && this.#strayText !== "") this.#fail(failureOfText(this.#strayText));
    else {
      const why = cause
        ? `The upstream's answer was cut off: ${cause.message}`
        : "The upstream's answer ended too early.";
      const failure = { message: why, status: 502, type: "server_error", ...(cause && { cause }) };
      this.#end({ kind: "truncated", failure });
    }
    return this.#take();
  }

  /** The transport gives up; `end` becomes the last event, unless the answer was complete already. */
  abandon(end: GenerationEnd): GenerationEvent[] {
    if (this.#ended) return [];
    if (this.finished && end.kind !== "client-gone") this.#finish();
    else this.#end(end);
    return this.#take();
  }

  /** A whole JSON answer (or an error in its place), parsed. */
  readBody(body: unknown): GenerationEvent[] {
    this.#sawWholeAnswer = true;
    this.#object(body);
    if (this.#ended) return this.#take();
    if (this.finished) this.#finish();
    else
      this.#fail({
        message: "The upstream's answer has no choice that is complete.",
        status: 502,
        type: "server_error",
      });
    return this.#take();
  }

  /** A frame of the stream; called by the frame reader. */
  frame(data: string, event: string, bare: boolean): void {
    if (this.#ended) {
      if (this.#doneSeen) this.repairs.note("after-done");
      return;
    }
    const trimmed = data.trim();
    if (trimmed === "[DONE]") this.#done();
    else if (trimmed === "") this.repairs.note("keep-alive");
    else this.#parse(data, event, bare);
  }

  /** A chunk that differs from an earlier one in one string alone; called by the frame reader. */
  take(line: string, start: number, end: number): boolean {
    if (this.#ended) return false;
    for (const { choice, kind, template } of this.#templates) {
      const text = template.match(line, start, end);
      if (text === null || text === "") continue;
      const out = this.#out;
      if (kind === "text") out.push({ type: "text-delta", choice: choice.choice, text });
      else if (kind === "reasoning") out.push({ type: "reasoning-delta", choice: choice.choice, text });
      else if (!this.continueCall(choice, text, out)) return false;
      this.#matches++;
      return true;
    }
    return false;
  }

  /** Reads one element of `choices`; false when it holds nothing. */
  protected abstract readChoice(raw: JsonObject, state: Choice, out: GenerationEvent[]): boolean;
  /** A choice is over: what is open is closed. */
  protected abstract closeChoice(state: Choice, out: GenerationEvent[]): void;
  protected abstract newChoice(choice: number): Choice;
  /** How many calls a choice has. */
  protected abstract callCount(state: Choice): number;
  /** Where the one string of a chunk stood that became this one event; null when such chunks cannot be proved. */
  protected abstract holePath(raw: JsonObject, event: GenerationEvent): { path: HolePath; kind: TemplateKind } | null;
  /** Continues a call with text that a template proved; false: not possible, read the chunk. */
  protected continueCall(_state: Choice, _text: string, _out: GenerationEvent[]): boolean {
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
      ...(this.#identity && { source: this.#identity }),
    });
  }

  #parse(data: string, event: string, bare: boolean): void {
    const value = parseTolerantly(data, this.repairs);
    if (value !== undefined && typeof value === "object") {
      const isBody = bare && !this.begun && isWhole(value, this.bodyObject);
      if (bare) this.repairs.note(isBody ? "json-body" : "bare-json");
      if (event === "error" && readFailure(value) === null) this.#fail(failureOfText(JSON.stringify(value)));
      else this.#object(value, data);
      if (isBody && !this.#ended && this.finished) {
        this.#sawWholeAnswer = true;
        this.#finish();
      }
    } else if (bare) {
      // Words between events are noise; words instead of events are the failure.
      if (this.#strayText.length < 20_000) this.#strayText += `${data}\n`;
      this.repairs.note("unknown-field");
    } else if (event === "ping" || /^(ping|keep-?alive|heartbeat)$/i.test(data.trim())) this.repairs.note("keep-alive");
    else if (this.#ending && data.trimStart().startsWith("{")) return;
    else if (typeof value === "string" || event === "error" || !data.trimStart().startsWith("{")) {
      this.#fail(failureOfText(typeof value === "string" ? value : data));
    } else {
      const failure = { message: "The upstream sent an event that is not JSON.", status: 502, type: "server_error" };
      this.#fail({ ...failure, cause: new Error(data.slice(0, 300)) });
    }
  }

  #object(value: unknown, text?: string): void {
    const failure = readFailure(value);
    if (failure) {
      this.#fail(failure);
      return;
    }
    if (!isObject(value)) {
      this.#fail({ message: "The upstream's answer is not an object.", status: 502, type: "server_error" });
      return;
    }
    const before = this.repairs.total;
    const eventsBefore = this.#out.length;
    this.#identify(value);
    const choices = Array.isArray(value["choices"]) ? value["choices"].filter(isObject) : [];
    const usage = this.#readUsage(value);
    if (choices.length === 0 && !usage && !isAnnouncement(value)) this.repairs.note("no-choices");
    if (choices.length > 0) this.#describeForm(value, choices[0] ?? {});
    for (const [position, raw] of choices.entries()) this.#choice(raw, position, choices.length);
    if (this.#ended) return;
    if (choices.length === 0 && usage && this.finished) this.#tellUsage();
    this.#extras.chunk(value, this.#out);
    this.#learn(value, choices, text, before, eventsBefore);
  }

  #choice(raw: JsonObject, position: number, siblings: number): void {
    if (this.#ended) return;
    const state = this.#stateOf(raw, position, siblings);
    const out = this.#out;
    if (state.told) {
      // Usage came, or another choice went on while the source was exact. What follows may be OpenAI's farewell to audio.
      const before = out.length;
      this.#extras.choice(raw, state.choice, out);
      if (readFinishReason(raw["finish_reason"])) this.repairs.note("repeated-finish");
      else if (out.length === before) this.repairs.note("early-finish");
      return;
    }
    if (this.#choices.size > 1 && this.repairs.total === 0) this.#settleOthers(state);
    const eventsBefore = out.length;
    const hadContent = this.readChoice(raw, state, out);
    this.#extras.choice(raw, state.choice, out);
    if (hadContent && state.finish !== null) this.repairs.note("early-finish");
    const finish = readFinishReason(raw["finish_reason"]);
    if (!finish) return;
    this.start(state, out);
    if (finish.reason === "failed") {
      const message = `The upstream ended the answer with finish_reason "${String(raw["finish_reason"])}".`;
      this.#fail({ message, status: 502, type: "server_error" });
      return;
    }
    if (!finish.exact) this.repairs.note("finish-reason");
    const form = this.form.choices.get(state.choice);
    if (state.finish !== null) {
      if (form && !hadContent && this.chunkObject === "text_completion") form.finishTwice = true;
      else this.repairs.note("repeated-finish");
      return;
    }
    const whole = raw["message"] !== undefined || this.#sawWholeAnswer;
    if (out.length > eventsBefore && !whole && this.chunkObject !== "text_completion") {
      this.repairs.note("finish-with-content");
    }
    state.finish = finish.reason;
    if (form && hadContent) form.finishOnText = true;
    const stop = raw["stop_reason"] ?? raw["matched_stop"] ?? raw["stopping_word"];
    if (typeof stop === "string" && stop !== "") state.stop = stop;
    // What comes now has to be looked at: it may end the other choices' waiting, too.
    this.#templates = [];
  }

  #stateOf(raw: JsonObject, position: number, siblings: number): Choice {
    const index = raw["index"];
    let choice = typeof index === "number" && Number.isInteger(index) && index >= 0 ? index : -1;
    if (choice === -1) {
      this.repairs.note("choice-index");
      choice = siblings > 1 ? position : 0;
    }
    let state = this.#choices.get(choice);
    if (!state) this.#choices.set(choice, (state = this.newChoice(choice)));
    return state;
  }

  #identify(value: JsonObject): void {
    const id = nonEmpty(value["id"]);
    const model = nonEmpty(value["model"]);
    const rawCreated = value["created"];
    const created = typeof rawCreated === "number" && rawCreated > 0 ? Math.floor(rawCreated) : undefined;
    const known = this.#identity;
    if (known?.id !== undefined && known.created !== undefined && known.model !== undefined) {
      if (id !== known.id) this.repairs.note(id === undefined ? "no-id" : "other-id");
      if (created !== undefined && created !== known.created) this.repairs.note("other-created");
    } else {
      const opening = !Array.isArray(value["choices"]) || value["choices"].length === 0;
      if (id === undefined && !opening) this.repairs.note("no-id");
      if (model === undefined && !opening) this.repairs.note("no-model");
      const fingerprint = value["system_fingerprint"];
      const tier = value["service_tier"];
      this.#identity = {
        ...(id !== undefined && { id }),
        ...(created !== undefined && { created }),
        ...(model !== undefined && { model }),
        ...((typeof fingerprint === "string" || fingerprint === null) && { systemFingerprint: fingerprint }),
        ...((typeof tier === "string" || tier === null) && { serviceTier: tier }),
        ...known,
      };
    }
    if (rawCreated !== undefined && rawCreated !== created) this.repairs.note("created");
    if (value["object"] !== (isWhole(value, this.bodyObject) ? this.bodyObject : this.chunkObject))
      this.repairs.note("object");
  }

  /** What today's writer must know of a capture; the first chunk with a choice tells it. */
  #describeForm(value: JsonObject, choice: JsonObject): void {
    const { form } = this;
    if (this.begun) return;
    form.serviceTier = "service_tier" in value;
    form.systemFingerprint = "system_fingerprint" in value;
    form.logprobs = "logprobs" in choice;
    form.usage = "usage" in value;
    form.obfuscation = "obfuscation" in value || (this.#identity?.created ?? 0) >= obfuscationSince;
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
    if (this.#usageTold || this.#ended || !this.#usage) return;
    this.#usageTold = true;
    this.#out.push({ type: "usage", usage: this.#usage });
  }

  /** Tells the finish of the choices that have one, but for `current`, which goes on. */
  #settleOthers(current: Choice): void {
    for (const state of this.#choices.values()) if (state !== current && state.finish !== null) this.#tellFinish(state);
  }

  #settle(): void {
    for (const state of this.#choices.values()) this.#tellFinish(state);
  }

  #tellFinish(state: Choice): void {
    if (state.told || state.finish === null || this.#ended) return;
    state.told = true;
    this.closeChoice(state, this.#out);
    const reason = this.#reasonOf(state, state.finish);
    if (reason === null) {
      const message = 'The upstream said finish_reason "tool_calls" but sent no tool call.';
      this.#fail({ message, status: 502, type: "server_error" });
      return;
    }
    const { choice, stop } = state;
    this.#out.push({ type: "finish", choice, reason, ...(stop !== undefined && { stop }) });
  }

  /** The reason that is true of what came; null: calls were announced and none came. */
  #reasonOf(state: Choice, reason: FinishReason): FinishReason | null {
    const calls = this.callCount(state);
    if (reason === "tool-calls" || reason === "function-call") {
      if (calls === 0 && !this.options.callsInText) return null;
      const callReason = this.#callReason(reason);
      if (callReason !== reason) this.repairs.note("finish-reason");
      return callReason;
    }
    if (calls === 0 || reason !== "stop") return reason;
    const form = this.form.choices.get(state.choice);
    if (form) form.stopWithCalls = true;
    else this.repairs.note("finish-calls");
    return this.#callReason(this.sawLegacyCall(state) ? "function-call" : "tool-calls");
  }

  #callReason(own: "tool-calls" | "function-call"): "tool-calls" | "function-call" {
    const { legacyFunctions } = this.options;
    if (legacyFunctions === undefined) return this.madeByOpenAi ? own : "tool-calls";
    return legacyFunctions ? "function-call" : "tool-calls";
  }

  protected sawLegacyCall(_state: Choice): boolean {
    return false;
  }

  /** [DONE]. A choice without a finish reason ends here all the same: the source says that it is complete. */
  #done(): void {
    this.#doneSeen = true;
    for (const state of this.#choices.values()) {
      if (state.finish !== null || state.told) continue;
      this.repairs.note("no-finish");
      state.finish = "stop";
    }
    if (!this.begun) {
      const message = "The upstream ended its answer without any choice.";
      this.#fail(
        this.#strayText === "" ? { message, status: 502, type: "server_error" } : failureOfText(this.#strayText),
      );
    } else this.#finish();
  }

  #finish(): void {
    for (const state of this.#choices.values()) this.start(state, this.#out);
    this.#tellUsage();
    if (!this.#ended) this.#end({ kind: "done" });
  }

  #fail(failure: GenerationFailure): void {
    this.#end({ kind: "upstream-error", failure });
  }

  #end(end: GenerationEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#out.push({ type: "end", end });
  }

  /** Keeps what a chunk looked like that was exact and became one event, as the proof for those that follow. */
  #learn(
    value: JsonObject,
    choices: readonly JsonObject[],
    text: string | undefined,
    repairs: number,
    events: number,
  ): void {
    const [raw] = choices;
    const event = this.#out[events];
    if (text === undefined || !raw || !event || choices.length !== 1 || this.#out.length !== events + 1) return;
    if (this.repairs.total !== repairs || value["usage"] || value["x_groq"]) return;
    if (this.#learnings > 8 && this.#matches < this.#learnings * 2) return;
    const hole = this.holePath(raw, event);
    const string = hole && holeText(event);
    if (!hole || !string || !("choice" in event) || event.choice === undefined) return;
    const state = this.#choices.get(event.choice);
    const template = ChunkTemplate.learn(text, ["choices", 0, ...hole.path], string);
    if (!template || !state || state.finish !== null) return;
    this.#learnings++;
    this.#templates = this.#templates.filter((entry) => entry.choice !== state).slice(-7);
    this.#templates.push({ choice: state, kind: hole.kind, template });
  }

  #take(): GenerationEvent[] {
    const out = this.#out;
    if (out.length > 0) this.#out = [];
    return out;
  }
}

export type TemplateKind = "text" | "reasoning" | "arguments";

function holeText(event: GenerationEvent): string | null {
  if (event.type === "text-delta" || event.type === "reasoning-delta") return event.logprobs ? null : event.text;
  return event.type === "tool-call-delta" ? event.arguments : null;
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A chunk without choices that has a reason to be there: Azure's filter results, OpenAI's moderation. */
function isAnnouncement(value: JsonObject): boolean {
  return value["prompt_filter_results"] !== undefined || value["moderation"] !== undefined;
}

function isWhole(value: unknown, bodyObject: string): boolean {
  if (!isObject(value)) return false;
  const first: unknown = Array.isArray(value["choices"]) ? value["choices"][0] : undefined;
  return (
    isObject(first) &&
    (isObject(first["message"]) || (bodyObject === "text_completion" && first["finish_reason"] !== null))
  );
}

/**
 * OpenAI's ids carry the time of creation in the five characters after the prefix (2,664 of 2,666 ids, the others one second off); its
 * search models answer with a UUID. Where that does not fit, members that only OpenAI sends decide.
 */
function isOpenAiId(id: string, created: number, form: CaptureForm): boolean {
  if (/^chatcmpl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id))
    return form.serviceTier && form.systemFingerprint;
  const prefix = /^(chatcmpl-|cmpl-)[0-9A-Za-z]{29}$/.exec(id)?.[1] as "chatcmpl-" | "cmpl-" | undefined;
  if (prefix === undefined) return false;
  if (form.serviceTier && form.systemFingerprint) return true;
  return [created, created - 1, created + 1].some((time) =>
    id.startsWith(answerId(prefix, time, () => 0).slice(0, prefix.length + 5)),
  );
}
