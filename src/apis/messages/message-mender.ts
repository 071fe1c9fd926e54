import { extendedBlocks } from "./schema.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { distinctId } from "../tolerant/distinct-id.ts";
import { JsonProgress } from "../tolerant/json-progress.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { mendBlock, mendDelta, mendMessage, mendStopReason, mendUsage, pieceOf } from "./mend-shapes.ts";
import type { MessageEvent } from "./message-event.ts";

/** The block that is being told. */
interface OpenBlock {
  /** The source's own index. */
  readonly source: number;
  /** As told. */
  readonly index: number;
  readonly type: string;
  /** Follows a call's input, to know when it is complete; null for other blocks. */
  readonly progress: JsonProgress | null;
  /** A call's input that stood in its start, to be told when no piece comes. */
  wholeInput: string;
  sawPiece: boolean;
}

/** What came for a block that must wait, because the one before it is not complete. */
interface WaitingBlock {
  readonly source: number;
  readonly events: JsonObject[];
}

/**
 * Puts the events of any server's streamed message into the order and shape of Anthropic's. What is right already goes through as it is.
 *
 * Blocks that overlap are told one after another: a new block ends the one before it, but for a call whose input is not complete, which
 * the new block waits for. The end of the message is held until it is sure (`message_stop`, or the end of the input), because some
 * servers tell it in several pieces.
 */
export class MessageMender {
  readonly #repairs: RepairLog;
  readonly #newCallId: () => string;
  readonly #takenIds = new Set<string>();
  #started = false;
  #stopped = false;
  #block: OpenBlock | null = null;
  /** Blocks that the source began, and blocks that were told. */
  #starts = 0;
  #count = 0;
  readonly #waiting = new Set<WaitingBlock>();
  /** The latest of the waiting blocks with each of the source's indices. */
  readonly #waitingBySource = new Map<number, WaitingBlock>();
  /** The events of waiting blocks are being read. */
  #flushing = false;
  #delta: JsonObject | null = null;
  #rest: JsonObject = {};
  #out: MessageEvent[] = [];

  constructor(repairs: RepairLog, newCallId: () => string) {
    this.#repairs = repairs;
    this.#newCallId = newCallId;
  }

