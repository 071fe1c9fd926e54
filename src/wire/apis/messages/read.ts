import type { GenerationEnd, GenerationEvent, SourceIdentity } from "../../core/events.ts";
import { isObject, nonEmpty, objectIn, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ReasoningState } from "../../core/turn-state.ts";
import { variantsOf } from "../members.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { distinctId, JsonProgress } from "../tolerant/call-assembler.ts";
import { badAnswer, failureOfText, readFailure } from "../tolerant/read-failure.ts";
import type { HostedCallIdentity } from "../../core/hosted-tool.ts";
import { isHostedResult, isHostedUse, readHostedResult, readHostedUse } from "./hosted-blocks.ts";
import { nativeCall, nativeMessage, nativeUsage } from "./native-members.ts";
import {
  blockList,
  nativeReasons,
  neutralCitation,
  neutralFinish,
  neutralUsage,
  repairedBlock,
  repairedDelta,
  repairedStopReason,
  repairedUsage,
  splitBlock,
  takesInput,
} from "./read-shapes.ts";
import { extendedBlocks, streamEvent } from "./schema.ts";

/**
 * The events of a streamed message in Anthropic's order: one start, blocks one after another (start, deltas, stop) with indices 0, 1, 2,
 * …, one delta of the message, its stop. Source: https://platform.claude.com/docs/en/build-with-claude/streaming.
 */
type MessageEvent =
  | { readonly type: "message_start"; readonly message: JsonObject }
  | { readonly type: "content_block_start"; readonly index: number; readonly content_block: JsonObject }
  | { readonly type: "content_block_delta"; readonly index: number; readonly delta: JsonObject }
  | { readonly type: "content_block_stop"; readonly index: number }
  /** `rest`: the members next to the delta: `usage`, `context_management`. */
  | { readonly type: "message_delta"; readonly delta: JsonObject; readonly rest: JsonObject }
  | { readonly type: "message_stop" }
  | { readonly type: "ping" };

/** Events that are not errors. Some servers send the whole message as one event. */
const streamed: ReadonlySet<unknown> = new Set(["message", ...variantsOf(streamEvent).keys()]);

interface OpenBlock {
  /** The source's index of the block. */
  readonly source: number;
  /** The index in the repaired message. */
  readonly index: number;
  readonly type: string;
  /** The block as it started. */
  readonly value: JsonObject;
  /** Finds the end of a call's input; `null` for other blocks. */
  readonly progress: JsonProgress | null;
  /** The input of a call that its start contained. It is emitted at the end of the block if no delta brings an input. */
  readonly wholeInput: string;
  /** The number of the call among the calls of the message; -1 for other blocks. */
  readonly call: number;
  /** The input so far, of a call of any kind. */
  readonly input: string[];
  signature: string;
  /** The members that the delta of a compaction brings. */
  compaction: JsonObject;
  /** A text block without any text yet. Its part starts with the first text, because some servers open a text block before anything else. */
  isUnstartedText: boolean;
}

/** A block that waits until the call before it is complete, with its events. */
interface WaitingBlock {
  readonly source: number;
  readonly events: JsonObject[];
}

const emptyText = { type: "text", text: "" };
const emptyThinking = { type: "thinking", thinking: "", signature: "" };

/**
 * Reads the answer of any server that speaks the Messages API into generation events. It works in three stages: frames of the stream are
 * parsed into events, the events are put into Anthropic's order and shape, and each event in order is applied (`#emit`).
 *
 * Blocks that overlap are emitted one after another: a new block ends the previous one, except a call whose input is incomplete, for which
 * the new block waits. The end of the message is held until `message_stop` or the end of the input, because some servers send it in
 * several events.
 *
 * What only this API has becomes `extra` events of its dialect: blocks of other kinds, members of usage, context management.
 */
export class MessageReader extends AnswerReader {
  /** Events of this API have names. */
  readonly named = true;
  readonly #options: AnswerReaderOptions;
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
  #identity: SourceIdentity = {};
  #usage: JsonObject = {};
  /** The events of a message's start, until something else comes: an error before that has a status of its own. */
  #opening: GenerationEvent[] | null = [];
  #calls = 0;
  /** The calls that the source's server has run, by their ids. */
  readonly #hosted = new Map<string, HostedCallIdentity>();

  constructor(options: AnswerReaderOptions) {
    super(options.frameLimit);
    this.#options = options;
  }

  /** The reason for the end is known. */
  get finished(): boolean {
    return typeof this.#delta?.["stop_reason"] === "string";
  }

