import { between } from "../../random.ts";
import type { IllegalChange } from "../mutation.ts";
import { onEvent, onEvents, onStreamText } from "./on-response.ts";
import { finalResponse, insert, isWhole, type Json, ofType, remove } from "./stream-draft.ts";

const any = /./;
const ends = /^response\.(completed|incomplete|failed)$/;
const middle = /^response\.(output_item|content_part|output_text|function_call_arguments)/;

/** What every event has, and how a response begins and ends. */
export const eventMutations: readonly IllegalChange[] = [
  onEvent("responses/event-type", "no type", any, (event) => delete event.type),
  onEvent("responses/event-type", "a type that is a number", any, (event) => (event.type = 7)),
  onStreamText("responses/event-name", "no event: lines", (body) => body.replaceAll(/^event: .*\n/gm, "")),
  onStreamText("responses/event-name", "one name for all", (body) =>
    body.replaceAll(/^event: .*$/gm, "event: message"),
  ),
  onStreamText("responses/event-known", "another name for text", (body) =>
    body.replaceAll("response.output_text.delta", "response.text.delta"),
  ),
  onStreamText("responses/event-known", "thoughts as response.reasoning.delta", (body) =>
    body.replaceAll("response.reasoning_text.", "response.reasoning."),
  ),
  onEvents("responses/sequence-number", "none at all", (draft) => {
    for (const event of draft.events) delete event.sequence_number;
    return true;
  }),
  onEvent("responses/sequence-number", "a text", any, (event, draft) => {
    draft.renumbers = false;
    event.sequence_number = String(event.sequence_number);
  }),
  onEvents("responses/sequence", "from 1 on", (draft) => {
    draft.renumbers = false;
    for (const event of draft.events) event.sequence_number = Number(event.sequence_number) + 1;
    return true;
  }),
  onEvent("responses/sequence", "a number twice", middle, (event, draft) => {
    draft.renumbers = false;
    event.sequence_number = Number(event.sequence_number) - 1;
  }),
  onEvent("responses/sequence", "an event is lost", middle, (event, draft) => {
    // OpenAI's own errors skip a number.
    if (draft.events[draft.events.indexOf(event) + 1]?.type === "error") return false;
    draft.renumbers = false;
    remove(draft, event);
    return true;
  }),
  onEvent(
    "responses/obfuscation",
    "other characters",
    /delta$/,
    (event) => "obfuscation" in event && (event.obfuscation = "???"),
  ),
  onEvent(
    "responses/obfuscation",
    "of another length",
    /delta$/,
    (event) => "obfuscation" in event && (event.obfuscation = `${String(event.obfuscation).slice(1)}xx`),
  ),
  onEvents("responses/obfuscation", "though it was not wanted", (draft) => {
    if (draft.request) draft.request.stream_options = { include_obfuscation: false };
    return ofType(draft, any).some((event) => "obfuscation" in event);
  }),
  onEvent("responses/created-first", "no response.created", /created$/, (event, draft) => remove(draft, event)),
  onEvent("responses/created-first", "response.in_progress first", /created$/, (event, draft) => {
    remove(draft, event);
    draft.events.splice(1, 0, event);
  }),
  onEvents("responses/in-progress", "no response.in_progress", (draft) => {
    for (const event of ofType(draft, /in_progress$/)) remove(draft, event);
    return ofType(draft, middle).length > 0;
  }),
  onEvents("responses/last-event", "cut somewhere", (draft, random) => {
    draft.events.splice(between(1, draft.events.length - 1, random));
    return !draft.events.some(({ type }) => type === "error");
  }),
  onEvents("responses/last-event", "no last event", (draft) => {
    const [last] = ofType(draft, ends);
    if (last) remove(draft, last);
    return !draft.events.some(({ type }) => type === "error");
  }),
  onEvent("responses/after-end", "twice", ends, (event, draft) => insert(draft, event, { ...event })),
  onEvent("responses/after-end", "an item behind the end", /output_item\.done$/, (event, draft) => {
    remove(draft, event);
    draft.events.push(event);
  }),
  onEvent("responses/one-response", "another id at the end", ends, (event) => ((event.response as Json).id = "resp_2")),
  onEvent(
    "responses/one-response",
    "another time",
    ends,
    (event) => ((event.response as Json).created_at = 1_600_000_000),
  ),
  onEvent("responses/one-response", "another model", ends, (event) => ((event.response as Json).model = "other")),
  onEvent(
    "responses/event-status",
    "in_progress at the end",
    ends,
    (event) => ((event.response as Json).status = "in_progress"),
  ),
  onEvent(
    "responses/event-status",
    "completed at the start",
    /created$/,
    (event) => ((event.response as Json).status = "completed"),
  ),
  onEvent("responses/event-status", "none", /in_progress$/, (event) => delete (event.response as Json).status),
  onEvent(
    "responses/usage-last",
    "usage from the start",
    /created$/,
    (event, draft) => ((event.response as Json).usage = finalResponse(draft)?.usage),
  ),
  onEvent("responses/error", "no message", /^error$/, (event) => delete (event.error as Json).message),
  onEvent("responses/error", "a code that is a number", /^error$/, (event) => ((event.error as Json).code = 500)),
  onEvent("responses/error", "a text", /^error$/, (event) => (event.error = "failed")),
  onEvents("responses/error-form", "chat's form", (draft) => {
    const [error] = ofType(draft, /^error$/);
    if (error) delete error.type;
    return error !== undefined;
  }),
  onEvents("responses/error-form", "FastAPI's detail", (draft) => {
    draft.events.push({ detail: "Internal Server Error" });
    return true;
  }),
  onEvents("responses/call-then-failed", "a failure at the end", (draft) => {
    const [end] = ofType(draft, /^response\.completed$/);
    const called = ofType(draft, /output_item\.done$/).some(({ item }) =>
      /tool_call|function_call/.test(String((item as Json).type)),
    );
    if (!end || !called) return false;
    end.type = "response.failed";
    Object.assign(end.response as Json, { status: "failed", error: { code: "server_error", message: "x" } });
    return true;
  }),
  onEvents("responses/call-then-failed", "a cut", (draft) => {
    const [end] = ofType(draft, ends);
    const called = ofType(draft, /output_item\.done$/).some(({ item }) =>
      /tool_call|function_call/.test(String((item as Json).type)),
    );
    if (end) remove(draft, end);
    return called && end !== undefined;
  }),
  onEvent(
    "spec/event",
    "no content_index",
    /^response\.(content_part|output_text)/,
    (event) => delete event.content_index,
  ),
  onEvent("spec/event", "no item_id", /delta$/, (event) => delete event.item_id),
  onEvent("spec/event", "a delta that is an object", /delta$/, (event) => (event.delta = { text: event.delta })),
  onEvent("spec/event", "no logprobs", /output_text\.(delta|done)$/, (event) => delete event.logprobs),
  onEvent(
    "spec/event",
    "no annotations",
    /content_part\.done$/,
    (event) => (event.part as Json).annotations !== undefined && delete (event.part as Json).annotations,
  ),
  onEvent("spec/event", "no part", /part\.(added|done)$/, (event) => delete event.part),
  onEvent("spec/event", "no item", /output_item\.(added|done)$/, (event) => delete event.item),
  onEvent("spec/event", "a response without tools", /created$/, (event) => delete (event.response as Json).tools),
  onEvents("spec/event", "usage without its details", (draft) => {
    const usage = isWhole(draft) ? (finalResponse(draft)?.usage as Json | undefined) : undefined;
    return usage !== undefined && delete usage.output_tokens_details;
  }),
];
