import { atEnd, atFrame, atMember, shown } from "../place.ts";
import type { Offence, StreamRule } from "../rule.ts";
import type { StreamView } from "../view.ts";
import {
  endTypes,
  fromStart,
  itemIn,
  lifecycleTypes,
  responseIn,
  storyOf,
  type StreamedEvent,
} from "./stream-story.ts";

const endpoints = ["responses", "response-socket"] as const;
const ends = "the answer seems to end wrongly";
const unreadable = "the stream cannot be read";

function afterEnd(view: StreamView): readonly StreamedEvent[] {
  const { events, end } = storyOf(view);
  return end ? events.slice(events.indexOf(end) + 1) : [];
}

/** How a response begins and ends. Source: specification; 227 recorded streams of 2026; what clients read. */
export const lifecycleRules: readonly StreamRule[] = [
  {
    id: "responses/created-first",
    severity: "error",
    concern: unreadable,
    says: "The first event is response.created.",
    source: "recordings 227 of 227; source code of openai-python and openai-node: responses.stream() throws without it",
    breaks: ["official SDKs: responses.stream()", "AI SDK (no id, no time)"],
    judges: "stream",
    endpoints,
    shown: fromStart,
    *judge(view) {
      const [first] = storyOf(view).events;
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
    judges: "stream",
    endpoints,
    shown: (view) => fromStart(view) && storyOf(view).events.some(({ type }) => type === "response.created"),
    *judge(view) {
      const [, ...later] = storyOf(view).events.filter(({ type }) => type !== "keepalive");
      const next = later.find(({ type }) => type !== "response.queued");
      if (next && next.type !== "response.in_progress" && !endTypes.has(next.type))
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
    judges: "stream",
    endpoints,
    *judge(view) {
      if (!storyOf(view).end) yield atEnd(view.exchange.response.body, "no event that ends the response");
    },
  },
  {
    id: "responses/after-end",
    severity: "error",
    concern: ends,
    says: "Nothing follows the event that ends the response; after an error only response.failed.",
    source: "recordings 227 of 227",
    breaks: ["clients that close there (they lose what follows)", "clients that take a later end for success"],
    judges: "stream",
    endpoints,
    shown: (view) => storyOf(view).end !== undefined,
    *judge(view) {
      const mayFail = storyOf(view).end?.type === "error";
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
    judges: "stream",
    endpoints,
    shown: (view) => storyOf(view).lifecycle.length > 1,
    *judge(view) {
      const [first, ...later] = storyOf(view).lifecycle;
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
    judges: "stream",
    endpoints,
    shown: (view) => storyOf(view).lifecycle.length > 0,
    *judge(view) {
      for (const event of storyOf(view).lifecycle) {
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
    judges: "stream",
    endpoints,
    shown: (view) => storyOf(view).lifecycle.length > 0,
    *judge(view) {
      for (const event of storyOf(view).lifecycle) {
        const { usage } = responseIn(event);
        if (!endTypes.has(event.type) && usage !== null && usage !== undefined)
          yield atMember(event.chunk, "usage", `usage in ${event.type}`);
      }
    },
  },
  {
    id: "responses/error",
    severity: "error",
    concern: "errors look like answers",
    says: "An error event has a message and a code, in `error` (as OpenAI sends it) or beside its type (as the specification has it).",
    source: "recordings 4 of 4; specification: ResponseErrorEvent; source code of AI SDK: its schemas of both",
    breaks: ["official SDKs (an exception without a message)", "AI SDK (schema)"],
    judges: "stream",
    endpoints,
    shown: (view) => storyOf(view).events.some(({ type }) => type === "error"),
    *judge(view) {
      for (const { chunk, type, value } of storyOf(view).events) {
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
    judges: "stream",
    endpoints,
    *judge(view) {
      for (const { chunk, type, value } of storyOf(view).events) {
        const isOther = type !== "error" && !lifecycleTypes.has(type) && !("item_id" in value);
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
    judges: "stream",
    endpoints,
    shown: (view) => storyOf(view).items.some((item) => item.done.some(isClientsCall)),
    *judge(view) {
      const { items, end } = storyOf(view);
      const called = items.flatMap(({ done }) => done).some(isClientsCall);
      const isFailure = end === undefined || end.type === "error" || end.type === "response.failed";
      if (!called || !isFailure) return;
      yield end ? atFrame(end.chunk.frame, `${end.type} after a call`) : cut(view);
    },
  },
];

function isClientsCall(event: StreamedEvent): boolean {
  return /^(function|custom_tool)_call$/.test(String(itemIn(event).type));
}

function cut(view: StreamView): Offence {
  return atEnd(view.exchange.response.body, "the stream is cut after a call");
}
