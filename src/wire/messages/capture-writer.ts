import { inWireOrder } from "../../apis/members.ts";
import * as schema from "../../apis/messages/schema.ts";
import { isObject, nonEmpty } from "../../generation/json.ts";
import type { JsonObject } from "../../generation/json.ts";
import type { Profile } from "../profile.ts";
import { eventText, padding, pingText } from "./event-text.ts";
import { messageId } from "./ids.ts";
import type { MessageEvent } from "./message-event.ts";

export interface CaptureContext {
  readonly profile: Profile;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Unix time in seconds, for an id that is missing. */
  readonly now: number;
}

/**
 * Writes the events of a captured message that is in order. An answer of Anthropic's own has the members that it had; any other gets
 * those of today.
 */
export class CaptureWriter {
  readonly #context: CaptureContext;
  /** What the message did not say of itself and today's do. */
  #isOwn = false;

  constructor(context: CaptureContext) {
    this.#context = context;
  }

  write(event: MessageEvent): string {
    if (event.type === "ping") return pingText;
    const json = JSON.stringify(this.#ordered(event));
    const { profile, random } = this.#context;
    return eventText(event.type, json.slice(0, -1), padding(profile, random));
  }

  #ordered(event: Exclude<MessageEvent, { type: "ping" }>): unknown {
    switch (event.type) {
      case "message_start": {
        this.#isOwn = isAnthropics(event.message);
        const message = this.#isOwn ? event.message : todaysMessage(event.message, this.#context);
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
          ...(this.#isOwn ? rest : { usage: {}, ...rest }),
        });
      }
      case "content_block_start":
      case "content_block_stop":
      case "message_stop":
        return inWireOrder(schema.streamEvent, event);
    }
  }
}

/** A captured body. */
export function writeCapturedMessage(message: JsonObject, context: CaptureContext): string {
  return JSON.stringify(orderedMessage(isAnthropics(message) ? message : todaysMessage(message, context)));
}

/** An id of Anthropic's own, of its clouds' (`msg_bdrk_`, `msg_vrtx_`), or of 2024. */
function isAnthropics({ id, usage }: JsonObject): boolean {
  return typeof id === "string" && /^msg_(01|bdrk_|vrtx_)[1-9A-HJ-NP-Za-km-z]{20,}$/.test(id) && isObject(usage);
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

function todaysMessage(message: JsonObject, { random, now }: CaptureContext): JsonObject {
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
      ...(isObject(usage) && usage),
    },
  };
}
