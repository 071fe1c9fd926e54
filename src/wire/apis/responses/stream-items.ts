import type { TokenLogprob, ToolCallStartEvent } from "../../core/events.ts";
import type { CallState, TurnState } from "../../core/turn-state.ts";
import { randomBase62 } from "../ids.ts";
import { JsonText, jsonText, jsonString } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import { orderedMembers } from "../members.ts";
import {
  callItem,
  callPrefix,
  emptyInput,
  logprobsText,
  messageItem,
  reasoningItem,
  reasoningPart,
  refusalPart,
  summaryPart,
  textPart,
} from "./items.ts";
import type { CallItem, MessagePart } from "./items.ts";
import type { ResponseObject, ResponseState } from "./response-object.ts";
import { writtenEvents } from "./event-schema.ts";
import type { ItemStatus } from "./schema.ts";

/*
 * The items of a streamed response while they are written. Every method returns the text of the events that it causes. Deltas are the
 * hot path: a `DeltaTemplate` prepares all of an event except what differs. All other events are written by their schemas.
 */

/** Writes and numbers the events of one response, and collects the items that are complete. */
export class ResponseEventWriter {
  readonly response: ResponseObject;
  /** The items as the whole response shows them. */
  readonly output: JsonValue[] = [];
  /** The lane of a WebSocket connection, which each event repeats. Set before the first event. */
  streamId: string | undefined;
  #number = 0;

  constructor(response: ResponseObject) {
    this.response = response;
  }

  /** Takes the number of the next event. */
  nextNumber(): number {
    return this.#number++;
  }

  write(type: string, members: { readonly [name: string]: JsonValue | undefined }): string {
    const schema = writtenEvents.get(type);
    if (schema === undefined) throw new TypeError(`No schema for the event ${type}.`);
    const event = orderedMembers(schema, {
      type,
      ...members,
      sequence_number: this.nextNumber(),
      stream_id: this.streamId,
    });
    return `event: ${type}\ndata: ${jsonText(event)}\n\n`;
  }

  /** Writes an event that shows the whole response. */
  writeResponse(state: Omit<ResponseState, "output">, output: readonly JsonValue[] = this.output): string {
    return this.write(`response.${state.event}`, { response: this.response.at({ ...state, output }) });
  }

  itemAdded(item: JsonValue): string {
    return this.write("response.output_item.added", { item, output_index: this.output.length });
  }

  /** `at`: the place that the item has had since it began; default: after the others. */
  itemDone(item: JsonValue, at: number = this.output.length): string {
    const text = this.write("response.output_item.done", { item, output_index: at });
    this.output[at] = item;
    return text;
  }
}

/** The members of a delta event that say where its text is. */
interface DeltaPlace {
  readonly itemId: string;
  readonly outputIndex: number;
  readonly contentIndex?: number;
  readonly summaryIndex?: number;
  /** The event has `logprobs`. */
  readonly hasLogprobs?: boolean;
  readonly streamId: string | undefined;
  /** Makes the characters that hide a delta's length; undefined: the event has no `obfuscation`. */
  readonly obfuscate: (() => number) | undefined;
}

/** The delta events of one part except what differs: text, log probabilities, obfuscation, number. Members are in alphabetical order. */
class DeltaTemplate {
  readonly #start: string;
  readonly #itemId: string;
  readonly #hasLogprobs: boolean;
  readonly #random: (() => number) | undefined;
  readonly #place: string;
  /** What follows a text without log probabilities and obfuscation. */
  readonly #plain: string;
  readonly #end: string;

  constructor(type: string, place: DeltaPlace) {
    const { itemId, outputIndex, contentIndex, summaryIndex, streamId } = place;
    const content = contentIndex === undefined ? "" : `"content_index":${contentIndex},`;
    this.#start = `event: ${type}\ndata: {"type":"${type}",${content}"delta":`;
    this.#itemId = `,"item_id":${JSON.stringify(itemId)},`;
    this.#hasLogprobs = place.hasLogprobs === true;
    this.#random = place.obfuscate;
    this.#place = `"output_index":${outputIndex},"sequence_number":`;
    this.#plain = `${this.#itemId}${this.#hasLogprobs ? '"logprobs":[],' : ""}${this.#place}`;
    const lane = streamId === undefined ? "" : `,"stream_id":${JSON.stringify(streamId)}`;
    const summary = summaryIndex === undefined ? "" : `,"summary_index":${summaryIndex}`;
    this.#end = `${lane}${summary}}\n\n`;
  }

