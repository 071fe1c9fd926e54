import type { GenerationEvent, SourceIdentity } from "../../core/events.ts";
import type { HostedCallIdentity } from "../../core/hosted-tool.ts";
import { isObject, nonEmpty, objectIn, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ReasoningState } from "../../core/turn-state.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import type { JsonProgress } from "../tolerant/call-assembler.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { isHostedResult, isHostedUse, readHostedResult, readHostedUse } from "./hosted-blocks.ts";
import { nativeCall, nativeMessage, nativeUsage } from "./native-members.ts";
import { nativeReasons, neutralCitation, neutralFinish, neutralUsage } from "./read-shapes.ts";

/** A block of a message that has started and not stopped. */
export interface OpenBlock {
  /** The source's index of the block. */
  readonly source: number;
  readonly type: string;
  /** The block as it started. */
  readonly value: JsonObject;
  /** Finds the end of a call's input; `null` for other blocks. */
  readonly progress: JsonProgress | null;
  /** The input of a call that its start contained. It is emitted at the end of the block if no delta brings an input. */
  readonly wholeInput: string;
  /** The number of the call among the calls of the message; -1 for other blocks. */
  readonly call: number;
  /** The parts of a call's input that have come. */
  readonly input: string[];
  signature: string;
  /** The members that the delta of a compaction brings. */
  compaction: JsonObject;
  /** A text block without any text yet. Its part starts with the first text, because some servers open a text block before anything else. */
  isUnstartedText: boolean;
}

type Add = (event: GenerationEvent) => void;

/**
 * Turns the events of a streamed message into generation events. They must be in Anthropic's order: one start, blocks one after another (start,
 * deltas, stop), one delta of the message. Source: https://platform.claude.com/docs/en/build-with-claude/streaming.
 *
 * What only this API has becomes `extra` events of its dialect: blocks of other kinds, members of usage, context management.
 */
export class OrderedMessage {
  /** The id and the model that the source names. */
  identity: SourceIdentity = {};
  /** The number of calls that have started. */
  calls = 0;
  readonly #options: AnswerReaderOptions;
  readonly #repairs: RepairLog;
  readonly #add: Add;
  #usage: JsonObject = {};
  /** The events of a message's start, until something else comes: an error before that has a status of its own. */
  #opening: GenerationEvent[] | null = [];
  /** The calls that the source's server has run, by their ids. */
  readonly #hosted = new Map<string, HostedCallIdentity>();

  /** `add`: takes each event. */
  constructor(options: AnswerReaderOptions, repairs: RepairLog, add: Add) {
    this.#options = options;
    this.#repairs = repairs;
    this.#add = add;
  }

  messageStart(message: JsonObject): void {
    const id = nonEmpty(message["id"]);
    const model = nonEmpty(message["model"]);
    this.identity = { ...(id !== undefined && { id }), ...(model !== undefined && { model }) };
    const opening: GenerationEvent[] = [{ type: "start", choice: 0, source: this.identity }];
    const add: Add = (event) => void opening.push(event);
    addNative(add, nativeMessage(message));
    this.#usageOf(message["usage"], add);
    this.#opening = opening;
  }

  #releaseOpening(): void {
    if (this.#opening === null) return;
    for (const event of this.#opening) this.#add(event);
    this.#opening = null;
  }

  blockStart(block: OpenBlock): void {
    this.#releaseOpening();
    const { type, call, value } = block;
    if (type === "thinking" || type === "redacted_thinking")
      this.#add({ type: "part-start", choice: 0, kind: "reasoning" });
    else if (type === "tool_use") {
      const [id, name] = [scalarText(value["id"]), scalarText(value["name"])];
      const native = nativeCall(value);
      this.#add({ type: "tool-call-start", choice: 0, index: call, id, name, ...(native && { native }) });
    } else if (isHostedUse(value)) {
      const hosted = readHostedUse(value);
      this.#hosted.set(hosted.id, hosted);
      this.#add({ type: "hosted-call-start", choice: 0, ...hosted, native: { dialect: "messages", value } });
    }
    // Only a whole block starts with citations.
    if (Array.isArray(value["citations"]))
      for (const citation of value["citations"]) this.blockDelta(block, { type: "citations_delta", citation });
  }

  blockDelta(block: OpenBlock, delta: JsonObject): void {
    const { type, text, thinking, partial_json: json, signature, citation } = delta;
    if (type === "text_delta" && typeof text === "string" && text !== "") {
      this.#startText(block);
      this.#add({ type: "text-delta", choice: 0, text });
    } else if (type === "thinking_delta" && typeof thinking === "string" && thinking !== "")
      this.#add({ type: "reasoning-delta", choice: 0, text: thinking });
    else if (type === "signature_delta" && typeof signature === "string") block.signature = signature;
    else if (type === "citations_delta" && isObject(citation)) {
      this.#startText(block);
      this.#add({ type: "annotation", choice: 0, annotation: neutralCitation(citation) });
    } else if (type === "compaction_delta") {
      const { type: _, ...members } = delta;
      block.compaction = members;
    } else if (type === "input_json_delta" && typeof json === "string" && json !== "") {
      block.input.push(json);
      if (block.call >= 0) this.#add({ type: "tool-call-delta", choice: 0, index: block.call, arguments: json });
      else if (isHostedUse(block.value))
        this.#add({ type: "hosted-call-delta", choice: 0, id: scalarText(block.value["id"]), arguments: json });
    }
  }

  #stateOf(kind: "signature" | "redacted", value: string): ReasoningState {
    const { source } = this.#options;
    return { kind, value, ...(source !== undefined && { source }) };
  }

