import { isObject } from "../../../core/json.ts";
import { atName } from "../body/body-place.ts";
import type { Exchange } from "../exchange.ts";
import { atEnd, atMember } from "../place.ts";
import type { Offence, RuleFacts } from "../rule.ts";
import { type BodyView, type Json, parsedJson, type StreamView } from "../view.ts";
import { messageEvents, type StreamedBlock, textIn } from "./stream-events.ts";

/** Judges what a message says, whether it was streamed or not. */
export interface MessageRule extends RuleFacts {
  readonly judges: "message";
  shown?(view: MessageView): boolean;
  judge(view: MessageView): Iterable<Offence>;
}

/** A message of the Messages API, as a client has it in the end. */
export interface MessageView {
  readonly exchange: Exchange;
  readonly isStream: boolean;
  /** Without its blocks. */
  readonly message: Json;
  readonly blocks: readonly MessageBlock[];
  /** Neither an error nor a cut connection ended it. */
  readonly isComplete: boolean;
  /** The place of a member of the message. */
  at(member: string, found: string): Offence;
}

export interface MessageBlock {
  readonly value: Json;
  /** The place of a member of the block. */
  at(member: string, found: string): Offence;
}

/** The message that a stream tells; undefined where it tells none. */
export function streamedMessage(view: StreamView): MessageView | undefined {
  if (view.exchange.endpoint !== "messages") return undefined;
  const { events, blocks, errors, endings } = messageEvents(view);
  const start = events.find(({ type, chunk }) => type === "message_start" && isObject(chunk.value.message));
  if (!start) return undefined;
  const opening = start.chunk.value.message as Json;
  const last = endings.at(-1);
  const usage = Object.assign({}, ...[opening, ...endings.map(({ chunk }) => chunk.value)].map(usageOf)) as Json;
  const message = Object.assign({}, opening, ...endings.map(({ chunk }) => chunk.value.delta)) as Json;
  return {
    exchange: view.exchange,
    isStream: true,
    message: { ...message, usage: isObject(opening.usage) || endings.length > 0 ? usage : undefined },
    blocks: blocks.map(streamedBlock),
    isComplete: errors.length === 0 && last !== undefined,
    at(member, found) {
      const place = [last, start].find((event) => event?.chunk.frame.data?.includes(`"${member}"`) === true) ?? last;
      return place ? atMember(place.chunk, member, found) : atEnd(view.exchange.response.body, found);
    },
  };
}

function usageOf({ usage }: Json): Json {
  return isObject(usage) ? usage : {};
}

function streamedBlock({ start, value, deltas }: StreamedBlock): MessageBlock {
  const joined = (member: string) => deltas.map((delta) => textIn(delta.value, member)).join("");
  const at = (member: string, found: string) => atMember(start.chunk, member, found);
  switch (value.type) {
    case "text":
      return { value: { ...value, text: textIn(value, "text") + joined("text") }, at };
    case "thinking":
      return { value: { ...value, thinking: textIn(value, "thinking") + joined("thinking") }, at };
    case "tool_use": {
      const json = joined("partial_json");
      return { value: { ...value, input: json === "" ? value.input : parsedJson(json) }, at };
    }
    default:
      return { value, at };
  }
}

/** The message that a body is; undefined where it is none. */
export function wholeMessage(view: BodyView): MessageView | undefined {
  const { exchange, value } = view;
  if (exchange.endpoint !== "messages" || exchange.response.status !== 200) return undefined;
  if (!isObject(value) || "error" in value) return undefined;
  const { content } = value;
  const blocks = Array.isArray(content) ? content.filter(isObject) : [];
  const at = (member: string, found: string) => atName(view, member, found);
  return {
    exchange,
    isStream: false,
    message: value,
    blocks: blocks.map((block) => ({ value: block, at })),
    isComplete: true,
    at,
  };
}

/** The message's calls of the client's tools. */
export function callsIn({ blocks }: MessageView): readonly MessageBlock[] {
  return blocks.filter(({ value }) => value.type === "tool_use");
}

/** What it says in words. */
export function textOf({ blocks }: MessageView): string {
  return blocks.map(({ value }) => (value.type === "text" ? textIn(value, "text") : "")).join("");
}

/** It ended by itself: no limit, refusal or pause cut it. */
export function isWhole({ message, isComplete }: MessageView): boolean {
  return isComplete && ["end_turn", "tool_use", "stop_sequence"].includes(String(message.stop_reason));
}