  /** A reason for the message's end has come. */
  get hasEnd(): boolean {
    return this.#delta !== null && typeof this.#delta["stop_reason"] === "string";
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  get started(): boolean {
    return this.#started;
  }

  /** One event of the source's. `type`: its own, or the name that it came under. */
  push(type: string, event: JsonObject): MessageEvent[] {
    if (this.#stopped) this.#repairs.note("after-message");
    else this.#read(type, event);
    return this.#take();
  }

  /** A whole message in place of a stream. */
  whole(message: JsonObject): MessageEvent[] {
    const { content, stop_reason, stop_sequence, stop_details, container, usage, context_management, ...head } =
      message;
    const empty = { ...head, content: [], stop_reason: null, stop_sequence: null };
    this.#read("message_start", { message: { ...empty, ...(usage !== undefined && { usage }) } });
    for (const [index, block] of blocksOf(content).entries()) {
      this.#read("content_block_start", { index, content_block: block });
      this.#read("content_block_stop", { index });
    }
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
    if (typeof stop_reason === "string") this.#read("message_delta", { delta, ...rest });
    this.#end();
    return this.#take();
  }

  /** The message is over, said or not. */
  stop(): MessageEvent[] {
    this.#end();
    return this.#take();
  }

  #end(): void {
    if (this.#stopped) return;
    this.#begin();
    while (this.#waiting.size > 0) {
      if (this.#mustWait()) this.#endBlock("block-order");
      this.#flushWaiting();
    }
    this.#stopped = true;
    const stop_reason = mendStopReason(this.#delta?.["stop_reason"], this.#takenIds.size, this.#repairs);
    this.#endLastBlock(stop_reason);
    const delta = { ...this.#delta, stop_reason };
    this.#out.push({ type: "message_delta", delta, rest: this.#rest }, { type: "message_stop" });
  }

  #read(type: string, event: JsonObject): void {
    switch (type) {
      case "ping":
        this.#out.push({ type: "ping" });
        break;
      case "message_start":
        this.#messageStart(event["message"]);
        break;
      case "content_block_start":
        this.#blockStart(event);
        break;
      case "content_block_delta":
        this.#blockDelta(event);
        break;
      case "content_block_stop":
        this.#blockStop(event);
        break;
      case "message_delta":
        this.#messageDelta(event);
        break;
      case "message_stop":
        this.#end();
        break;
      default:
        this.#repairs.note("event-type");
    }
  }

  #messageStart(message: unknown): void {
    if (this.#started) {
      this.#repairs.note("message-start");
      return;
    }
    this.#started = true;
    const mended = mendMessage(isObject(message) ? message : {}, this.#repairs);
    const { content } = mended;
    this.#out.push({ type: "message_start", message: { ...mended, content: [] } });
    for (const [index, block] of blocksOf(content).entries()) {
      this.#blockStart({ index, content_block: block });
      this.#blockStop({ index });
    }
  }

  /** Every other event needs a message that has begun. */
  #begin(): void {
    if (this.#started) return;
    this.#repairs.note("message-start");
    this.#messageStart({});
  }

  #blockStart(event: JsonObject): void {
    this.#begin();
    const block = mendBlock(event["content_block"], this.#repairs);
    const source = this.#sourceIndex(event);
    if (this.#mustWait()) {
      this.#repairs.note("block-order");
      this.#wait(source, [{ ...event, type: "content_block_start", content_block: block }]);
      return;
    }
    this.#endBlock("block-order");
    if (source !== this.#starts++) this.#repairs.note("block-index");
    this.#openBlock(source, block);
  }

  #wait(source: number, events: JsonObject[]): void {
    const block = { source, events };
    this.#waiting.add(block);
    this.#waitingBySource.set(source, block);
  }

  /** A call that is not complete: nothing may come between its pieces. */
  #mustWait(): boolean {
    const { progress = null, wholeInput = "" } = this.#block ?? {};
    return progress !== null && !progress.complete && wholeInput === "";
  }

  #openBlock(source: number, block: JsonObject): void {
    const type = String(block["type"]);
    const index = this.#count++;
    const { shown, text, input } = pieceOf(block);
    this.#block = {
      source,
      index,
      type,
      progress: takesInput(type) ? new JsonProgress() : null,
      wholeInput: input,
      sawPiece: false,
    };
    this.#out.push({ type: "content_block_start", index, content_block: this.#withId(shown, type) });
    if (text !== null) this.#out.push({ type: "content_block_delta", index, delta: text });
  }

  /** Results are matched by the id of their call, so each has one of its own. */
  #withId(block: JsonObject, type: string): JsonObject {
    if (type !== "tool_use") return block;
    const own = nonEmpty(block["id"]);
    if (own !== undefined && !this.#takenIds.has(own)) {
      this.#takenIds.add(own);
      return block;
    }
    this.#repairs.note("call-id");
    return { ...block, id: distinctId(this.#newCallId, this.#takenIds) };
  }

  #blockDelta(event: JsonObject): void {
    this.#begin();
    const source = this.#sourceIndex(event);
    const delta = mendDelta(event["delta"], this.#repairs);
    if (delta === null) return;
    const waiting = this.#waitingBySource.get(source);
    if (waiting) waiting.events.push({ ...event, type: "content_block_delta", delta });
    else if (this.#block?.source === source) this.#continue(this.#block, delta);
    else this.#stray(source, delta);
  }

  #continue(block: OpenBlock, delta: JsonObject): void {
    const type = String(delta["type"]);
    if (extendedBlocks.get(type)?.has(block.type) === false) {
      this.#repairs.note("delta-kind");
      this.#stray(block.source, delta);
      return;
    }
    const { partial_json: piece } = delta;
    if (typeof piece === "string") {
      block.sawPiece ||= piece !== "";
      block.progress?.push(piece);
    }
    this.#out.push({ type: "content_block_delta", index: block.index, delta });
  }

  /** A delta whose block has ended, never began, or is of another kind: it opens a block of its own, where there can be one. */
  #stray(source: number, delta: JsonObject): void {
    const type = String(delta["type"]);
    if (type === "input_json_delta") {
      // Of a call nobody named: what the model wrote is not lost.
      this.#repairs.note("nameless-call");
      if (delta["partial_json"] !== "") this.#stray(source, { type: "text_delta", text: delta["partial_json"] });
      return;
    }
    const block = type === "text_delta" ? emptyText : type === "thinking_delta" ? emptyThought : null;
    if (block === null) {
      this.#repairs.note("delta-kind");
      return;
    }
    if (this.#block?.source !== source) this.#repairs.note("block-order");
    if (this.#block?.type === block["type"]) {
      this.#continue(this.#block, delta);
      return;
    }
    if (this.#mustWait()) {
      const events = [
        { type: "content_block_start", index: source, content_block: block },
        { type: "content_block_delta", index: source, delta },
      ];
      this.#wait(source, events);
      return;
    }
    this.#endBlock(null);
    this.#openBlock(source, block);
    if (this.#block) this.#continue(this.#block, delta);
  }

  #blockStop(event: JsonObject): void {
    this.#begin();
    const source = this.#sourceIndex(event);
    const waiting = this.#waitingBySource.get(source);
    if (waiting) waiting.events.push({ ...event, type: "content_block_stop" });
    else if (this.#block?.source === source) {
      this.#endBlock(null);
      this.#flushWaiting();
    } else this.#repairs.note("block-order");
  }

  /** Without an index, an event is of the block that is open. */
  #sourceIndex(event: JsonObject): number {
    const { index } = event;
    if (typeof index === "number") return index;
    this.#repairs.note("block-index");
    return event["content_block"] === undefined ? (this.#block?.source ?? this.#count) : this.#count;
  }

  /** Ends the open block. `note`: what is to be said of it, where its own stop is missing. */
  #endBlock(note: "block-order" | null): void {
    const block = this.#block;
    if (block === null) return;
    if (note) this.#repairs.note(note);
    this.#block = null;
    const { index, wholeInput, sawPiece } = block;
    if (wholeInput !== "" && !sawPiece) {
      const delta = { type: "input_json_delta", partial_json: wholeInput };
      this.#out.push({ type: "content_block_delta", index, delta });
    }
    this.#out.push({ type: "content_block_stop", index });
  }

  /** Tells the blocks that wait, as far as they need not wait for one of their own. */
  #flushWaiting(): void {
    // The end of a waiting block, which is read below, calls this method again.
    if (this.#flushing) return;
    this.#flushing = true;
    for (const block of this.#waiting) {
      if (this.#mustWait()) break;
      this.#waiting.delete(block);
      if (this.#waitingBySource.get(block.source) === block) this.#waitingBySource.delete(block.source);
      for (const event of block.events) this.#read(String(event["type"]), event);
    }
    this.#flushing = false;
  }

  /** The last block may lack its stop: a call that the limit has cut has none at Anthropic either. */
  #endLastBlock(reason: string): void {
    const block = this.#block;
    const isCut = reason === "max_tokens" || reason === "model_context_window_exceeded";
    if (block !== null && !(isCut && this.#mustWait())) this.#endBlock("block-order");
  }

  #messageDelta(event: JsonObject): void {
    this.#begin();
    const { type: _, delta, usage, ...rest } = event;
    const before = this.#rest["usage"];
    const known = { ...this.#delta, ...(isObject(delta) ? withoutNulls(delta, this.#delta) : {}) };
    if (this.#delta !== null) this.#repairs.note("message-delta");
    this.#delta = known;
    this.#rest = { ...this.#rest, ...rest };
    if (isObject(usage))
      this.#rest = {
        ...this.#rest,
        usage: { ...(isObject(before) ? before : {}), ...mendUsage(usage, this.#repairs) },
      };
  }

  #take(): MessageEvent[] {
    const out = this.#out;
    if (out.length > 0) this.#out = [];
    return out;
  }
}

const emptyText = { type: "text", text: "" };
const emptyThought = { type: "thinking", thinking: "", signature: "" };

function takesInput(type: string): boolean {
  return type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use";
}

/** `content` as a list of blocks; a bare text is one. */
function blocksOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

/** A later piece says null of what an earlier one has told. */
function withoutNulls(delta: JsonObject, before: JsonObject | null): JsonObject {
  if (before === null) return delta;
  return Object.fromEntries(Object.entries(delta).filter(([, value]) => value !== null));
}
