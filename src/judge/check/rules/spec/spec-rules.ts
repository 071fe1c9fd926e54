import { chatChunk, chatCompletion, errorBody } from "../../../../wire/apis/chat/schema.ts";
import { completion } from "../../../../wire/apis/completions/schema.ts";
import { embeddings } from "../../../../wire/apis/embeddings/schema.ts";
import { errorResponse, modelInfo, tokenCount } from "../../../../wire/apis/messages/schema.ts";
import { openaiModel, openaiModelList } from "../../../../wire/apis/models/schema.ts";
import { responseEvents } from "../../../../wire/apis/responses/event-schema.ts";
import { inputTokenCount } from "../../../../wire/apis/responses/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type Exchange, vendorOf } from "../exchange.ts";
import { atBodyPath, atPath } from "../place.ts";
import { streamState } from "../responses/stream-state.ts";
import type { Rules } from "../rule.ts";
import type { BodyView, StreamView } from "../view.ts";
import { type Structure, structuralRules, type StructuredValue } from "./structure.ts";

/** Returns paths as the members of one rule. */
function of(rule: string, ...paths: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(paths.map((path) => [path, rule]));
}

const chunkMembers = {
  id: "stream/id",
  object: "stream/object",
  created: "stream/created",
  model: "stream/model",
  system_fingerprint: "stream/fingerprint",
  service_tier: "stream/service-tier",
  ...of("stream/choices", "choices", "choices[]"),
  "choices[].finish_reason": "finish/value",
};
const errorMembers = ["error", "error.message", "error.type", "error.param", "error.code"];

const chunks = {
  chat: {
    schema: chatChunk,
    members: {
      ...chunkMembers,
      "choices[].delta": "delta/object",
      "choices[].delta.content": "delta/content-type",
      "choices[].delta.refusal": "delta/refusal-type",
    },
    rest: "spec/chunk",
  },
  completions: {
    // The specification does not describe it, and servers send it.
    schema: completion.extend({ service_tier: chatChunk.shape.service_tier }),
    members: { ...chunkMembers, "choices[].text": "text/present" },
    rest: "spec/chunk",
  },
  error: { schema: errorBody, members: of("error/shape", ...errorMembers) },
} as const satisfies Readonly<Record<string, Structure>>;

/** What the schemas say about the chunks of a stream. Source: OpenAI's OpenAPI document; recordings. */
const chunkRules: Rules<StreamView> = structuralRules(Object.values(chunks), (view) => {
  const { endpoint } = view.exchange;
  if (endpoint !== "chat" && endpoint !== "completions") return [];
  return view.chunks.map((chunk): StructuredValue => {
    const structure = "error" in chunk.value ? chunks.error : chunks[endpoint];
    return { structure, value: chunk.value, at: (violation) => atPath(chunk, violation) };
  });
});

const events: ReadonlyMap<unknown, Structure> = new Map(
  [...responseEvents].map(([type, schema]) => [type, { schema, members: {}, rest: "spec/event" }]),
);

const eventRules: Rules<StreamView> = structuralRules([...events.values()], (view) =>
  view.exchange.endpoint !== "responses" && view.exchange.endpoint !== "response-socket"
    ? []
    : streamState(view).events.flatMap(({ chunk, type, value }): readonly StructuredValue[] => {
        const structure = events.get(type);
        return structure ? [{ structure, value, at: (violation) => atPath(chunk, violation, `${type}: `) }] : [];
      }),
);

export const specStreamRules: Rules<StreamView> = { ...chunkRules, ...eventRules };

const answerMembers = { id: "body/id", object: "body/object", created: "body/created", model: "body/model" };
const modelMembers = ["id", "object", "created", "owned_by"];
const anthropicModel: Structure = { schema: modelInfo, members: {}, rest: "messages/model" };

/** The whole answers of endpoints. The Responses API and messages have rules of their own. */
const answers: Partial<Readonly<Record<Exchange["endpoint"], Structure>>> = {
  chat: {
    schema: chatCompletion,
    members: {
      ...answerMembers,
      ...of("body/message", "choices[].message", "choices[].message.role"),
      "choices[].message.content": "body/content",
    },
    rest: "spec/body",
  },
  completions: { schema: completion, members: { ...answerMembers, "choices[].text": "body/text" }, rest: "spec/body" },
  models: {
    schema: openaiModelList,
    members: {
      ...of("models/list", "the value", "object", "data"),
      ...of("models/model", ...modelMembers.map((name) => `data[].${name}`)),
    },
    rest: "spec/body",
  },
  model: { schema: openaiModel, members: of("models/model", ...modelMembers), rest: "spec/body" },
  embeddings: { schema: embeddings, members: {}, rest: "spec/body" },
  "response-tokens": { schema: inputTokenCount, members: {}, rest: "responses/input-tokens" },
  "message-tokens": { schema: tokenCount, members: {}, rest: "messages/count" },
  "anthropic-model": anthropicModel,
};

const failures: Partial<Readonly<Record<ReturnType<typeof vendorOf>, Structure>>> = {
  OpenAI: { schema: errorBody, members: of("failure/members", ...errorMembers), rest: "spec/body" },
  Anthropic: {
    schema: errorResponse,
    members: {
      ...of("messages/failure-shape", "type", "error", "error.type", "error.message"),
      request_id: "messages/failure-request-id",
    },
  },
};

/** What the schemas say about whole answers and errors. Source: OpenAI's OpenAPI document; Anthropic's documentation; recordings. */
export const specBodyRules: Rules<BodyView> = structuralRules(
  [...Object.values(answers), ...Object.values(failures)],
  (view) => {
    const { endpoint, response } = view.exchange;
    if (!isObject(view.value) && !(endpoint === "models" && Array.isArray(view.value))) return [];
    // ../messages/body-rules.ts judges the list itself.
    if (endpoint === "anthropic-models" && response.status < 400 && isObject(view.value)) {
      const { data } = view.value;
      return (Array.isArray(data) ? data.filter(isObject) : []).map((value, index) => ({
        structure: anthropicModel,
        value,
        at: (violation) => atBodyPath(view, { ...violation, keys: ["data", index, ...violation.keys] }),
      }));
    }
    const structure = response.status >= 400 ? failures[vendorOf(view.exchange)] : answers[endpoint];
    // ../body/failure.ts judges an error in another form.
    if (!structure || (structure === failures.OpenAI && !("error" in view.value))) return [];
    return [{ structure, value: view.value, at: (violation) => atBodyPath(view, violation) }];
  },
);
