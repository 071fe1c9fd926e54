import type { GenerationEnd, GenerationEvent } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { inWireOrder, membersOf } from "../members.ts";
import type { RepairedCapture, RepairOptions } from "../capture-form.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { errorJson } from "./error-object.ts";
import { messageId, toolUseId } from "./ids.ts";
import { MessageReader } from "./read.ts";
import type { MessageEvent } from "./read.ts";
import * as schema from "./schema.ts";
import { newSignature } from "./signature.ts";
import { messageEventText, padding, pingText } from "./write-stream.ts";
import { writeUsage, parsedInput } from "./write.ts";

type Options = Omit<RepairOptions, "from">;

/** Reads a captured answer of the Messages API, however broken, and writes it again. */
export function repairMessageCapture(capture: string, options: Options): RepairedCapture {
  const { random, profile } = options;
  const messageEvents: MessageEvent[] = [];
  const reader = new MessageReader(
    { newCallId: () => toolUseId(random), frameLimit: Number.POSITIVE_INFINITY },
    (event) => messageEvents.push(event),
  );
  const isBody = /^\s*\{/.test(capture);
  const events = isBody ? readResponseBody(capture, reader) : [...reader.push(capture), ...reader.end()];
  const end = endOf(events);
  const repairs = reader.repairs.list();
  const failure = "failure" in end ? errorJson(end.failure, null) : undefined;
  if (isBody) return { body: failure ?? wholeMessage(messageEvents, options), repairs, end };
  const writer = new CaptureWriter(options, messageEvents);
  // A message that failed ends with the error alone.
  const shown = failure
    ? messageEvents.filter(({ type }) => type !== "message_delta" && type !== "message_stop")
    : messageEvents;
  const text = shown.map((event) => writer.write(event)).join("");
  const last = failure ? messageEventText("error", failure.slice(0, -1), padding(profile, random)) : "";
  return { body: text + last, repairs, end };
}

function endOf(events: readonly GenerationEvent[]): GenerationEnd {
  const last = events.at(-1);
  return last?.type === "end" ? last.end : { kind: "done" };
}

/**
 * Writes the events of a captured message, which are in order. A complete answer of Anthropic keeps the members that it had; any other
 * gets today's members.
 */
class CaptureWriter {
  readonly #options: Options;
  /** The counts of the prompt in `message_delta`, for a `message_start` without them. */
  readonly #promptUsage: JsonObject;
  #isAnthropics = false;
  /** The usage of `message_start`. */
  #usage: JsonObject = {};
  /** The open block is reasoning without a signature. */
  #lacksSignature = false;

  constructor(options: Options, events: readonly MessageEvent[]) {
    this.#options = options;
    const usage = events.findLast((event) => event.type === "message_delta")?.rest["usage"];
    const { output_tokens: _, ...promptUsage } = isObject(usage) ? usage : {};
    this.#promptUsage = promptUsage;
  }

  write(event: MessageEvent): string {
    if (event.type === "ping") return pingText;
    if (event.type === "content_block_start") this.#lacksSignature = lacksSignature(event.content_block);
    if (event.type === "content_block_delta" && event.delta["signature"]) this.#lacksSignature = false;
    if (event.type !== "content_block_stop" || !this.#lacksSignature) return this.#eventText(event);
    this.#lacksSignature = false;
    const delta = { type: "signature_delta", signature: noSignature };
    return this.#eventText({ type: "content_block_delta", index: event.index, delta }) + this.#eventText(event);
  }

  #eventText(event: Exclude<MessageEvent, { type: "ping" }>): string {
    const json = JSON.stringify(this.#ordered(event));
    const { profile, random } = this.#options;
    return messageEventText(event.type, json.slice(0, -1), padding(profile, random));
  }

  #ordered(event: Exclude<MessageEvent, { type: "ping" }>): unknown {
    switch (event.type) {
      case "message_start": {
        this.#isAnthropics = isAnthropics(event.message);
        const message = this.#isAnthropics
          ? event.message
          : withTodaysMembers(event.message, this.#promptUsage, this.#options);
        if (isObject(message["usage"])) this.#usage = message["usage"];
        return { type: event.type, message: orderedMessage(message) };
      }
      case "message_delta": {
        const { type, delta, rest } = event;
        const ending = this.#isAnthropics ? delta : { stop_sequence: null, stop_details: null, ...delta };
        const usage = this.#finalUsage(rest["usage"]);
        return inWireOrder(schema.streamEvent, { type, delta: ending, ...rest, usage });
      }
      default:
        return inWireOrder(schema.streamEvent, event);
    }
  }

  /**
   * Returns the usage of `message_delta`. The official SDKs read its `output_tokens` without checking for a usage, so a missing usage is
   * made of the counts of `message_start`.
   */
  #finalUsage(usage: unknown): JsonObject {
    const known = isObject(usage) ? usage : {};
    if (this.#isAnthropics && "output_tokens" in known) return known;
    const counts = membersOf(schema.messageDeltaUsage).flatMap(({ name, always }) =>
      always ? [[name, this.#usage[name]] as const] : [],
    );
    return { ...Object.fromEntries(counts), ...known };
  }
}

/** Writes the whole message that the events of a captured body make up. */
function wholeMessage(events: readonly MessageEvent[], options: Options): string {
  const message = assembledMessage(events);
  return JSON.stringify(orderedMessage(isAnthropics(message) ? message : withTodaysMembers(message, {}, options)));
}

/** Assembles the message from its events, which are in order. */
function assembledMessage(events: readonly MessageEvent[]): JsonObject {
  let message: { [name: string]: unknown } = {};
  const content: { [name: string]: unknown }[] = [];
  let input = "";
  for (const event of events) {
    const block = content.at(-1) ?? {};
    switch (event.type) {
      case "message_start":
        message = { ...event.message };
        break;
      case "content_block_start":
        content.push({ ...event.content_block });
        input = "";
        break;
      case "content_block_delta": {
        const { type: _, partial_json, citation, ...members } = event.delta;
        if (typeof partial_json === "string") input += partial_json;
        else if (citation !== undefined) {
          const citations: unknown[] = Array.isArray(block["citations"]) ? block["citations"] : [];
          block["citations"] = [...citations, citation];
        } else for (const [name, value] of Object.entries(members)) block[name] = appended(block[name], value);
        break;
      }
      case "content_block_stop":
        if (input !== "") block["input"] = parsedInput(input);
        break;
      case "message_delta": {
        const { usage, ...rest } = event.rest;
        const before = message["usage"];
        Object.assign(message, event.delta, rest);
        if (isObject(usage)) message["usage"] = { ...(isObject(before) && before), ...usage };
        break;
      }
      case "message_stop":
      case "ping":
    }
  }
  return {
    ...message,
    content: content.map((block) => (lacksSignature(block) ? { ...block, signature: noSignature } : block)),
  };
}

function appended(before: unknown, value: unknown): unknown {
  return typeof before === "string" && typeof value === "string" ? before + value : value;
}

/**
 * True for a complete message of Anthropic: its id is Anthropic's own, one of its clouds' (`msg_bdrk_`, `msg_vrtx_`) or one of 2024, and
 * it has every member that Anthropic's messages of all dates have.
 */
function isAnthropics({ id, type, role, model, usage }: JsonObject): boolean {
  if (typeof id !== "string" || !/^msg_(01|bdrk_|vrtx_)[1-9A-HJ-NP-Za-km-z]{20,}$/.test(id)) return false;
  const isCounted =
    isObject(usage) && typeof usage["input_tokens"] === "number" && typeof usage["output_tokens"] === "number";
  return type === "message" && role === "assistant" && nonEmpty(model) !== undefined && isCounted;
}

/** Clients send reasoning back with its signature, so a block without one gets an empty signature of this server. */
const noSignature = newSignature("", undefined, undefined);

function lacksSignature(block: JsonObject): boolean {
  return block["type"] === "thinking" && !block["signature"];
}

/**
 * Orders a message by its date: the model is the first member since 2025-10-30. A message does not contain its date. Where its members
 * have lost their order, the usage dates it, which has `cache_creation` since two months before.
 */
function orderedMessage(message: JsonObject): unknown {
  const { usage } = message;
  const isOlder = Object.keys(message)[0] === "id" || !isObject(usage) || !("cache_creation" in usage);
  return inWireOrder(isOlder ? schema.messageUntil2025 : schema.message, message);
}

function withTodaysMembers(message: JsonObject, counts: JsonObject, { random, now }: Options): JsonObject {
  const { model, id, usage } = message;
  return {
    ...message,
    model: nonEmpty(model) ?? "unknown",
    id: nonEmpty(id)?.startsWith("msg_") === true ? id : messageId(now, random),
    type: "message",
    role: "assistant",
    content: message["content"] ?? [],
    stop_reason: message["stop_reason"] ?? null,
    stop_sequence: message["stop_sequence"] ?? null,
    stop_details: message["stop_details"] ?? null,
    usage: { ...writeUsage(undefined, {}, {}), ...counts, ...(isObject(usage) && usage) },
  };
}
