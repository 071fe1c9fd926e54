import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalResponseBody } from "../../legal/responses.ts";
import type { IllegalChange } from "../mutation.ts";
import { itemsOf, onItem, onPart, onResponse, type ResponseDraft, spoiledMember } from "./on-response.ts";
import type { Json } from "./stream-draft.ts";

const whole = ({ response }: ResponseDraft) => response;
const usage = ({ response }: ResponseDraft) => (response.usage as Json | null) ?? undefined;
const call = /^(function|custom_tool)_call$/;
const isWhole = ({ response }: ResponseDraft) => response.status === "completed";
const firstCall = ({ response }: ResponseDraft) => itemsOf(response, call)[0];
const message = ({ response }: ResponseDraft) => itemsOf(response, /^message$/)[0];
const thought = ({ response }: ResponseDraft) => itemsOf(response, /^reasoning$/)[0];

/** Changes the count of an input's tokens. */
function onCount(name: string, change: (value: Json) => unknown): IllegalChange {
  return {
    rule: "responses/input-tokens",
    name,
    make(seed) {
      const { exchange } = legalResponseBody(seed);
      if (exchange.endpoint !== "response-tokens") return undefined;
      const value = JSON.parse(exchange.response.body) as Json;
      change(value);
      return judge({ ...exchange, response: { ...exchange.response, body: JSON.stringify(value) } }).findings;
    },
  };
}

