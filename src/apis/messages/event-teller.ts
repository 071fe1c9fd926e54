import type { Annotation, FinishEvent, GenerationEvent, SourceIdentity, StartEvent, Usage } from "../../core/events.ts";
import { isObject, nonEmpty, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { MessageEvent } from "./message-event.ts";
import { nativeMessage } from "./native-members.ts";

/** The block that is being told. */
interface Told {
  readonly block: JsonObject;
  readonly type: string;
  /** Of a call: its place among the calls. */
  readonly call: number;
  /** Of a call of any kind: its input so far. */
  input: string[];
  signature: string;
  /** Of a compaction: what its delta told. */
  compaction: JsonObject;
}

/**
 * Tells a message that is in order as generation events. What only this API has a place for goes along as `extra` events of its dialect:
 * blocks of the vendor's own tools, members of usage, how a context was managed.
 */
export class EventTeller {
  #identity: SourceIdentity | undefined;
  #usage: JsonObject = {};
  /** The message has begun, and nothing of it was told: an error may still come alone. */
  #owed: GenerationEvent[] | null = [];
  #told: Told | null = null;
  #owesText = false;
  #calls = 0;
  #saysCalls = false;

  get identity(): SourceIdentity {
    return this.#identity ?? {};
  }

  /** The message ended in a call, and has none. */
  get lacksCall(): boolean {
    return this.#saysCalls && this.#calls === 0;
  }

  tell(event: MessageEvent, out: GenerationEvent[]): void {
    switch (event.type) {
      case "message_start":
        this.#messageStart(event.message);
        break;
      case "content_block_start":
        this.#begin(out);
        this.#blockStart(event.content_block, out);
        break;
      case "content_block_delta":
        this.#delta(event.delta, out);
        break;
      case "content_block_stop":
        this.#blockStop(out);
        break;
      case "message_delta":
        this.#begin(out);
        this.#messageDelta(event.delta, event.rest, out);
        break;
      case "message_stop":
      case "ping":
    }
  }

  #messageStart(message: JsonObject): void {
    const id = nonEmpty(message["id"]);
    const model = nonEmpty(message["model"]);
    const source: SourceIdentity = { ...(id !== undefined && { id }), ...(model !== undefined && { model }) };
    this.#identity = source;
    const start: StartEvent = { type: "start", choice: 0, source };
    this.#owed = [start];
    const native = nativeMessage(message);
    if (Object.keys(native).length > 0)
      this.#owed.push({ type: "extra", place: "chunk", dialect: "messages", value: native });
    this.#addUsage(message["usage"], this.#owed);
  }

  #begin(out: GenerationEvent[]): void {
    if (this.#owed === null) return;
    out.push(...this.#owed);
    this.#owed = null;
  }

  #blockStart(block: JsonObject, out: GenerationEvent[]): void {
    const type = String(block["type"]);
    const call = type === "tool_use" ? this.#calls++ : -1;
    const name = scalarText(block["name"]);
    this.#told = {
      block,
      type,
      call,
      input: [],
      signature: nonEmpty(block["signature"]) ?? "",
      compaction: {},
    };
    // A text's part begins with its first words: some servers open a text before whatever they say.
    this.#owesText = type === "text";
    if (type === "thinking" || type === "redacted_thinking")
      out.push({ type: "part-start", choice: 0, kind: "reasoning" });
    else if (type === "tool_use") {
      out.push({ type: "tool-call-start", choice: 0, index: call, id: scalarText(block["id"]), name });
    }
    // Citations that stand in a whole block.
    if (Array.isArray(block["citations"]))
      for (const citation of block["citations"]) this.#delta({ type: "citations_delta", citation }, out);
  }

  #delta(delta: JsonObject, out: GenerationEvent[]): void {
    const { type, text, thinking, partial_json, signature, citation } = delta;
    const told = this.#told;
    if (told === null) return;
    if (type === "text_delta" && typeof text === "string" && text !== "") {
      this.#beginText(out);
      out.push({ type: "text-delta", choice: 0, text });
    } else if (type === "thinking_delta" && typeof thinking === "string" && thinking !== "")
      out.push({ type: "reasoning-delta", choice: 0, text: thinking });
    else if (type === "signature_delta" && typeof signature === "string") told.signature = signature;
    else if (type === "citations_delta" && isObject(citation)) {
      this.#beginText(out);
      out.push({ type: "annotation", choice: 0, annotation: annotationOf(citation) });
    } else if (type === "compaction_delta") {
      const { type: _, ...members } = delta;
      told.compaction = members;
    } else if (type === "input_json_delta" && typeof partial_json === "string" && partial_json !== "") {
      told.input.push(partial_json);
      if (told.call >= 0) out.push({ type: "tool-call-delta", choice: 0, index: told.call, arguments: partial_json });
    }
  }

  #beginText(out: GenerationEvent[]): void {
    if (this.#owesText) out.push({ type: "part-start", choice: 0, kind: "text" });
    this.#owesText = false;
  }

  #blockStop(out: GenerationEvent[]): void {
    const told = this.#told;
    this.#told = null;
    if (told === null) return;
    switch (told.type) {
      case "text":
        break;
      case "thinking":
        out.push({ type: "part-end", choice: 0, ...(told.signature !== "" && { signature: told.signature }) });
        break;
      case "redacted_thinking":
        out.push({ type: "part-end", choice: 0, encrypted: scalarText(told.block["data"]) });
        break;
      case "tool_use":
        this.#endCall(told, out);
        break;
      default:
        out.push({ type: "extra", choice: 0, place: "item", dialect: "messages", value: wholeBlock(told) });
    }
  }

  #endCall({ call, input }: Told, out: GenerationEvent[]): void {
    const text = input.join("");
    // What Anthropic tells of a call without arguments is nothing.
    if (text.trim() === "") out.push({ type: "tool-call-delta", choice: 0, index: call, arguments: "{}" });
    const isObjectText = text.trim() === "" || isObject(parsed(text));
    out.push(
      isObjectText
        ? { type: "tool-call-end", choice: 0, index: call, status: "succeeded" }
        : { type: "tool-call-end", choice: 0, index: call, status: "failed", raw: text },
    );
  }

  #messageDelta(delta: JsonObject, rest: JsonObject, out: GenerationEvent[]): void {
    // A call that the limit cut has no end of its own.
    if (this.#told?.type === "tool_use") this.#blockStop(out);
    const { stop_reason: reason, stop_details } = delta;
    const value = {
      ...(ownReasons.has(reason) && { stop_reason: reason }),
      ...(isObject(stop_details) && { stop_details }),
      ...nativeMessage({ ...delta, ...rest }),
    };
    if (Object.keys(value).length > 0) out.push({ type: "extra", place: "chunk", dialect: "messages", value });
    this.#addUsage(rest["usage"], out);
    const finish = finishOf(reason, delta["stop_sequence"]);
    this.#saysCalls = finish.reason === "tool-calls";
    out.push(finish);
  }

  /** Counts that every API has, and those that only this one has. */
  #addUsage(usage: unknown, out: GenerationEvent[]): void {
    if (!isObject(usage)) return;
    this.#usage = { ...this.#usage, ...usage };
    const counted = readUsage(this.#usage);
    if (counted) out.push({ type: "usage", usage: counted });
    const native = Object.fromEntries(Object.entries(usage).filter(([name]) => nativeUsage.has(name)));
    if (Object.keys(native).length > 0)
      out.push({ type: "extra", place: "chunk", dialect: "messages", value: { usage: native } });
  }
}

