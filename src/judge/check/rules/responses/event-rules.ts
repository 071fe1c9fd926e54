import { lifecycleTypes, responseEvents } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atEnd, atFrame, atLine, atMember, shown } from "../place.ts";
import { parsedJson, type StreamView } from "../view.ts";
import { itemRules, partRules } from "./item-rules.ts";
import {
  fromStart,
  httpAndSocket,
  isEnd,
  itemIn,
  responseIn,
  streamState,
  type StreamedEvent,
} from "./stream-state.ts";
import { type Rules, type Violation, notShown, on } from "../rule.ts";

/** Rules about every event. Source: specification, `ResponseStreamEvent`; 227 recorded streams of 2026. */
const eventRules: Rules<StreamView> = on(httpAndSocket, {
  *"responses/event-type"(view) {
    for (const { frame, value } of view.chunks)
      if (typeof value.type !== "string" || value.type === "") yield atFrame(frame, `type is ${shown(value.type)}`);
  },
  // A message of a WebSocket has no lines.
  *"responses/event-name"(view) {
    if (view.exchange.endpoint !== "responses") return notShown;
    for (const { frame, value } of view.chunks) {
      const name = frame.lines.find(({ field }) => field === "event");
      if (!name) yield atFrame(frame, `no event: line, type is ${shown(value.type)}`);
      else if (name.value !== value.type) yield atLine(name, `named ${name.value}, type is ${shown(value.type)}`);
    }
  },
  *"responses/event-known"(view) {
    for (const { chunk, type } of streamState(view).events) {
      if (!isKnownEvent(type) && type !== "undefined") yield atMember(chunk, "type", `an event of type ${shown(type)}`);
    }
  },
  *"responses/sequence-number"(view) {
    for (const { frame, value } of view.chunks)
      if (!Number.isInteger(value.sequence_number))
        yield "sequence_number" in value
          ? atFrame(frame, `sequence_number is ${shown(value.sequence_number)}`)
          : atFrame(frame, "no sequence_number");
  },
  *"responses/sequence"(view) {
    // A stream that is continued starts after the event that the request names.
    let due: number | undefined = fromStart(view) ? 0 : undefined;
    for (const { chunk, type, value } of streamState(view).events) {
      const number = value.sequence_number;
      if (typeof number !== "number") continue;
      const isSkipped = type === "error" && number === (due ?? 0) + 1;
      if (due !== undefined && number !== due && !isSkipped)
        yield atMember(chunk, "sequence_number", `${number} instead of ${due}`);
      due = number + 1;
    }
  },
  *"responses/obfuscation"(view) {
    if (!view.chunks.some(({ value }) => "obfuscation" in value)) return notShown;
    const options = view.exchange.request.body?.stream_options as { include_obfuscation?: unknown } | null | undefined;
    for (const chunk of view.chunks) {
      const { obfuscation, delta } = chunk.value;
      if (obfuscation === undefined) continue;
      if (options?.include_obfuscation === false) yield atMember(chunk, "obfuscation", "obfuscation");
      else if (typeof obfuscation !== "string" || !/^[0-9A-Za-z]{0,15}$/.test(obfuscation))
        yield atMember(chunk, "obfuscation", `obfuscation is ${shown(obfuscation)}`);
      else if (typeof delta === "string" && ![delta.length, [...delta].length].some(fits(obfuscation)))
        yield atMember(chunk, "obfuscation", `${obfuscation.length} characters next to ${[...delta].length}`);
    }
  },
});

/** Events of tools that OpenAI runs, and of audio. */
const hosted =
  /^response\.(?:(?:web_search|file_search|code_interpreter|image_generation|mcp|computer|local_shell|shell|apply_patch)_(?:call|list_tools)|audio|tool_search|compaction|program)/;

/** Whether OpenAI's API has events of this type. */
export function isKnownEvent(type: string): boolean {
  return responseEvents.has(type) || hosted.test(type) || isEnd(type) || type === "keepalive";
}

function fits(obfuscation: string): (length: number) => boolean {
  return (length) => (length + obfuscation.length) % 16 === 0;
}

function afterEnd(view: StreamView): readonly StreamedEvent[] {
  const { events, end } = streamState(view);
  return end ? events.slice(events.indexOf(end) + 1) : [];
}