  get begun(): boolean {
    return this.#started;
  }

  get identity(): SourceIdentity {
    return this.#identity;
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
        return this.#emit({ type: "ping" });
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
    this.#emit({ type: "message_start", message: { ...repaired, content: [] } });
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
    this.#emit({ type: "message_delta", delta: { ...this.#delta, stop_reason }, rest });
    this.#emit({ type: "message_stop" });
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
    const index = this.#emitted++;
    const { start, delta, input } = splitBlock(block);
    const value = type === "tool_use" ? this.#withDistinctId(start) : start;
    this.#block = {
      source,
      index,
      type,
      value,
      progress: takesInput(type) ? new JsonProgress() : null,
      wholeInput: input,
      call: type === "tool_use" ? this.#calls++ : -1,
      input: [],
      signature: nonEmpty(value["signature"]) ?? "",
      compaction: {},
      isUnstartedText: type === "text",
    };
    this.#emit({ type: "content_block_start", index, content_block: value });
    if (delta !== null) this.#emit({ type: "content_block_delta", index, delta });
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
    this.#emit({ type: "content_block_delta", index: block.index, delta });
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
    const { index, wholeInput, input } = block;
    if (wholeInput !== "" && input.length === 0)
      this.#emit({
        type: "content_block_delta",
        index,
        delta: { type: "input_json_delta", partial_json: wholeInput },
      });
    this.#emit({ type: "content_block_stop", index });
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

  // Events in order, as generation events.

  #emit(event: MessageEvent): void {
    if (this.ended) return;
    switch (event.type) {
      case "message_start":
        return this.#applyStart(event.message);
      case "content_block_start":
        return this.#applyBlockStart();
      case "content_block_delta":
        return this.#applyDelta(event.delta);
      case "content_block_stop":
        return this.#applyBlockStop();
      case "message_delta":
        return this.#applyEnd(event.delta, event.rest);
      case "message_stop":
        return this.conclude({ kind: "done" });
      case "ping":
    }
  }

  #applyStart(message: JsonObject): void {
    const id = nonEmpty(message["id"]);
    const model = nonEmpty(message["model"]);
    this.#identity = { ...(id !== undefined && { id }), ...(model !== undefined && { model }) };
    const opening: GenerationEvent[] = [{ type: "start", choice: 0, source: this.#identity }];
    pushNative(opening, nativeMessage(message));
    this.#applyUsage(message["usage"], opening);
    this.#opening = opening;
  }

  #releaseOpening(): void {
    if (this.#opening === null) return;
    this.out.push(...this.#opening);
    this.#opening = null;
  }

  #applyBlockStart(): void {
    this.#releaseOpening();
    if (this.#block === null) return;
    const { type, call, value } = this.#block;
    if (type === "thinking" || type === "redacted_thinking")
      this.out.push({ type: "part-start", choice: 0, kind: "reasoning" });
    else if (type === "tool_use") {
      const [id, name] = [scalarText(value["id"]), scalarText(value["name"])];
      const native = nativeCall(value);
      this.out.push({ type: "tool-call-start", choice: 0, index: call, id, name, ...(native && { native }) });
    } else if (isHostedUse(value)) {
      const hosted = readHostedUse(value);
      this.#hosted.set(hosted.id, hosted);
      this.out.push({ type: "hosted-call-start", choice: 0, ...hosted, native: { dialect: "messages", value } });
    }
    // Only a whole block starts with citations.
    if (Array.isArray(value["citations"]))
      for (const citation of value["citations"]) this.#applyDelta({ type: "citations_delta", citation });
  }

  #applyDelta(delta: JsonObject): void {
    const { type, text, thinking, partial_json: json, signature, citation } = delta;
    const block = this.#block;
    if (block === null) return;
    if (type === "text_delta" && typeof text === "string" && text !== "") {
      this.#startText(block);
      this.out.push({ type: "text-delta", choice: 0, text });
    } else if (type === "thinking_delta" && typeof thinking === "string" && thinking !== "")
      this.out.push({ type: "reasoning-delta", choice: 0, text: thinking });
    else if (type === "signature_delta" && typeof signature === "string") block.signature = signature;
    else if (type === "citations_delta" && isObject(citation)) {
      this.#startText(block);
      this.out.push({ type: "annotation", choice: 0, annotation: neutralCitation(citation) });
    } else if (type === "compaction_delta") {
      const { type: _, ...members } = delta;
      block.compaction = members;
    } else if (type === "input_json_delta" && typeof json === "string" && json !== "") {
      block.input.push(json);
      if (block.call >= 0) this.out.push({ type: "tool-call-delta", choice: 0, index: block.call, arguments: json });
      else if (isHostedUse(block.value))
        this.out.push({ type: "hosted-call-delta", choice: 0, id: scalarText(block.value["id"]), arguments: json });
    }
  }

  #stateOf(kind: "signature" | "redacted", value: string): ReasoningState {
    const { source } = this.#options;
    return { kind, value, ...(source !== undefined && { source }) };
  }

  #startText(block: OpenBlock): void {
    if (block.isUnstartedText) this.out.push({ type: "part-start", choice: 0, kind: "text" });
    block.isUnstartedText = false;
  }

  #applyBlockStop(): void {
    const block = this.#block;
    if (block === null) return;
    const { type, value, signature, input, compaction } = block;
    switch (type) {
      case "text":
        break;
      case "thinking":
        this.out.push({
          type: "part-end",
          choice: 0,
          ...(signature !== "" && { state: this.#stateOf("signature", signature) }),
        });
        break;
      case "redacted_thinking":
        this.out.push({ type: "part-end", choice: 0, state: this.#stateOf("redacted", scalarText(value["data"])) });
        break;
      case "tool_use":
        this.#applyCallEnd(block);
        break;
      case "server_tool_use":
      case "mcp_tool_use":
        this.out.push({ type: "hosted-call-end", choice: 0, id: scalarText(value["id"]) });
        break;
      default: {
        if (isHostedResult(value)) {
          this.#applyResult(value);
          break;
        }
        const members = value["input"] === undefined ? {} : { input: objectIn(input.join("")) ?? {} };
        const item = { ...value, ...(type === "compaction" ? compaction : members) };
        this.out.push({ type: "extra", choice: 0, place: "item", dialect: "messages", value: item });
      }
    }
  }

  #applyResult(value: JsonObject): void {
    const id = scalarText(value["tool_use_id"]);
    const name = scalarText(value["type"]).replace(/_tool_result$/, "");
    const call = this.#hosted.get(id) ?? { id, kind: "other", tool: name, name };
    const native = { dialect: "messages", value };
    this.out.push({ type: "hosted-result", choice: 0, ...call, result: readHostedResult(value), native });
  }

  #applyCallEnd({ call, input }: OpenBlock): void {
    const text = input.join("");
    const isEmpty = text.trim() === "";
    // Anthropic sends no input for a call without arguments.
    if (isEmpty) this.out.push({ type: "tool-call-delta", choice: 0, index: call, arguments: "{}" });
    this.out.push(
      isEmpty || objectIn(text)
        ? { type: "tool-call-end", choice: 0, index: call, status: "succeeded" }
        : { type: "tool-call-end", choice: 0, index: call, status: "failed", raw: text },
    );
  }

  #applyEnd(delta: JsonObject, rest: JsonObject): void {
    this.#releaseOpening();
    // A call that the limit has cut is still open.
    if (this.#block?.type === "tool_use") this.#applyBlockStop();
    const { stop_reason: reason, stop_details, stop_sequence } = delta;
    pushNative(this.out, {
      ...(nativeReasons.has(reason) && { stop_reason: reason }),
      ...(isObject(stop_details) && { stop_details }),
      ...nativeMessage({ ...delta, ...rest }),
    });
    this.#applyUsage(rest["usage"], this.out);
    const finish = neutralFinish(reason, stop_sequence);
    // Without a call the message is a whole one, even if it is empty: Anthropic's own messages may be.
    // Source: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons, "Empty responses with end_turn".
    const lacksCalls = finish.reason === "tool-calls" && this.#calls === 0 && this.#options.callsInText !== true;
    if (lacksCalls) this.repairs.note("finish-without-calls");
    this.out.push(lacksCalls ? { ...finish, reason: "stop" } : finish);
  }

  /** Emits the counts that every API has, and the members that only this one has. */
  #applyUsage(usage: unknown, out: GenerationEvent[]): void {
    if (!isObject(usage)) return;
    this.#usage = { ...this.#usage, ...usage };
    const counted = neutralUsage(this.#usage);
    if (counted) out.push({ type: "usage", usage: counted });
    const native = nativeUsage(usage);
    if (Object.keys(native).length > 0) pushNative(out, { usage: native });
  }
}

function pushNative(out: GenerationEvent[], value: JsonObject): void {
  if (Object.keys(value).length > 0) out.push({ type: "extra", place: "chunk", dialect: "messages", value });
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