  write(text: string, number: number, logprobs?: string): string {
    if (logprobs === undefined && this.#random === undefined) {
      return this.#start + jsonString(text) + this.#plain + number + this.#end;
    }
    const tokens = this.#hasLogprobs ? `"logprobs":${logprobs ?? "[]"},` : "";
    const hidden = this.#random === undefined ? "" : `"obfuscation":"${padding(text, this.#random)}",`;
    return this.#start + jsonString(text) + this.#itemId + tokens + hidden + this.#place + number + this.#end;
  }
}

/** Returns the characters that bring the text's length to a multiple of 16. Source: 9,709 of 9,713 recorded deltas of 2025 and 2026. */
function padding(text: string, random: () => number): string {
  let length = text.length;
  for (let at = 0; at < text.length - 1; at++) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
    if (isPair) length--;
  }
  return randomBase62(-length & 15, random);
}

export class OpenItem {
  readonly id: string;
  protected readonly events: ResponseEventWriter;
  readonly #outputIndex: number;

  /** `before`: the number of items that are written when this one begins. */
  constructor(events: ResponseEventWriter, id: string, before = 0) {
    this.events = events;
    this.id = id;
    this.#outputIndex = events.output.length + before;
  }

  protected write(type: string, members: { readonly [name: string]: JsonValue }): string {
    return this.events.write(type, { ...members, item_id: this.id, output_index: this.#outputIndex });
  }

  protected template(type: string, place: Omit<DeltaPlace, "itemId" | "outputIndex" | "streamId">): DeltaTemplate {
    const { streamId } = this.events;
    return new DeltaTemplate(type, { itemId: this.id, outputIndex: this.#outputIndex, streamId, ...place });
  }
}

interface OpenText {
  readonly type: "text";
  readonly chunks: string[];
  readonly annotations: JsonValue[];
  readonly logprobs: TokenLogprob[];
  /** Log probabilities of tokens that have no text yet; they are sent with the next text. */
  pending: TokenLogprob[];
  readonly template: DeltaTemplate;
}

interface OpenRefusal {
  readonly type: "refusal";
  readonly chunks: string[];
  readonly template: DeltaTemplate;
}

/** A message. Its parts follow one another; at most one is open. */
export class OpenMessageItem extends OpenItem {
  readonly kind = "message";
  readonly phase: string | undefined;
  /** The id that the source gave to the message. */
  readonly sourceId: string | undefined;
  readonly #parts: MessagePart[] = [];
  #part: OpenText | OpenRefusal | null = null;

  constructor(events: ResponseEventWriter, sourceId: string | undefined, phase: string | undefined) {
    super(events, events.response.itemId("msg_", sourceId));
    this.sourceId = sourceId;
    this.phase = phase;
  }

  get openPart(): "text" | "refusal" | undefined {
    return this.#part?.type;
  }

  begin(): string {
    return this.events.itemAdded(messageItem(this, "in_progress", [], this.events.response.number));
  }

  text(text: string, logprobs: readonly TokenLogprob[] | undefined): string {
    // The path of almost every delta.
    const open = this.#part;
    if (logprobs === undefined && text !== "" && open?.type === "text" && open.pending.length === 0) {
      open.chunks.push(text);
      return open.template.write(text, this.events.nextNumber());
    }
    const { part, events } = this.#openText();
    if (logprobs !== undefined && this.events.response.showsLogprobs) part.pending.push(...logprobs);
    return text === "" ? events : events + this.#delta(part, text);
  }

  annotation(annotation: JsonValue): string {
    const { part, events } = this.#openText();
    const members = { annotation, annotation_index: part.annotations.length, content_index: this.#parts.length };
    part.annotations.push(annotation);
    return events + this.write("response.output_text.annotation.added", members);
  }

  refusal(text: string): string {
    let events = "";
    let part = this.#part;
    if (part?.type !== "refusal") {
      events = this.endPart();
      // Deltas of refusals have neither log probabilities nor obfuscation.
      const place = { contentIndex: this.#parts.length, obfuscate: undefined };
      part = this.#part = { type: "refusal", chunks: [], template: this.template("response.refusal.delta", place) };
      events += this.#added(refusalPart(""));
    }
    if (text === "") return events;
    part.chunks.push(text);
    return events + part.template.write(text, this.events.nextNumber());
  }

  /** Closes the open part. */
  endPart(): string {
    const part = this.#part;
    if (part === null) return "";
    const place = { content_index: this.#parts.length };
    const flushed = part.type === "text" && part.pending.length > 0 ? this.#delta(part, "") : "";
    this.#part = null;
    const text = part.chunks.join("");
    if (part.type === "refusal") {
      this.#parts.push({ type: "refusal", refusal: text });
      return (
        this.write("response.refusal.done", { ...place, refusal: text }) +
        this.write("response.content_part.done", { ...place, part: refusalPart(text) })
      );
    }
    const { annotations, logprobs } = part;
    this.#parts.push({ type: "text", text, annotations, logprobs });
    const shown = new JsonText(logprobsText(logprobs, this.events.response.number));
    return (
      flushed +
      this.write("response.output_text.done", { ...place, logprobs: shown, text }) +
      // The whole part has no log probabilities; the whole item has (recordings of 2026-04 and 2026-05).
      this.write("response.content_part.done", { ...place, part: textPart(text, annotations) })
    );
  }

  close(status: ItemStatus): string {
    const closed = this.endPart();
    return closed + this.events.itemDone(messageItem(this, status, this.#parts, this.events.response.number));
  }

  #openText(): { readonly part: OpenText; readonly events: string } {
    if (this.#part?.type === "text") return { part: this.#part, events: "" };
    const closed = this.endPart();
    const place = { contentIndex: this.#parts.length, hasLogprobs: true, obfuscate: this.events.response.obfuscate };
    const template = this.template("response.output_text.delta", place);
    const part: OpenText = { type: "text", chunks: [], annotations: [], logprobs: [], pending: [], template };
    this.#part = part;
    return { part, events: closed + this.#added(textPart("")) };
  }

  #delta(part: OpenText, text: string): string {
    const { pending } = part;
    part.chunks.push(text);
    if (pending.length === 0) return part.template.write(text, this.events.nextNumber());
    part.pending = [];
    for (const token of pending) part.logprobs.push(token);
    return part.template.write(text, this.events.nextNumber(), logprobsText(pending, this.events.response.number));
  }

  #added(part: JsonValue): string {
    return this.write("response.content_part.added", { content_index: this.#parts.length, part });
  }
}

interface OpenSummary {
  /** The source's number of the part; −1 for reasoning text that is shown as a summary. */
  readonly number: number;
  readonly chunks: string[];
  readonly template: DeltaTemplate;
}

/** A reasoning item: its text, its summary, or both. */
export class OpenReasoningItem extends OpenItem {
  readonly kind = "reasoning";
  readonly #chunks: string[] = [];
  /** Set once reasoning text is shown. */
  #template: DeltaTemplate | null = null;
  readonly #summary: string[] = [];
  #parts = 0;
  #part: OpenSummary | null = null;

  constructor(events: ResponseEventWriter, sourceId: string | undefined) {
    super(events, events.response.itemId("rs_", sourceId));
  }

  begin(): string {
    return this.events.itemAdded({ id: this.id, type: "reasoning", content: [], summary: [] });
  }

  /** Adds reasoning text, which is shown as a part of the summary if the request asks for a summary only. */
  text(text: string): string {
    if (text === "") return "";
    this.#chunks.push(text);
    if (this.events.response.summarizes) return this.summary(-1, text);
    let events = "";
    if (this.#template === null) {
      events = this.write("response.content_part.added", { content_index: 0, part: reasoningPart("") });
      this.#template = this.template("response.reasoning_text.delta", { contentIndex: 0, obfuscate: undefined });
    }
    return events + this.#template.write(text, this.events.nextNumber());
  }

  /** Adds text to the part of the summary that has this number at the source. */
  summary(number: number, text: string): string {
    let events = "";
    let part = this.#part;
    if (part?.number !== number) {
      events = this.#endPart();
      const summaryIndex = this.#parts;
      const { obfuscate } = this.events.response;
      const members = { part: summaryPart(""), summary_index: summaryIndex };
      events += this.write("response.reasoning_summary_part.added", members);
      const template = this.template("response.reasoning_summary_text.delta", { summaryIndex, obfuscate });
      part = this.#part = { number, chunks: [], template };
    }
    part.chunks.push(text);
    return text === "" ? events : events + part.template.write(text, this.events.nextNumber());
  }

  close(state: TurnState | undefined, callId?: string): string {
    const events = this.#endText() + this.#endPart();
    const texts = this.#chunks.length === 0 ? [] : [this.#chunks.join("")];
    const reasoning = { texts, summary: this.#summary, state, ...(callId !== undefined && { callId }) };
    return events + this.events.itemDone(reasoningItem(this.id, reasoning, this.events.response));
  }

  #endText(): string {
    if (this.#template === null) return "";
    const text = this.#chunks.join("");
    return (
      this.write("response.reasoning_text.done", { content_index: 0, text }) +
      this.write("response.content_part.done", { content_index: 0, part: reasoningPart(text) })
    );
  }

  #endPart(): string {
    const part = this.#part;
    if (part === null) return "";
    this.#part = null;
    const text = part.chunks.join("");
    const index = { summary_index: this.#parts++ };
    if (part.number >= 0) this.#summary.push(text);
    return (
      this.write("response.reasoning_summary_text.done", { ...index, text }) +
      this.write("response.reasoning_summary_part.done", { ...index, part: summaryPart(text) })
    );
  }
}

/** A call. Nothing is written before it begins. */
export class OpenCallItem extends OpenItem {
  readonly kind = "call";
  readonly #call: CallItem;
  readonly #chunks: string[] = [];
  readonly #template: DeltaTemplate;
  /** The state of the call, if it has an item of its own, which clients send back. */
  readonly #state: CallState | undefined;
  #begun = false;

  constructor(events: ResponseEventWriter, start: ToolCallStartEvent) {
    const { id: callId, name, kind: called = "function", namespace, itemId } = start;
    const { response } = events;
    const kind = response.callKind(called, name);
    const id = response.itemId(callPrefix(kind), itemId);
    const state = start.state && response.callState(id, start.state);
    super(events, id, state ? 1 : 0);
    this.#state = state;
    this.#call = { id, callId, kind, ...response.callName(name, namespace) };
    const type = kind === "custom" ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
    this.#template = this.template(type, { obfuscate: response.obfuscate });
  }

  get hasBegun(): boolean {
    return this.#begun;
  }

  /** Writes the call with the input that has come; only the first call has an effect. */
  begin(): string {
    if (this.#begun) return "";
    this.#begun = true;
    let events = "";
    if (this.#state) {
      const item = new OpenReasoningItem(this.events, undefined);
      events = item.begin() + item.close(this.#state, this.#call.callId);
    }
    events += this.events.itemAdded(callItem(this.#call, "in_progress", ""));
    for (const chunk of this.#chunks) events += this.#delta(chunk);
    return events;
  }

  input(text: string): string {
    if (text === "") return "";
    this.#chunks.push(text);
    return this.#begun ? this.#delta(text) : "";
  }

  close(status: ItemStatus): string {
    const { kind } = this.#call;
    const begun = this.begin();
    // A call without arguments has an empty object (17 of 17 recordings).
    const empty = status === "completed" && this.#chunks.length === 0 ? this.input(emptyInput(kind)) : "";
    const text = this.#chunks.join("");
    let done = "";
    if (kind === "custom") done = this.write("response.custom_tool_call_input.done", { input: text });
    if (kind === "function") done = this.write("response.function_call_arguments.done", { arguments: text });
    return begun + empty + done + this.events.itemDone(callItem(this.#call, status, text));
  }

  #delta(text: string): string {
    const { kind } = this.#call;
    // A search is shown as a whole item only (recordings of 2026), and so are the calls of OpenAI's own tools.
    return kind !== "function" && kind !== "custom" ? "" : this.#template.write(text, this.events.nextNumber());
  }
}
