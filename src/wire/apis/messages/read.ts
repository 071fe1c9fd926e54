import type { GenerationEnd, GenerationEvent, SourceIdentity } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { variantsOf } from "../members.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { distinctId, JsonProgress } from "../tolerant/call-assembler.ts";
import { badAnswer, failureOfText, readFailure } from "../tolerant/read-failure.ts";
import { type OpenBlock, OrderedMessage } from "./ordered-message.ts";
import {
  blockList,
  repairedBlock,
  repairedDelta,
  repairedStopReason,
  repairedUsage,
  splitBlock,
  takesInput,
} from "./read-shapes.ts";
import { extendedBlocks, streamEvent } from "./schema.ts";

/** Events that are not errors. Some servers send the whole message as one event. */
const streamed: ReadonlySet<unknown> = new Set(["message", ...variantsOf(streamEvent).keys()]);

/** A block that waits until the call before it is complete, with its events. */
interface WaitingBlock {
  readonly source: number;
  readonly events: JsonObject[];
}

const emptyText = { type: "text", text: "" };
const emptyThinking = { type: "thinking", thinking: "", signature: "" };

/**
 * Reads the answer of any server that speaks the Messages API into generation events. It works in three stages: frames of the stream are
 * parsed into events, the events are put into Anthropic's order and shape, and `OrderedMessage` turns each into generation events.
 *
 * Blocks that overlap are emitted one after another: a new block ends the previous one, except a call whose input is incomplete, for which
 * the new block waits. The end of the message is held until `message_stop` or the end of the input, because some servers send it in
 * several events.
 */
export class MessageReader extends AnswerReader {
  /** Events of this API have names. */
  readonly named = true;
  readonly #options: AnswerReaderOptions;
  readonly #message: OrderedMessage;
  #started = false;
  #block: OpenBlock | null = null;
  /** Blocks that the source has started, and blocks that were emitted. */
  #starts = 0;
  #emitted = 0;
  readonly #takenIds = new Set<string>();
  readonly #waiting = new Set<WaitingBlock>();
  /** The latest waiting block of each of the source's indices. */
  readonly #waitingBySource = new Map<number, WaitingBlock>();
  /** Events of waiting blocks are being processed. */
  #flushing = false;
  /** The end of the message as far as it is known: the delta, and the members next to it. */
  #delta: { [name: string]: unknown } | null = null;
  readonly #rest: { [name: string]: unknown } = {};
  /** The usage among `#rest`; `null` if no event has any. */
  #deltaUsage: { [name: string]: unknown } | null = null;

  constructor(options: AnswerReaderOptions) {
    super(options.frameLimit);
    this.#options = options;
    this.#message = new OrderedMessage(options, this.repairs, (event) => this.add(event));
  }

  /** The reason for the end is known. */
  get finished(): boolean {
    return typeof this.#delta?.["stop_reason"] === "string";
  }

  get begun(): boolean {
    return this.#started;
  }

  get identity(): SourceIdentity {
    return this.#message.identity;
  }

  // Frames and bodies.

  readBody(body: unknown): GenerationEvent[] {
    const failure = readFailure(body);
    if (failure) this.fail(failure);
    else if (!isObject(body) || (body["content"] === undefined && body["stop_reason"] === undefined))
      this.fail(badAnswer("The upstream's answer is not a message."));
    else this.#wholeMessage(body);
    return this.handOut();
  }

  frame(data: string, event: string, bare: boolean): void {
    const trimmed = data.trim();
    if (trimmed === "[DONE]") this.repairs.note("event-type");
    else if (trimmed === "") this.repairs.note("keep-alive");
    else if (this.ended) this.repairs.note("after-message");
    else this.content(data, event, bare);
  }

  protected object(value: object | null, _data: string, event: string, bare: boolean): void {
    const type = isObject(value) ? value["type"] : undefined;
    const name = typeof type === "string" ? type : event;
    if (bare) this.repairs.note(name === "message" ? "json-body" : "bare-json");
    const failure = name === "error" || !isObject(value) || !streamed.has(name) ? readFailure(value) : null;
    if (failure) this.fail(failure);
    else if (name === "error") this.fail(failureOfText(JSON.stringify(value)));
    else if (!isObject(value)) this.fail(badAnswer("The upstream's answer is not an object."));
    else if (name === "message") this.#wholeMessage(value);
    else this.#event(name, value);
  }

  protected override inputOver(cause: Error | undefined): void {
    if (!this.finished) return super.inputOver(cause);
    this.repairs.note("message-stop");
    this.#endMessage();
  }

  protected override givenUp(end: GenerationEnd): void {
    if (this.finished && end.kind !== "client-gone") this.#endMessage();
    else super.givenUp(end);
  }

  // Events of the source, in any order.

