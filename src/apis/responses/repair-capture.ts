import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { toolCallId } from "../ids.ts";
import type { AnswerContext } from "../port.ts";
import type { RepairedCapture, RepairOptions } from "../repaired-capture.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import type { Repair } from "../tolerant/repairs.ts";
import { ResponseReader } from "./answer-reader.ts";
import { capturedRequest } from "./captured-request.ts";
import { writeCapturedBody, writeCapturedEvents } from "./capture-writer.ts";
import { responseForms } from "./form.ts";
import { ResponseFrame } from "./response-frame.ts";
import { writeResponse } from "./response-writer.ts";
import { responsesVoice } from "./responses-voice.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

/**
 * Reads a captured answer of the Responses API, however broken, and writes it anew. An answer of OpenAI's own that is whole keeps what it
 * says and is written in OpenAI's form; any other is told by the waist's events, as a server would tell it.
 */
export function repairResponseCapture(capture: string, options: Omit<RepairOptions, "from">): RepairedCapture {
  const { random, now, profile, request } = options;
  const seen: JsonObject[] = [];
  const reader = new ResponseReader(
    { newCallId: () => toolCallId(random), frameLimit: Number.POSITIVE_INFINITY },
    (event) => seen.push(event),
  );
  const isBody = /^\s*\{/.test(capture);
  const events = isBody ? readResponseBody(capture, reader) : [...reader.push(capture), ...reader.end()];
  const repairs = reader.repairs.list();
  const last = events.at(-1);
  const end = last?.type === "end" ? last.end : ({ kind: "done" } as const);
  const response = seen.map((event) => event["response"]).findLast(isObject);
  if (
    responseForms[profile.name].copiesCaptures &&
    isOpenAis(response) &&
    isWhole(seen) &&
    seen.every(isComplete) &&
    !repairs.some(isStructural)
  ) {
    if (isBody) return { body: writeCapturedBody(response, request), repairs, end };
    // Some recorders end a file with a blank line of their own.
    const blank = /(?:\r?\n){2}((?:\r?\n)*)$/.exec(capture)?.[1] ?? "";
    const body = writeCapturedEvents(seen, request, random) + blank.replaceAll("\r", "");
    return { body, repairs, end };
  }
  const context = contextOf(response, { profile, random, created: now, settings: {} });
  const asked = capturedRequest(response, events);
  if (isBody) {
    const body = "failure" in end ? responsesVoice.writeFailure(end.failure, profile, "").body : null;
    return { body: body ?? writeResponse(accumulate(events), context, asked), repairs, end };
  }
  const writer = new ResponseStreamWriter(new ResponseFrame(context, asked, "stream"));
  return { body: writer.write(events as GenerationEvent[]), repairs, end };
}

/** OpenAI's responses have members that the specification of others who speak it has not. */
function isOpenAis(response: JsonObject | undefined): response is JsonObject {
  return (nonEmpty(response?.["id"]) ?? "").startsWith("resp_") && response !== undefined && "user" in response;
}

/** The last event is one that ends a response, and each has the number after the one before it. */
function isWhole(events: readonly JsonObject[]): boolean {
  const isNumbered = events.every((event, at) => at === 0 || numberOf(event) === numberOf(events[at - 1]) + 1);
  return isNumbered && /^(error|response\.(completed|incomplete|failed))$/.test(String(events.at(-1)?.["type"]));
}

/**
 * Whether an event has the members by which clients place it. Where one is missing, as in answers of imitators that have OpenAI's other
 * members, the answer is not copied but written from its events.
 */
function isComplete(event: JsonObject): boolean {
  const { type, response, item, part } = event;
  if (isObject(response)) {
    const isCounted = !/^response\.(completed|incomplete)$/.test(String(type)) || isObject(response["usage"]);
    return typeof response["status"] === "string" && isCounted;
  }
  const index = partIndices[/^response\.([a-z]+(_[a-z]+)?)/.exec(String(type))?.[1] ?? ""];
  if (index === undefined) return true;
  if (typeof event["output_index"] !== "number") return false;
  if (index === "item") return isObject(item) && isCompleteItem(item);
  if (nonEmpty(event["item_id"]) === undefined || (part !== undefined && !(isObject(part) && nonEmpty(part["type"]))))
    return false;
  return index === null || typeof event[index] === "number";
}

function isCompleteItem(item: JsonObject): boolean {
  const members = itemMembers[String(item["type"])] ?? [];
  return ["id", ...members].every(
    (name) => typeof item[name] === "string" && (item[name] !== "" || name === "arguments"),
  );
}

const itemMembers: Readonly<Record<string, readonly string[]>> = {
  message: ["status", "role"],
  function_call: ["status", "name", "call_id", "arguments"],
  custom_tool_call: ["name", "call_id"],
};

/** By what follows `response.` in an event's type: the member with the place of its part; null for none, "item" for a whole item. */
const partIndices: Readonly<Record<string, "item" | "content_index" | "summary_index" | null>> = {
  output_item: "item",
  content_part: "content_index",
  output_text: "content_index",
  refusal: "content_index",
  reasoning_text: "content_index",
  reasoning_summary: "summary_index",
  function_call: null,
  custom_tool: null,
};

function numberOf(event: JsonObject | undefined): number {
  return Number(event?.["sequence_number"]);
}

/** Whether a repair is of what is said, not of how its bytes were framed. */
function isStructural({ id }: Repair): boolean {
  return structural.has(id);
}

const structural: ReadonlySet<string> = new Set([
  "no-created",
  "no-completed",
  "sequence",
  "item-index",
  "item-added",
  "item-done",
  "item-order",
  "whole-text",
  "call-id",
  "nameless-call",
  "no-arguments",
  "no-event-name",
  "other-event-name",
  "bare-json",
  "json-body",
]);

function contextOf(response: JsonObject | undefined, rest: Omit<AnswerContext, "model">): AnswerContext {
  const created = response?.["created_at"];
  const completed = response?.["completed_at"];
  const time = typeof created === "number" ? Math.floor(created) : rest.created;
  return {
    ...rest,
    created: time,
    now: () => (typeof completed === "number" ? completed : time),
    model: nonEmpty(response?.["model"]) ?? "unknown",
  };
}