/** A response as it ended. */
export const responseMutations: readonly IllegalChange[] = [
  ...spoiledMember("responses/id", "id", whole, ["", null, 7]),
  ...spoiledMember("responses/object", "object", whole, ["chat.completion", null]),
  ...spoiledMember("responses/created", "created_at", whole, ["2026-01-01", null, 1.5, 0, 1_700_000_000_000]),
  ...spoiledMember("responses/model", "model", whole, ["", null]),
  ...[{ cache_missed_tokens: 7 }, { reason: "tools_changed" }].map((found) =>
    onResponse("responses/diagnostics", `a miss with ${Object.keys(found).join()} only`, ({ response }) => {
      response.prompt_cache_diagnostics = { type: "cache_miss", ...found };
      return true;
    }),
  ),
  ...[{ type: "cache_lost" }, { type: "cache_miss", cache_missed_tokens: 7, reason: "weather_changed" }].map((found) =>
    onResponse("responses/diagnostics-known", `the type ${found.type}`, ({ response }) => {
      response.prompt_cache_diagnostics = found;
      return true;
    }),
  ),
  ...spoiledMember("responses/end", "status", whole, ["in_progress", "done", null]),
  onResponse("responses/end", "incomplete without a reason", (draft) => {
    if (draft.response.status !== "incomplete") return false;
    draft.response.incomplete_details = null;
    return true;
  }),
  onResponse("responses/end", "chat's reason", (draft) => {
    if (draft.response.status !== "incomplete") return false;
    draft.response.incomplete_details = { reason: "length" };
    return true;
  }),
  onResponse("responses/end", "a reason though it is completed", (draft) => {
    if (!isWhole(draft)) return false;
    draft.response.incomplete_details = { reason: "max_output_tokens" };
    return true;
  }),
  onResponse("responses/end", "an error though it is completed", (draft) => {
    if (!isWhole(draft)) return false;
    draft.response.error = { code: "server_error", message: "x" };
    return true;
  }),
  onResponse("responses/end", "failed without an error", (draft) => {
    if (draft.response.status !== "failed") return false;
    draft.response.error = null;
    return true;
  }),
  ...spoiledMember("responses/output", "output", whole, [null, {}]),
  onResponse("responses/output", "nothing", (draft) => {
    if (!isWhole(draft) || (draft.response.output as Json[]).length === 0) return false;
    draft.response.output = [];
    return true;
  }),
  onItem("responses/output", "an item without a type", /./, (item) => delete item.type),
  onItem("responses/item-id", "none", /./, (item) => delete item.id),
  onItem("responses/item-id", "an empty one", /./, (item) => (item.id = "")),
  onResponse("responses/item-id", "one for all", ({ response }) => {
    const items = itemsOf(response, /./);
    for (const item of items) item.id = "msg_1";
    return items.length > 1;
  }),
  ...spoiledMember("responses/message", "role", message, ["user", null]),
  ...spoiledMember("responses/message", "content", message, ["Hello", null]),
  onPart("responses/message", "no annotations", "output_text", (part) => delete part.annotations),
  onPart("responses/message", "null text", "output_text", (part) => (part.text = null)),
  onPart("responses/message", "chat's part", "output_text", (part) => (part.type = "text")),
  onPart("responses/message", "a refusal in text", "refusal", (part) => delete part.refusal),
  ...spoiledMember("responses/call", "call_id", firstCall, ["", null, 7]),
  ...spoiledMember("responses/call", "name", firstCall, ["", null]),
  onItem("responses/call", "arguments as an object", /^function_call$/, (item) => (item.arguments = {})),
  onItem("responses/call", "a custom call with arguments", /^custom_tool_call$/, (item) => {
    item.arguments = item.input;
    delete item.input;
  }),
  onResponse("responses/call", "one call_id for all", ({ response }) => {
    const calls = itemsOf(response, call);
    for (const item of calls) item.call_id = "call_1";
    return calls.length > 1;
  }),
  onItem(
    "responses/arguments",
    "cut",
    /^function_call$/,
    (item) => item.status === "completed" && (item.arguments = '{"city":'),
  ),
  onItem(
    "responses/arguments",
    "no object",
    /^function_call$/,
    (item) => item.status === "completed" && (item.arguments = '"x"'),
  ),
  onItem(
    "responses/arguments",
    "nothing",
    /^function_call$/,
    (item) => item.status === "completed" && (item.arguments = ""),
  ),
  ...spoiledMember("responses/reasoning", "summary", thought, [null, "x"]),
  onResponse("responses/reasoning", "thoughts as output_text", (draft) => {
    const item = thought(draft);
    if (item) item.content = [{ type: "output_text", text: "x" }];
    return item !== undefined;
  }),
  onResponse("responses/prefixes", "chat's id", ({ response }) => (response.id = "chatcmpl-1")),
  onItem("responses/prefixes", "a UUID for an item", /./, (item) => (item.id = "0e37df36-f698-11e6-8dd4-cb9ced3df976")),
  onItem(
    "responses/whole-items",
    "incomplete",
    /^(message|function_call)$/,
    (item, draft) => isWhole(draft) && (item.status = "incomplete"),
  ),
  onItem(
    "responses/whole-items",
    "no status",
    /^(message|function_call)$/,
    (item, draft) => isWhole(draft) && delete item.status,
  ),
  ...["tools", "temperature", "parallel_tool_calls", "metadata", "instructions", "incomplete_details", "error"].map(
    (name) => onResponse("spec/response", `no ${name}`, ({ response }) => delete response[name]),
  ),
  onPart("spec/response", "no logprobs", "output_text", (part) => delete part.logprobs),
  onResponse("spec/response", "a temperature in words", ({ response }) => (response.temperature = "warm")),
  onResponse("responses/usage", "null", (draft) => usage(draft) !== undefined && ((draft.response.usage = null), true)),
  onResponse("responses/usage", "none", (draft) => usage(draft) !== undefined && delete draft.response.usage),
  ...spoiledMember("responses/usage-type", "input_tokens", usage, [null, "7", -1]),
  ...spoiledMember("responses/usage-type", "input_tokens_details", usage, [null, {}]),
  ...spoiledMember("responses/usage-type", "output_tokens_details", usage, [null, {}]),
  ...spoiledMember("responses/usage-sum", "total_tokens", usage, [1]),
  onResponse("responses/usage-details", "more cached than there are", (draft) => {
    const counts = usage(draft);
    if (counts) counts.input_tokens_details = { cached_tokens: 1000 };
    return counts !== undefined;
  }),
  onResponse("responses/usage-details", "more thoughts than tokens", (draft) => {
    const counts = usage(draft);
    if (counts) counts.output_tokens_details = { reasoning_tokens: 1000 };
    return counts !== undefined;
  }),
  onCount("no object", (value) => delete value.object),
  onCount("another object", (value) => (value.object = "response")),
  onCount("no count", (value) => delete value.input_tokens),
  onCount("a count as text", (value) => (value.input_tokens = "11")),
  onResponse("responses/usage-counted", "nothing counted", (draft) => {
    const counts = usage(draft);
    if (counts) Object.assign(counts, { input_tokens: 0, output_tokens: 0, total_tokens: 0 });
    return counts !== undefined;
  }),
  onResponse("responses/usage-zero", "no tokens for an answer", (draft) => {
    const counts = usage(draft);
    if (counts) Object.assign(counts, { output_tokens: 0, total_tokens: counts.input_tokens });
    return counts !== undefined && firstCall(draft) !== undefined;
  }),
];