  #event(type: string, event: JsonObject): void {
    switch (type) {
      case "ping":
        return;
      case "message_start":
        return this.#messageStart(event["message"]);
      case "content_block_start":
        return this.#blockStart(event);
      case "content_block_delta":
        return this.#blockDelta(event);
      case "content_block_stop":
        return this.#blockStop(event);
      case "message_delta":
        return this.#messageDelta(event);
      case "message_stop":
        return this.#endMessage();
      default:
        this.repairs.note("event-type");
    }
  }

  /** Reads a whole message as the events of a stream. */
  #wholeMessage(message: JsonObject): void {
    const { content, stop_reason, stop_sequence, stop_details, container, usage, context_management, ...head } =
      message;
    const empty = { ...head, content: [], stop_reason: null, stop_sequence: null };
    this.#messageStart({ ...empty, ...(usage !== undefined && { usage }) });
    this.#wholeBlocks(content);
    const delta = {
      stop_reason,
      stop_sequence,
      ...(stop_details !== undefined && { stop_details }),
      ...(container !== undefined && { container }),
    };
    const rest = {
      ...(usage !== undefined && { usage }),
      ...(context_management !== undefined && { context_management }),
    };
    if (typeof stop_reason === "string") this.#messageDelta({ delta, ...rest });
    this.#endMessage();
  }

  #wholeBlocks(content: unknown): void {
    for (const [index, block] of blockList(content).entries()) {
      this.#blockStart({ index, content_block: block });
      this.#blockStop({ index });
    }
  }

  #messageStart(sent: unknown): void {
    if (this.#started) {
      this.repairs.note("message-start");
      return;
    }
    this.#started = true;
    const message = isObject(sent) ? sent : {};
    const { content, usage } = message;
    const repaired = isObject(usage) ? { ...message, usage: repairedUsage(usage, this.repairs) } : message;
    this.#message.messageStart({ ...repaired, content: [] });
    this.#wholeBlocks(content);
  }

  /** Starts a message for an event that comes before `message_start`. */
  #ensureStarted(): void {
    if (this.#started) return;
    this.repairs.note("message-start");
    this.#messageStart({});
  }

  #blockStart(event: JsonObject): void {
    this.#ensureStarted();
    const block = repairedBlock(event["content_block"], this.repairs);
    const source = this.#sourceIndex(event);
    if (this.#isCallIncomplete()) {
      this.repairs.note("block-order");
      this.#wait(source, [{ ...event, type: "content_block_start", content_block: block }]);
      return;
    }
    this.#endBlock("block-order");
    if (source !== this.#starts++) this.repairs.note("block-index");
    this.#openBlock(source, block);
  }

  #blockDelta(event: JsonObject): void {
    this.#ensureStarted();
    const source = this.#sourceIndex(event);
    const delta = repairedDelta(event["delta"], this.repairs);
    if (delta === null) return;
    const waiting = this.#waitingBySource.get(source);
    if (waiting) waiting.events.push({ ...event, type: "content_block_delta", delta });
    else if (this.#block?.source === source) this.#extendBlock(this.#block, delta);
    else this.#strayDelta(source, delta);
  }

  #blockStop(event: JsonObject): void {
    this.#ensureStarted();
    const source = this.#sourceIndex(event);
    const waiting = this.#waitingBySource.get(source);
    if (waiting) waiting.events.push({ ...event, type: "content_block_stop" });
    else if (this.#block?.source === source) {
      this.#endBlock(null);
      this.#flushWaiting();
    } else this.repairs.note("block-order");
  }

  #messageDelta(event: JsonObject): void {
    this.#ensureStarted();
    const { type: _, delta, usage, ...rest } = event;
    if (this.#delta !== null) this.repairs.note("message-delta");
    // Members are assigned, not copied: a source may send any number of these events.
    const known = this.#delta;
    this.#delta ??= {};
    if (isObject(delta)) assign(this.#delta, known ? withoutNulls(delta) : delta);
    assign(this.#rest, rest);
    if (!isObject(usage)) return;
    this.#deltaUsage ??= {};
    assign(this.#deltaUsage, repairedUsage(usage, this.repairs));
  }

  /** Ends the message, with or without the source's `message_stop`. */
  #endMessage(): void {
    if (this.ended) return;
    this.#ensureStarted();
    while (this.#waiting.size > 0) {
      if (this.#isCallIncomplete()) this.#endBlock("block-order");
      this.#flushWaiting();
    }
    const stop_reason = repairedStopReason(this.#delta?.["stop_reason"], this.#takenIds.size, this.repairs);
    // A call that the limit has cut has no stop: neither has Anthropic's.
    const isCut = stop_reason === "max_tokens" || stop_reason === "model_context_window_exceeded";
    if (!(isCut && this.#isCallIncomplete())) this.#endBlock("block-order");
    const rest = { ...this.#rest, ...(this.#deltaUsage && { usage: this.#deltaUsage }) };
    this.#message.messageDelta({ ...this.#delta, stop_reason }, rest, this.#block);
    this.conclude({ kind: "done" });
  }

  /** Returns the source's index of an event's block. An event without an index belongs to the open block. */
  #sourceIndex(event: JsonObject): number {
    const { index } = event;
    if (typeof index === "number") return index;
    this.repairs.note("block-index");
    return event["content_block"] === undefined ? (this.#block?.source ?? this.#emitted) : this.#emitted;
  }

  // Blocks, one after another.

  #openBlock(source: number, block: JsonObject): void {
    const type = String(block["type"]);
    this.#emitted++;
    const { start, delta, input } = splitBlock(block);
    const value = type === "tool_use" ? this.#withDistinctId(start) : start;
    const opened: OpenBlock = {
      source,
      type,
      value,
      progress: takesInput(type) ? new JsonProgress() : null,
      wholeInput: input,
      call: type === "tool_use" ? this.#message.calls++ : -1,
      input: [],
      signature: nonEmpty(value["signature"]) ?? "",
      compaction: {},
      isUnstartedText: type === "text",
    };
    this.#block = opened;
    this.#message.blockStart(opened);
    if (delta !== null) this.#message.blockDelta(opened, delta);
  }

  /** Results are matched by the id of their call, so each call has an id of its own. */
  #withDistinctId(block: JsonObject): JsonObject {
    const own = nonEmpty(block["id"]);
    if (own !== undefined && !this.#takenIds.has(own)) {
      this.#takenIds.add(own);
      return block;
    }
    this.repairs.note("call-id");
    return { ...block, id: distinctId(this.#options.newCallId, this.#takenIds) };
  }

  #extendBlock(block: OpenBlock, delta: JsonObject): void {
    if (extendedBlocks.get(delta["type"])?.has(block.type) === false) {
      this.repairs.note("delta-kind");
      this.#strayDelta(block.source, delta);
      return;
    }
    const { partial_json: json } = delta;
    if (typeof json === "string") block.progress?.push(json);
    this.#message.blockDelta(block, delta);
  }

  /** A delta whose block has ended, has not started or is of another type opens a block of its own, if there is one for it. */
  #strayDelta(source: number, delta: JsonObject): void {
    const { type, partial_json: json } = delta;
    if (type === "input_json_delta") {
      // The call has no name. What the model has written is kept as text.
      this.repairs.note("nameless-call");
      if (json !== "") this.#strayDelta(source, { type: "text_delta", text: json });
      return;
    }
    const block = type === "text_delta" ? emptyText : type === "thinking_delta" ? emptyThinking : null;
    if (block === null) {
      this.repairs.note("delta-kind");
      return;
    }
    if (this.#block?.source !== source) this.repairs.note("block-order");
    if (this.#block?.type === block.type) return this.#extendBlock(this.#block, delta);
    if (this.#isCallIncomplete()) {
      const start = { type: "content_block_start", index: source, content_block: block };
      return this.#wait(source, [start, { type: "content_block_delta", index: source, delta }]);
    }
    this.#endBlock(null);
    this.#openBlock(source, block);
    if (this.#block) this.#extendBlock(this.#block, delta);
  }

  /** Ends the open block. `repair`: what to note if the source has sent no stop for it. */
  #endBlock(repair: "block-order" | null): void {
    const block = this.#block;
    if (block === null) return;
    if (repair) this.repairs.note(repair);
    const { wholeInput, input } = block;
    if (wholeInput !== "" && input.length === 0)
      this.#message.blockDelta(block, { type: "input_json_delta", partial_json: wholeInput });
    this.#message.blockStop(block);
    this.#block = null;
  }

  /** True while a call is open whose input is incomplete: nothing may come between its deltas. */
  #isCallIncomplete(): boolean {
    const { progress = null, wholeInput = "" } = this.#block ?? {};
    return progress !== null && !progress.complete && wholeInput === "";
  }

  #wait(source: number, events: JsonObject[]): void {
    const block = { source, events };
    this.#waiting.add(block);
    this.#waitingBySource.set(source, block);
  }

  /** Processes the blocks that wait, up to the next incomplete call. */
  #flushWaiting(): void {
    // The stop of a waiting block, which is processed below, calls this method again.
    if (this.#flushing) return;
    this.#flushing = true;
    for (const block of this.#waiting) {
      if (this.#isCallIncomplete()) break;
      this.#waiting.delete(block);
      if (this.#waitingBySource.get(block.source) === block) this.#waitingBySource.delete(block.source);
      for (const event of block.events) this.#event(String(event["type"]), event);
    }
    this.#flushing = false;
  }
}

/** Assigns all members, also one of the name `__proto__`. */
function assign(target: { [name: string]: unknown }, members: JsonObject): void {
  for (const [name, value] of Object.entries(members))
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

/** A later delta of a message may repeat known members as `null`. */
function withoutNulls(delta: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(delta).filter(([, value]) => value !== null));
}
