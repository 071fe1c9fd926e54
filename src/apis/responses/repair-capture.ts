import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { toolCallId } from "../ids.ts";
import type { AnswerContext } from "../port.ts";
import type { RepairedCapture, RepairOptions } from "../capture-form.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import type { Repair } from "../tolerant/repairs.ts";
import { capturedRequest } from "./captured-request.ts";
import { writeCapturedBody, writeCapturedEvents } from "./capture-writer.ts";
import { responsesErrorFormat } from "./errors.ts";
import { responseForms } from "./form.ts";
import { ResponseReader } from "./read.ts";
import { ResponseObject } from "./response-object.ts";
import { writeResponse } from "./response-writer.ts";
import { responseEvents } from "./schema.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

/**
 * Reads a captured answer of the Responses API, damaged or not, and writes it again. A complete answer of OpenAI keeps its content and is
 * written in OpenAI's form. Any other is written from the core's events, as a server would write it.
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
    // Some recorders add a blank line at the end of the file.
    const blank = /(?:\r?\n){2}((?:\r?\n)*)$/.exec(capture)?.[1] ?? "";
    const body = writeCapturedEvents(seen, request, random) + blank.replaceAll("\r", "");
    return { body, repairs, end };
  }
  const context = contextOf(response, { profile, random, created: now, settings: {} });
  const responseOptions = capturedRequest(response, events);
  if (isBody) {
    const body = "failure" in end ? responsesErrorFormat.writeFailure(end.failure, profile, "").body : null;
    return { body: body ?? writeResponse(accumulate(events), context, responseOptions), repairs, end };
  }
  const writer = new ResponseStreamWriter(new ResponseObject(context, responseOptions, "stream"));
  return { body: writer.write(events as GenerationEvent[]), repairs, end };
}

/** OpenAI's responses have members that the Open Responses specification does not have. */
function isOpenAis(response: JsonObject | undefined): response is JsonObject {
  return (nonEmpty(response?.["id"]) ?? "").startsWith("resp_") && response !== undefined && "user" in response;
}

/** The last event is one that ends a response, and each has the number after the one before it. */
function isWhole(events: readonly JsonObject[]): boolean {
  const isNumbered = events.every((event, at) => at === 0 || numberOf(event) === numberOf(events[at - 1]) + 1);
  return isNumbered && /^(error|response\.(completed|incomplete|failed))$/.test(String(events.at(-1)?.["type"]));
}

/**
 * Whether an event has the members by which clients place its content. If one is missing, as in answers of servers that imitate OpenAI,
 * the answer is not copied but written from its events.
 */
function isComplete(event: JsonObject): boolean {
  const { type, response, item, part } = event;
  if (isObject(response)) {
    const isCounted = !/^response\.(completed|incomplete)$/.test(String(type)) || isObject(response["usage"]);
    return typeof response["status"] === "string" && isCounted;
  }
  const described = responseEvents.get(type)?.shape;
  if (described === undefined) return true;
  const isPlaced = ["output_index", "content_index", "summary_index"].every(
    (name) => !(name in described) || typeof event[name] === "number",
  );
  if (!isPlaced) return false;
  if ("item" in described) return isObject(item) && isCompleteItem(item);
  if (nonEmpty(event["item_id"]) === undefined) return false;
  return part === undefined || (isObject(part) && nonEmpty(part["type"]) !== undefined);
}

/** The strings by which clients know an item, in addition to its id. */
const itemStrings: Readonly<Record<string, readonly string[]>> = {
  message: ["status", "role"],
  function_call: ["status", "name", "call_id", "arguments"],
  custom_tool_call: ["name", "call_id"],
};

/** Whether an item has these strings. Only arguments may be empty. */
function isCompleteItem(item: JsonObject): boolean {
  return ["id", ...(itemStrings[String(item["type"])] ?? [])].every(
    (name) => typeof item[name] === "string" && (item[name] !== "" || name === "arguments"),
  );
}

function numberOf(event: JsonObject | undefined): number {
  return Number(event?.["sequence_number"]);
}

/** Whether a repair changed the content, not only the framing of its bytes. */
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