/** Reasons that no neutral one tells. */
const ownReasons: ReadonlySet<unknown> = new Set(["pause_turn", "compaction"]);

const nativeUsage: ReadonlySet<string> = new Set([
  "cache_creation",
  "server_tool_use",
  "service_tier",
  "inference_geo",
  "iterations",
]);

function finishOf(reason: unknown, sequence: unknown): FinishEvent {
  const finish = { type: "finish", choice: 0 } as const;
  switch (reason) {
    case "tool_use":
      return { ...finish, reason: "tool-calls" };
    case "max_tokens":
      return { ...finish, reason: "length", limit: "max-tokens" };
    case "model_context_window_exceeded":
      return { ...finish, reason: "length", limit: "context" };
    case "refusal":
      return { ...finish, reason: "content-filter" };
    default:
      return { ...finish, reason: "stop", ...(typeof sequence === "string" && { stop: sequence }) };
  }
}

/** What went in is told in three parts, which do not overlap. null: nothing is counted. */
function readUsage(usage: JsonObject): Usage | null {
  const count = (name: string): number | undefined => {
    const value = usage[name];
    return typeof value === "number" ? value : undefined;
  };
  const input = count("input_tokens");
  const output = count("output_tokens");
  if (input === undefined && output === undefined) return null;
  const written = count("cache_creation_input_tokens");
  const read = count("cache_read_input_tokens");
  const details = usage["output_tokens_details"];
  const thinking = isObject(details) ? details["thinking_tokens"] : undefined;
  return {
    promptTokens: (input ?? 0) + (written ?? 0) + (read ?? 0),
    completionTokens: output ?? 0,
    ...((read !== undefined || written !== undefined) && {
      promptDetails: {
        ...(read !== undefined && { cached_tokens: read }),
        ...(written !== undefined && { cache_write_tokens: written }),
      },
    }),
    ...(typeof thinking === "number" && { completionDetails: { reasoning_tokens: thinking } }),
  };
}

function annotationOf(citation: JsonObject): Annotation {
  const url = nonEmpty(citation["url"]);
  const title = nonEmpty(citation["title"]) ?? nonEmpty(citation["document_title"]);
  const citedText = nonEmpty(citation["cited_text"]);
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
    native: { dialect: "messages", value: citation },
  };
}

/** A block of a tool that the source ran itself, with what its deltas told. */
function wholeBlock({ block, type, input, compaction }: Told): JsonObject {
  if (type === "compaction") return { ...block, ...compaction };
  if (block["input"] === undefined) return block;
  const value = parsed(input.join(""));
  return { ...block, input: isObject(value) ? value : {} };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
