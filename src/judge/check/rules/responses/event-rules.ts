import { lifecycleTypes, responseEvents } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atEnd, atFrame, atLine, atMember, atPath, shown } from "../place.ts";
import type { Violation, StreamRule } from "../rule.ts";
import { schemaViolation } from "../spec/validate.ts";
import { parsedJson, type StreamView } from "../view.ts";
import { itemRules, partRules } from "./item-rules.ts";
import {
  fromStart,
  isEnd,
  itemIn,
  responseIn,
  streamRuleList,
  streamState,
  type StreamedEvent,
} from "./stream-state.ts";

const unreadable = "the stream cannot be read";
const ends = "the answer seems to end wrongly";

/** Rules about every event. Source: specification, `ResponseStreamEvent`; 227 recorded streams of 2026. */
const eventRules: readonly StreamRule[] = streamRuleList([
  {
    id: "responses/event-type",
    severity: "error",
    concern: unreadable,
    says: "Every event has a type, a string that is not empty.",
    source: "specification: ResponseStreamEvent",
    breaks: ["official SDKs", "Codex", "AI SDK", "LangChain"],
    *judge(view) {
      for (const { frame, value } of view.chunks)
        if (typeof value.type !== "string" || value.type === "") yield atFrame(frame, `type is ${shown(value.type)}`);
    },
  },
  {
    id: "responses/event-name",
    severity: "warning",
    concern: unreadable,
    says: "Every event has an `event:` line, which is its type.",
    source: "recordings 227 of 227; Open Responses specification; LiteLLM #22102",
    breaks: ["EventSource-based clients (they listen for names)", "the compliance suite of Open Responses"],
    // A message of a WebSocket has no lines.
    endpoints: ["responses"],
    *judge(view) {
      for (const { frame, value } of view.chunks) {
        const name = frame.lines.find(({ field }) => field === "event");
        if (!name) yield atFrame(frame, `no event: line, type is ${shown(value.type)}`);
        else if (name.value !== value.type) yield atLine(name, `named ${name.value}, type is ${shown(value.type)}`);
      }
    },
  },
  {
    id: "responses/event-known",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "Text, reasoning and calls come in events that the specification names.",
    source:
      "specification: ResponseStreamEvent; pi #4193 (clients drop what they do not know); source code of AI SDK, LangChain and Codex CLI",
    breaks: ["AI SDK, LangChain, Codex (they pass over events that they do not know)"],
    *judge(view) {
      for (const { chunk, type } of streamState(view).events) {
        if (!isKnownEvent(type) && type !== "undefined")
          yield atMember(chunk, "type", `an event of type ${shown(type)}`);
      }
    },
  },
  {
    id: "responses/sequence-number",
    severity: "error",
    concern: unreadable,
    says: "Every event has a sequence_number, an integer.",
    source:
      "specification (required in every event); LiteLLM #28899, llama.cpp #24957; source code of AI SDK: its schema of a failed response",
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (a failed response without one is not read)"],
    *judge(view) {
      for (const { frame, value } of view.chunks)
        if (!Number.isInteger(value.sequence_number))
          yield "sequence_number" in value
            ? atFrame(frame, `sequence_number is ${shown(value.sequence_number)}`)
            : atFrame(frame, "no sequence_number");
    },
  },
  {
    id: "responses/sequence",
    severity: "warning",
    concern: unreadable,
    says: "sequence_number counts all events: 0, 1, 2 …",
    source: "recordings 362 of 363 (the other skips one before an error); LiteLLM #28899, llama.cpp #24957",
    breaks: ["clients that continue a stream with starting_after", "clients that put events in order by it"],
    *judge(view) {
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
  },
  {
    id: "responses/obfuscation",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "obfuscation is [0-9A-Za-z], as many as bring a delta to a multiple of 16 characters; with include_obfuscation: false there is none.",
    source: "specification: stream_options.include_obfuscation; recordings 9,709 of 9,713 deltas",
    breaks: [],
    shown: (view) => view.chunks.some(({ value }) => "obfuscation" in value),
    *judge(view) {
      const options = view.exchange.request.body?.stream_options as
        | { include_obfuscation?: unknown }
        | null
        | undefined;
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
  },
  {
    id: "spec/event",
    severity: "error",
    concern: unreadable,
    says: "Every event of a response matches the schema of the specification.",
    source: "OpenAI's OpenAPI document: ResponseStreamEvent; llama.cpp #20607, lemonade #3607, LM Studio #1089",
    breaks: [
      "clients that validate events against the specification",
      "AI SDK (schema)",
      "typed clients (Go, Rust, Java, C#)",
    ],
    *judge(view) {
      for (const { chunk, type, value } of streamState(view).events) {
        const schema = responseEvents.get(type);
        const violation = schema && schemaViolation(schema, value);
        if (violation) yield atPath(chunk, violation, `${type}: `);
      }
    },
  },
]);

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
const lifecycleRules: readonly StreamRule[] = streamRuleList([
  {
    id: "responses/created-first",
    severity: "error",
    concern: unreadable,
    says: "The first event is response.created.",
    source: "recordings 227 of 227; source code of openai-python and openai-node: responses.stream() throws without it",
    breaks: ["official SDKs: responses.stream()", "AI SDK (no id, no time)"],
    shown: fromStart,
    *judge(view) {
      const [first] = streamState(view).events;
      if (first && first.type !== "response.created") yield atMember(first.chunk, "type", `${first.type} first`);
    },
  },
  {
    id: "responses/in-progress",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "response.in_progress follows response.created (in the background: response.queued) before anything else.",
    source: "recordings 227 of 227",
    breaks: [],
    shown: (view) => fromStart(view) && streamState(view).events.some(({ type }) => type === "response.created"),
    *judge(view) {
      const [, ...later] = streamState(view).events.filter(({ type }) => type !== "keepalive");
      const next = later.find(({ type }) => type !== "response.queued");
      if (next && next.type !== "response.in_progress" && !isEnd(next.type))
        yield atMember(next.chunk, "type", `${next.type} after response.created`);
    },
  },
  {
    id: "responses/last-event",
    severity: "error",
    concern: ends,
    says: "The stream ends with response.completed, response.incomplete or response.failed, or with an error.",
    source:
      "recordings 227 of 227; Ollama #17118, #14600; source code of Codex CLI, openai-agents and LangChain: they read the last event",
    breaks: [
      "Codex (it sends the request again, up to five times)",
      "openai-agents (no answer)",
      "LangChain (no usage)",
    ],
    *judge(view) {
      if (!streamState(view).end) yield atEnd(view.exchange.response.body, "no event that ends the response");
    },
  },
  {
    id: "responses/after-end",
    severity: "error",
    concern: ends,
    says: "Nothing follows the event that ends the response; after an error only response.failed.",
    source: "recordings 227 of 227",
    breaks: ["clients that close there (they lose what follows)", "clients that take a later end for success"],
    shown: (view) => streamState(view).end !== undefined,
    *judge(view) {
      const mayFail = streamState(view).end?.type === "error";
      for (const [at, { chunk, type }] of afterEnd(view).entries())
        if (!(mayFail && at === 0 && type === "response.failed")) yield atFrame(chunk.frame, `${type} after the end`);
    },
  },
  {
    id: "responses/one-response",
    severity: "error",
    concern: "choices mix",
    says: "The response keeps its id, its time and its model in all events that show it.",
    source:
      "recordings 227 of 227; specification: Response.id; source code of LangChain: it reads the id at the beginning and at the end",
    breaks: ["clients that continue with previous_response_id", "LangChain"],
    shown: (view) => streamState(view).lifecycle.length > 1,
    *judge(view) {
      const [first, ...later] = streamState(view).lifecycle;
      for (const event of later) {
        for (const member of ["id", "created_at", "model"]) {
          const [value, before] = [responseIn(event)[member], responseIn(first)[member]];
          if (value !== before) yield atMember(event.chunk, member, `${member} ${shown(value)} after ${shown(before)}`);
        }
      }
    },
  },
  {
    id: "responses/event-status",
    severity: "error",
    concern: ends,
    says: "response.status is that of its event: in_progress, completed, incomplete, failed.",
    source: "specification: Response.status; recordings 227 of 227",
    breaks: ["clients that look at the status of the response"],
    shown: (view) => streamState(view).lifecycle.length > 0,
    *judge(view) {
      for (const event of streamState(view).lifecycle) {
        const { status } = responseIn(event);
        const name = event.type.slice("response.".length);
        const isLegal = name === "created" ? status === "in_progress" || status === "queued" : status === name;
        if (!isLegal) yield atMember(event.chunk, "status", `status ${shown(status)} in ${event.type}`);
      }
    },
  },
  {
    id: "responses/usage-last",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "usage is null until the response ends.",
    source: "recordings 227 of 227",
    breaks: [],
    shown: (view) => streamState(view).lifecycle.length > 0,
    *judge(view) {
      for (const event of streamState(view).lifecycle) {
        const { usage } = responseIn(event);
        if (!isEnd(event.type) && usage !== null && usage !== undefined)
          yield atMember(event.chunk, "usage", `usage in ${event.type}`);
      }
    },
  },
  {
    id: "responses/error",
    severity: "error",
    concern: "errors look like answers",
    says: "An error event has a message and a code, in `error` (as OpenAI sends it) or next to its type (as the specification has it).",
    source: "recordings 4 of 4; specification: ResponseErrorEvent; source code of AI SDK: its schemas of both",
    breaks: ["official SDKs (an exception without a message)", "AI SDK (schema)"],
    shown: (view) => streamState(view).events.some(({ type }) => type === "error"),
    *judge(view) {
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
  },
  {
    id: "responses/error-form",
    severity: "error",
    concern: "errors look like answers",
    says: "An error is an event of type error or a failed response, and has no other form.",
    source:
      "recordings 4 of 4; specification: ResponseErrorEvent; vLLM sends chat's error object as it is (its source code); source code of Codex CLI and AI SDK",
    breaks: ["Codex, AI SDK (they see a cut stream)"],
    *judge(view) {
      for (const { chunk, type, value } of streamState(view).events) {
        const isOther = type !== "error" && !lifecycleTypes.includes(type) && !("item_id" in value);
        if (isOther && ("error" in value || "detail" in value))
          yield atFrame(chunk.frame, "an error in a form of its own");
      }
    },
  },
  {
    id: "responses/call-then-failed",
    severity: "warning",
    concern: "tool calls break",
    says: "After a whole call the response does not fail: what fails does so before the call's output_item.done.",
    source:
      "source code of Codex CLI 0.169: it runs a call at output_item.done, and a failed response is asked for again",
    breaks: ["Codex (the call is run twice)"],
    shown: (view) => streamState(view).items.some((item) => item.done.some(isClientsCall)),
    *judge(view) {
      const { items, end } = streamState(view);
      const called = items.flatMap(({ done }) => done).some(isClientsCall);
      const isFailure = end === undefined || end.type === "error" || end.type === "response.failed";
      if (!called || !isFailure) return;
      yield end ? atFrame(end.chunk.frame, `${end.type} after a call`) : cut(view);
    },
  },
]);

function isClientsCall(event: StreamedEvent): boolean {
  return /^(function|custom_tool)_call$/.test(String(itemIn(event).type));
}

function cut(view: StreamView): Violation {
  return atEnd(view.exchange.response.body, "the stream is cut after a call");
}

/** Rules about the messages of a WebSocket. Their events are judged as those of a stream. */
const socketRules: readonly StreamRule[] = [
  {
    id: "socket/json",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every message of a WebSocket is one event: a JSON object as text. There is no [DONE].",
    source: "OpenAI's documentation: WebSocket mode; compliance tests of Open Responses",
    breaks: ["official SDKs: responses.connect()", "Codex (it passes over the message)"],
    judges: "stream",
    endpoints: ["response-socket"],
    *judge(view) {
      for (const frame of view.frames) {
        const isEvent = frame.data !== null && isObject(parsedJson(frame.data));
        if (!isEvent) yield atFrame(frame, frame.data === null ? "a message that is no text" : shown(frame.data));
      }
    },
  },
];

/** Every rule about the events of a stream of the Responses API. */
export const responseStreamRules: readonly StreamRule[] = [
  ...eventRules,
  ...lifecycleRules,
  ...itemRules,
  ...partRules,
  ...socketRules,
];