/** How a response begins and ends. Source: specification; 227 recorded streams of 2026; what clients read. */
const lifecycleRules: Rules<StreamView> = on(httpAndSocket, {
  *"responses/created-first"(view) {
    if (!fromStart(view)) return notShown;
    const [first] = streamState(view).events;
    if (first && first.type !== "response.created") yield atMember(first.chunk, "type", `${first.type} first`);
  },
  *"responses/in-progress"(view) {
    if (!fromStart(view) || !streamState(view).events.some(({ type }) => type === "response.created")) return notShown;
    const [, ...later] = streamState(view).events.filter(({ type }) => type !== "keepalive");
    const next = later.find(({ type }) => type !== "response.queued");
    if (next && next.type !== "response.in_progress" && !isEnd(next.type))
      yield atMember(next.chunk, "type", `${next.type} after response.created`);
  },
  *"responses/last-event"(view) {
    if (!streamState(view).end) yield atEnd(view.exchange.response.body, "no event that ends the response");
  },
  *"responses/after-end"(view) {
    if (streamState(view).end === undefined) return notShown;
    const mayFail = streamState(view).end?.type === "error";
    for (const [at, { chunk, type }] of afterEnd(view).entries())
      if (!(mayFail && at === 0 && type === "response.failed")) yield atFrame(chunk.frame, `${type} after the end`);
  },
  *"responses/one-response"(view) {
    if (streamState(view).lifecycle.length <= 1) return notShown;
    const [first, ...later] = streamState(view).lifecycle;
    for (const event of later) {
      for (const member of ["id", "created_at", "model"]) {
        const [value, before] = [responseIn(event)[member], responseIn(first)[member]];
        if (value !== before) yield atMember(event.chunk, member, `${member} ${shown(value)} after ${shown(before)}`);
      }
    }
  },
  *"responses/event-status"(view) {
    if (streamState(view).lifecycle.length === 0) return notShown;
    for (const event of streamState(view).lifecycle) {
      const { status } = responseIn(event);
      const name = event.type.slice("response.".length);
      const isLegal = name === "created" ? status === "in_progress" || status === "queued" : status === name;
      if (!isLegal) yield atMember(event.chunk, "status", `status ${shown(status)} in ${event.type}`);
    }
  },
  *"responses/usage-last"(view) {
    if (streamState(view).lifecycle.length === 0) return notShown;
    for (const event of streamState(view).lifecycle) {
      const { usage } = responseIn(event);
      if (!isEnd(event.type) && usage !== null && usage !== undefined)
        yield atMember(event.chunk, "usage", `usage in ${event.type}`);
    }
  },
  *"responses/error"(view) {
    if (streamState(view).events.every(({ type }) => type !== "error")) return notShown;
    for (const { chunk, type, value } of streamState(view).events) {
      if (type !== "error") continue;
      const error = (
        typeof value.error === "object" && value.error !== null ? value.error : value
      ) as StreamedEvent["value"];
      const { message, code } = error;
      if (typeof message !== "string" || message === "")
        yield atMember(chunk, "message", `message is ${shown(message)}`);
      else if (typeof code !== "string" && code !== null) yield atMember(chunk, "code", `code is ${shown(code)}`);
    }
  },
  *"responses/error-form"(view) {
    for (const { chunk, type, value } of streamState(view).events) {
      const isOther = type !== "error" && !lifecycleTypes.includes(type) && !("item_id" in value);
      if (isOther && ("error" in value || "detail" in value))
        yield atFrame(chunk.frame, "an error in a form of its own");
    }
  },
  *"responses/call-then-failed"(view) {
    if (!streamState(view).items.some((item) => item.done.some(isClientsCall))) return notShown;
    const { items, end } = streamState(view);
    const called = items.flatMap(({ done }) => done).some(isClientsCall);
    const isFailure = end === undefined || end.type === "error" || end.type === "response.failed";
    if (!called || !isFailure) return;
    yield end ? atFrame(end.chunk.frame, `${end.type} after a call`) : cut(view);
  },
});

function isClientsCall(event: StreamedEvent): boolean {
  return /^(function|custom_tool)_call$/.test(String(itemIn(event).type));
}

function cut(view: StreamView): Violation {
  return atEnd(view.exchange.response.body, "the stream is cut after a call");
}

/** Rules about the messages of a WebSocket. Their events are judged as those of a stream. */
const socketRules: Rules<StreamView> = {
  *"socket/json"(view) {
    if (view.exchange.endpoint !== "response-socket") return notShown;
    for (const frame of view.frames) {
      const isEvent = frame.data !== null && isObject(parsedJson(frame.data));
      if (!isEvent) yield atFrame(frame, frame.data === null ? "a message that is no text" : shown(frame.data));
    }
  },
};

/** Every rule about the events of a stream of the Responses API. */
export const responseStreamRules: Rules<StreamView> = {
  ...eventRules,
  ...lifecycleRules,
  ...itemRules,
  ...partRules,
  ...socketRules,
};
