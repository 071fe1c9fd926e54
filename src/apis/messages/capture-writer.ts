import { inWireOrder } from "../members.ts";
import * as schema from "./schema.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Profile } from "../profile.ts";
import { eventText, padding, pingText } from "./event-text.ts";
import { messageId } from "./ids.ts";
import type { MessageEvent } from "./message-event.ts";
import { ownSignature } from "./sealed-thought.ts";

export interface CaptureContext {
  readonly profile: Profile;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Unix time in seconds, for an id that is missing. */
  readonly now: number;
}

/**
 * Writes the events of a captured message that is in order. A complete answer of Anthropic's own has the members that it had; any other
 * gets those of today.
 */
export class CaptureWriter {
  readonly #context: CaptureContext;
  /** The counts of the prompt in `message_delta`, for a `message_start` without. */
  readonly #promptUsage: JsonObject;
  /** The answer is Anthropic's own. */
  #isOwn = false;
  /** The usage of `message_start`. */
  #usage: JsonObject = {};
  /** The open block is reasoning without a signature. */
  #lacksSignature = false;

  /** `finalUsage`: the usage of `message_delta`, where there is one. */
  constructor(context: CaptureContext, finalUsage: unknown) {
    this.#context = context;
    const { output_tokens: _, ...promptUsage } = isObject(finalUsage) ? finalUsage : {};
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
    const { profile, random } = this.#context;
    return eventText(event.type, json.slice(0, -1), padding(profile, random));
  }

  #ordered(event: Exclude<MessageEvent, { type: "ping" }>): unknown {
    switch (event.type) {
      case "message_start": {
        this.#isOwn = isAnthropics(event.message);
        const message = this.#isOwn ? event.message : todaysMessage(event.message, this.#promptUsage, this.#context);
        if (isObject(message["usage"])) this.#usage = message["usage"];
        return { type: event.type, message: orderedMessage(message) };
      }
      case "content_block_delta":
        return inWireOrder(schema.streamEvent, event);
      case "message_delta": {
        const { type, delta, rest } = event;
        const ending = this.#isOwn ? delta : { stop_sequence: null, stop_details: null, ...delta };
        return inWireOrder(schema.streamEvent, {
          type,
          delta: ending,
          ...rest,
          usage: this.#finalUsage(rest["usage"]),
        });
      }
      case "content_block_start":
      case "content_block_stop":
      case "message_stop":
        return inWireOrder(schema.streamEvent, event);
    }
  }

  /**
   * The usage of `message_delta`. The official SDKs read its `output_tokens` without asking whether there is a usage, so one that has none
   * gets the counts of `message_start`.
   */
  #finalUsage(usage: unknown): JsonObject {
    const known = isObject(usage) ? usage : {};
    if (this.#isOwn && "output_tokens" in known) return known;
    const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = this.#usage;
    return { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens, ...known };
  }
}

/** A captured body. */
export function writeCapturedMessage(message: JsonObject, context: CaptureContext): string {
  const { content } = message;
  const signed = !Array.isArray(content) || !content.some(lacksSignature) ? content : content.map(withSignature);
  const whole = signed === content ? message : { ...message, content: signed };
  return JSON.stringify(orderedMessage(isAnthropics(whole) ? whole : todaysMessage(whole, {}, context)));
}

/** An id of Anthropic's own, of its clouds' (`msg_bdrk_`, `msg_vrtx_`), or of 2024, on a message that has what every one of theirs has. */
function isAnthropics({ id, type, role, model, usage }: JsonObject): boolean {
  if (typeof id !== "string" || !/^msg_(01|bdrk_|vrtx_)[1-9A-HJ-NP-Za-km-z]{20,}$/.test(id)) return false;
  const isCounted =
    isObject(usage) && typeof usage["input_tokens"] === "number" && typeof usage["output_tokens"] === "number";
  return type === "message" && role === "assistant" && nonEmpty(model) !== undefined && isCounted;
}

/** Clients send reasoning back with its signature, so a block without one gets a signature of ours. */
const noSignature = ownSignature("", undefined, undefined);

function lacksSignature(block: unknown): boolean {
  return isObject(block) && block["type"] === "thinking" && !block["signature"];
}

function withSignature(block: unknown): unknown {
  return isObject(block) && lacksSignature(block) ? { ...block, signature: noSignature } : block;
}

/**
 * The model stands first since 2025-10-30. Nothing in a message tells its date: where the members have lost their order, the usage
 * does, which counts what was cached by its lifetime since two months before.
 */
function orderedMessage(message: JsonObject): unknown {
  const { usage } = message;
  const isOlder = Object.keys(message)[0] === "id" || !isObject(usage) || !("cache_creation" in usage);
  return inWireOrder(isOlder ? schema.messageUntil2025 : schema.message, message);
}

function todaysMessage(message: JsonObject, counts: JsonObject, { random, now }: CaptureContext): JsonObject {
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
    usage: {
      input_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 0,
      service_tier: "standard",
      inference_geo: "not_available",
      ...counts,
      ...(isObject(usage) && usage),
    },
  };
}
