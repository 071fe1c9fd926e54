import { promptCounts } from "../../../../wire/apis/messages/schema.ts";
import { bodyDemandsJson } from "../../../../wire/apis/tolerant/json-answer.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atEnd, atMember, atName } from "../place.ts";
import type { Expectations } from "../expectations.ts";
import type { Exchange } from "../exchange.ts";
import type { Violation } from "../rule.ts";
import { type BodyView, type Chunk, type Json, parsedJson, type StreamView } from "../view.ts";

/* What the rules about messages look at: the events of a stream, the message as a client has it in the end, and the request. */

export interface StreamEvent {
  readonly chunk: Chunk;
  /** The name of its `event:` line; `undefined` without such a line. */
  readonly name: string | undefined;
  /** The type in its data, else its name, else "". */
  readonly type: string;
}

/** A block with its events, matched by the index as clients do it. */
export interface StreamedBlock {
  readonly start: StreamEvent;
  /** The `content_block` of its start. */
  readonly value: Json;
  readonly deltas: readonly StreamedDelta[];
  readonly stop: StreamEvent | undefined;
}

export interface StreamedDelta {
  readonly event: StreamEvent;
  readonly value: Json;
}

/** The events of a streamed message. */
export interface MessageEvents {
  /** All events except pings. */
  readonly events: readonly StreamEvent[];
  readonly blocks: readonly StreamedBlock[];
  readonly errors: readonly StreamEvent[];
  /** The `message_delta` events. */
  readonly endings: readonly StreamEvent[];
}

const eventsByView = new WeakMap<StreamView, MessageEvents>();

/** Returns the events of a stream. They are read once for all rules. */
export function messageEvents(view: StreamView): MessageEvents {
  let events = eventsByView.get(view);
  if (!events) eventsByView.set(view, (events = readEvents(view)));
  return events;
}

function readEvents(view: StreamView): MessageEvents {
  const events = view.chunks.map(eventOf).filter(({ type }) => type !== "ping");
  const blocks: { start: StreamEvent; value: Json; deltas: StreamedDelta[]; stop: StreamEvent | undefined }[] = [];
  const byIndex = new Map<unknown, (typeof blocks)[number]>();
  for (const event of events) {
    const { index, content_block: value, delta } = event.chunk.value;
    const block = byIndex.get(index);
    if (event.type === "content_block_start") {
      const started = { start: event, value: isObject(value) ? value : {}, deltas: [], stop: undefined };
      blocks.push(started);
      byIndex.set(index, started);
    } else if (event.type === "content_block_delta") {
      block?.deltas.push({ event, value: isObject(delta) ? delta : {} });
    } else if (event.type === "content_block_stop" && block) block.stop ??= event;
  }
  return {
    events,
    blocks,
    errors: events.filter(isError),
    endings: events.filter(({ type }) => type === "message_delta"),
  };
}

function eventOf(chunk: Chunk): StreamEvent {
  const name = chunk.frame.lines.find(({ field }) => field === "event")?.value;
  const { type } = chunk.value;
  return { chunk, name, type: typeof type === "string" ? type : (name ?? "") };
}

/** True for an error of any form. Anthropic's has a type and a name. */
function isError({ type, name, chunk }: StreamEvent): boolean {
  return type === "error" || name === "error" || "error" in chunk.value;
}

/** Returns a member's text, or "" if it is not a string. */
export function textIn(value: Json, member: string): string {
  const text = value[member];
  return typeof text === "string" ? text : "";
}

/** A message as a client has it in the end. */
export interface MessageView {
  readonly exchange: Exchange;
  readonly isStream: boolean;
  /** Without its blocks. */
  readonly message: Json;
  readonly blocks: readonly MessageBlock[];
  /** Neither an error nor a cut connection ended it. */
  readonly isComplete: boolean;
  /** The place of a member of the message. */
  at(member: string, found: string): Violation;
}

export interface MessageBlock {
  readonly value: Json;
  /** The place of a member of the block. */
  at(member: string, found: string): Violation;
}

/** Returns the message of a stream, or `undefined` if the stream has none. */
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

/** Returns the message of a body, or `undefined` if the body is not a message. */
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

/** Returns the message's calls of the client's tools. */
export function callsIn({ blocks }: MessageView): readonly MessageBlock[] {
  return blocks.filter(({ value }) => value.type === "tool_use");
}

/** Returns the text of all text blocks. */
export function messageText({ blocks }: MessageView): string {
  return blocks.map(({ value }) => (value.type === "text" ? textIn(value, "text") : "")).join("");
}

/** True for a message that no limit, refusal or pause has cut. */
export function isUncut({ message, isComplete }: MessageView): boolean {
  return isComplete && ["end_turn", "tool_use", "stop_sequence"].includes(String(message.stop_reason));
}

/** Returns the number of a prompt's tokens. Counts that are not numbers count as 0. */
export function promptTokens(usage: Json): number {
  return promptCounts.reduce((sum, name) => {
    const count = usage[name];
    return sum + (typeof count === "number" ? count : 0);
  }, 0);
}

/** What a request requires of the message; nothing if the request is not known, or for parameters that a server may refuse. */
export interface MessageExpectations extends Expectations {
  /** There may be no thinking. */
  readonly withoutThinking: boolean;
}

export function messageExpectations({ exchange }: MessageView): MessageExpectations {
  const { body } = exchange.request;
  const { stop_sequences: stops, max_tokens: limit, thinking } = body ?? {};
  const choice = isObject(body?.tool_choice) ? body.tool_choice : {};
  const declared = Array.isArray(body?.tools) ? body.tools.filter(isObject) : [];
  const tools = new Set<unknown>(declared.map(({ name }) => name));
  const named = choice.type === "tool" && typeof choice.name === "string" && tools.has(choice.name);
  return {
    stops: Array.isArray(stops) ? stops.filter((one): one is string => typeof one === "string" && one !== "") : [],
    limit: Number.isInteger(limit) && (limit as number) > 0 ? (limit as number) : undefined,
    named: named ? String(choice.name) : undefined,
    forced: named || (choice.type === "any" && tools.size > 0),
    silent: body !== undefined && (choice.type === "none" || tools.size === 0),
    single: choice.disable_parallel_tool_use === true,
    json: bodyDemandsJson(body),
    withoutThinking: isObject(thinking) && thinking.type === "disabled",
    tools: body && tools,
  };
}
