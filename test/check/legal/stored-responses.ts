import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import type { JsonValue } from "../../../src/wire/apis/json-text.ts";
import type { Profile } from "../../../src/wire/apis/profile.ts";
import { responseBodyText } from "../../../src/wire/apis/responses/form.ts";
import { ResponseIds } from "../../../src/wire/apis/responses/ids.ts";
import { compactedItems, storedInputItems } from "../../../src/wire/apis/responses/state/input-items.ts";
import { between, oneOf } from "../random.ts";

type Json = Record<string, unknown>;

const created = 1_790_000_000;
const json = { "content-type": "application/json", "x-request-id": "req_1" };

/** What is told about a stored response, or made of a history: one of the answers that are neither a response nor an error. */
export function aboutStored(profile: Profile, random: () => number): Exchange {
  const id = new ResponseIds(random).response(created);
  const input = inputOf(random);
  return oneOf(
    [
      () => itemsListed(id, input, profile, random),
      () => deleted(id, profile),
      () => compacted(input, profile, random),
    ],
    random,
  )();
}

/** A request's input: a text, or items of several kinds. */
function inputOf(random: () => number): unknown {
  const all: Json[] = [
    { role: "user", content: "Hi" },
    {
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "Hello", annotations: [], logprobs: [] }],
    },
    { type: "function_call", status: "completed", call_id: "call_1", name: "f", arguments: "{}" },
    { type: "function_call_output", status: "completed", call_id: "call_1", output: "seen" },
  ];
  return random() < 0.3 ? "Hi" : all.slice(0, between(1, all.length, random));
}

/** `GET /responses/{id}/input_items`. */
export function itemsListed(id: string, input: unknown, profile: Profile, random: () => number): Exchange {
  const data = storedInputItems(input, new Map(), { responseId: id, created, random });
  const [first, last] = [data[0], data.at(-1)];
  const list = {
    object: "list",
    data,
    first_id: first?.["id"] ?? null,
    has_more: false,
    last_id: last?.["id"] ?? null,
  };
  return answered("response-items", "GET", `/v1/responses/${id}/input_items`, list, profile);
}

/** `DELETE /responses/{id}`. */
export function deleted(id: string, profile: Profile): Exchange {
  const value = { id, object: "response", deleted: true };
  return answered("response-deletion", "DELETE", `/v1/responses/${id}`, value, profile);
}

/** `POST /responses/compact`. */
export function compacted(input: unknown, profile: Profile, random: () => number): Exchange {
  const ids = new ResponseIds(random);
  const id = ids.response(created);
  const items = storedInputItems(input, new Map(), { responseId: id, created, random });
  const value = {
    id,
    object: "response.compaction",
    created_at: created,
    output: [
      ...items.filter(({ role }) => role === "user"),
      { id: ids.item("cmp_", created), type: "compaction", encrypted_content: compactedItems(items) },
    ],
    usage: {
      input_tokens: 40,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 40,
    },
  };
  const { request, ...rest } = answered("response-compaction", "POST", "/v1/responses/compact", value, profile);
  return { ...rest, request: { ...request, body: { model: "m", input } } };
}

function answered(
  endpoint: Exchange["endpoint"],
  method: string,
  path: string,
  value: Json,
  profile: Profile,
): Exchange {
  const body = responseBodyText(value as JsonValue, profile);
  return { endpoint, request: { method, path }, response: { status: 200, headers: json, body, complete: true } };
}

/** A stream as it comes by WebSocket: each event a message, without comments and without the mark of the end. */
export function bySocket({ request, response }: Exchange): Exchange {
  const messages = response.body
    .split("\n\n")
    .flatMap((frame) => /(?:^|\n)(data: \{[^]*)$/.exec(frame)?.[1] ?? [])
    .map((data) => `${data}\n\n`);
  return {
    endpoint: "response-socket",
    request: { method: "GET", path: "/v1/responses", ...(request.body && { body: request.body }) },
    response: { status: 101, headers: null, body: messages.join(""), complete: response.complete },
  };
}

/** What refuses a request by WebSocket. */
export function refusedBySocket(code: string | null, message: string): Exchange {
  const error = { message, type: "invalid_request_error", param: "previous_response_id", code };
  return {
    endpoint: "response-socket-error",
    request: { method: "GET", path: "/v1/responses", body: { model: "m", input: "Hi" } },
    response: {
      status: 101,
      headers: null,
      body: JSON.stringify({ type: "error", status: 400, error }),
      complete: true,
    },
  };
}
