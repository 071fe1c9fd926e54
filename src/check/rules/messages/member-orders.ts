import { isObject } from "../../../generation/json.ts";
import { membersOffence } from "../profile/member-order.ts";
import type { Json } from "../view.ts";

/** The members of each object in Anthropic's order; those that may be absent with a `?` behind. Source: recordings of May to August 2026. */
const message = [
  "model",
  "id",
  "type",
  "role",
  "content",
  "container?",
  "stop_reason",
  "stop_sequence",
  "stop_details",
  "usage",
  "context_management?",
];
const usage = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "cache_creation",
  "output_tokens",
  "output_tokens_details?",
  "service_tier",
  "inference_geo",
  "server_tool_use?",
  "iterations?",
];
const finalUsage = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
  "output_tokens_details?",
  "server_tool_use?",
  "iterations?",
];
const blocks: Readonly<Record<string, readonly string[]>> = {
  text: ["citations?", "type", "text"],
  thinking: ["type", "thinking", "signature"],
  redacted_thinking: ["type", "data"],
  tool_use: ["type", "id", "name", "input", "caller"],
};
const deltas: Readonly<Record<string, readonly string[]>> = {
  text_delta: ["type", "text"],
  thinking_delta: ["type", "thinking", "estimated_tokens?"],
  signature_delta: ["type", "signature"],
  input_json_delta: ["type", "partial_json"],
  citations_delta: ["type", "citation"],
};
const events: Readonly<Record<string, readonly string[]>> = {
  message_start: ["type", "message"],
  content_block_start: ["type", "index", "content_block"],
  content_block_delta: ["type", "index", "delta"],
  content_block_stop: ["type", "index"],
  message_delta: ["type", "delta", "usage", "context_management?"],
  message_stop: ["type"],
  ping: ["type"],
};
const ending = ["stop_reason", "stop_sequence", "stop_details", "container?"];
const model = ["type", "id", "display_name", "created_at", "max_input_tokens?", "max_tokens?", "capabilities?"];

/** What is wrong with an event's members, at any depth; undefined when nothing is. `further`: others may stand among them. */
export function eventOffence(event: Json, further: boolean): string | undefined {
  const type = String(event.type);
  if (type === "error") return errorOffence(event, further);
  const wanted = events[type];
  if (!wanted) return undefined;
  const { message: started, content_block: block, delta, usage: counts } = event;
  return (
    membersOffence(event, wanted, further) ??
    (isObject(started) ? messageOffence(started, further) : undefined) ??
    (isObject(block) ? ofType(block, blocks, further) : undefined) ??
    (isObject(delta) ? deltaOffence(type, delta, further) : undefined) ??
    (isObject(counts) ? named("usage", membersOffence(counts, finalUsage, further)) : undefined)
  );
}

/** The same of a message. */
export function messageOffence(value: Json, further: boolean): string | undefined {
  const content = Array.isArray(value.content) ? value.content.filter(isObject) : [];
  const counts = isObject(value.usage) ? value.usage : {};
  return (
    named("message", membersOffence(value, message, further)) ??
    named("usage", membersOffence(counts, usage, further)) ??
    content.map((block) => ofType(block, blocks, further)).find((found) => found !== undefined)
  );
}

/** The same of an error. */
export function errorOffence(value: Json, further: boolean): string | undefined {
  const outer = membersOffence(value, ["type", "error", "request_id"], further);
  if (outer !== undefined) return outer;
  return isObject(value.error)
    ? membersOffence(value.error, ["type", "message"], further)
    : "an error that is no object";
}

/** The same of a list of models, or of one. */
export function modelsOffence(value: Json, further: boolean): string | undefined {
  if (!Array.isArray(value.data)) return membersOffence(value, model, further);
  const list = membersOffence(value, ["data", "has_more", "first_id", "last_id"], further);
  const models = value.data.filter(isObject).map((one) => named("model", membersOffence(one, model, further)));
  return list ?? models.find((found) => found !== undefined);
}

function deltaOffence(event: string, delta: Json, further: boolean): string | undefined {
  return event === "message_delta"
    ? named("delta", membersOffence(delta, ending, further))
    : ofType(delta, deltas, further);
}

function ofType(
  value: Json,
  wanted: Readonly<Record<string, readonly string[]>>,
  further: boolean,
): string | undefined {
  const type = String(value.type);
  const members = Object.hasOwn(wanted, type) ? wanted[type] : undefined;
  return members && named(type, membersOffence(value, members, further));
}

function named(what: string, found: string | undefined): string | undefined {
  return found === undefined ? undefined : `${what} with ${found}`;
}