  #startText(block: OpenBlock): void {
    if (block.isUnstartedText) this.#add({ type: "part-start", choice: 0, kind: "text" });
    block.isUnstartedText = false;
  }

  blockStop(block: OpenBlock): void {
    const { type, value, signature, input, compaction } = block;
    switch (type) {
      case "text":
        break;
      case "thinking":
        this.#add({
          type: "part-end",
          choice: 0,
          ...(signature !== "" && { state: this.#stateOf("signature", signature) }),
        });
        break;
      case "redacted_thinking":
        this.#add({ type: "part-end", choice: 0, state: this.#stateOf("redacted", scalarText(value["data"])) });
        break;
      case "tool_use":
        this.#callEnd(block);
        break;
      case "server_tool_use":
      case "mcp_tool_use": {
        const id = scalarText(value["id"]);
        if (isBlank(input)) this.#add({ type: "hosted-call-delta", choice: 0, id, arguments: "{}" });
        this.#add({ type: "hosted-call-end", choice: 0, id });
        break;
      }
      default: {
        if (isHostedResult(value)) {
          this.#hostedResult(value);
          break;
        }
        const members = value["input"] === undefined ? {} : { input: objectIn(input.join("")) ?? {} };
        const item = { ...value, ...(type === "compaction" ? compaction : members) };
        this.#add({ type: "extra", choice: 0, place: "item", dialect: "messages", value: item });
      }
    }
  }

  #hostedResult(value: JsonObject): void {
    const id = scalarText(value["tool_use_id"]);
    const name = scalarText(value["type"]).replace(/_tool_result$/, "");
    const call = this.#hosted.get(id) ?? { id, kind: "other", tool: name, name };
    const native = { dialect: "messages", value };
    this.#add({ type: "hosted-result", choice: 0, ...call, result: readHostedResult(value), native });
  }

  #callEnd({ call, input }: OpenBlock): void {
    const text = input.join("");
    const isEmpty = isBlank(input);
    if (isEmpty) this.#add({ type: "tool-call-delta", choice: 0, index: call, arguments: "{}" });
    this.#add(
      isEmpty || objectIn(text)
        ? { type: "tool-call-end", choice: 0, index: call, status: "succeeded" }
        : { type: "tool-call-end", choice: 0, index: call, status: "failed", raw: text },
    );
  }

  /** `rest`: the members next to the delta: `usage`, `context_management`. `open`: the block that the limit has cut. */
  messageDelta(delta: JsonObject, rest: JsonObject, open: OpenBlock | null): void {
    this.#releaseOpening();
    if (open?.type === "tool_use") this.blockStop(open);
    const { stop_reason: reason, stop_details, stop_sequence } = delta;
    addNative(this.#add, {
      ...(nativeReasons.has(reason) && { stop_reason: reason }),
      ...(isObject(stop_details) && { stop_details }),
      ...nativeMessage({ ...delta, ...rest }),
    });
    this.#usageOf(rest["usage"], this.#add);
    const finish = neutralFinish(reason, stop_sequence);
    // Without a call the message is a whole one, even if it is empty: Anthropic's own messages may be.
    // Source: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons, "Empty responses with end_turn".
    const lacksCalls = finish.reason === "tool-calls" && this.calls === 0 && this.#options.callsInText !== true;
    if (lacksCalls) this.#repairs.note("finish-without-calls");
    this.#add(lacksCalls ? { ...finish, reason: "stop" } : finish);
  }

  /** Emits the counts that every API has, and the members that only this one has. */
  #usageOf(usage: unknown, add: Add): void {
    if (!isObject(usage)) return;
    this.#usage = { ...this.#usage, ...usage };
    const counted = neutralUsage(this.#usage);
    if (counted) add({ type: "usage", usage: counted });
    const native = nativeUsage(usage);
    if (Object.keys(native).length > 0) addNative(add, { usage: native });
  }
}

function addNative(add: Add, value: JsonObject): void {
  if (Object.keys(value).length > 0) add({ type: "extra", place: "chunk", dialect: "messages", value });
}

/** Anthropic sends no input for a call without arguments. */
function isBlank(input: readonly string[]): boolean {
  return input.every((part) => part.trim() === "");
}
