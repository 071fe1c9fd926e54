import type * as z from "zod";
import { chatChunk, chatCompletion, errorBody } from "../../../../wire/apis/chat/schema.ts";
import { completion } from "../../../../wire/apis/completions/schema.ts";
import { embeddings } from "../../../../wire/apis/embeddings/schema.ts";
import { openaiModel, openaiModelList } from "../../../../wire/apis/models/schema.ts";
import { type Exchange, vendorOf } from "../exchange.ts";
import { atBodyPath, atPath } from "../place.ts";
import type { BodyRule, StreamRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView } from "../view.ts";
import { schemaViolation } from "./validate.ts";

const source = "OpenAI's OpenAPI document";
/** Typed clients read a missing nullable member, such as `logprobs.refusal`, as null; validation fails. */
const breaks = [
  "clients that validate answers against the specification",
  "typed clients (Go, Rust, Java, C#), where a value has another type",
];

export const specStreamRules: readonly StreamRule[] = [
  {
    id: "spec/chunk",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every chunk matches the schema of the specification.",
    source,
    breaks,
    judges: "stream",
    endpoints: ["chat", "completions"],
    *judge(view) {
      const schema = view.exchange.endpoint === "chat" ? chatChunk : completion;
      for (const chunk of view.chunks) {
        if ("error" in chunk.value) continue;
        const violation = schemaViolation(schema, chunk.value);
        if (violation) yield atPath(chunk, violation);
      }
    },
  },
];

export const specBodyRules: readonly BodyRule[] = [
  {
    id: "spec/body",
    severity: "error",
    concern: "text is lost or wrong",
    says: "A body matches the schema of the specification.",
    source,
    breaks,
    judges: "body",
    shown: (view) => schemaOf(view) !== undefined && isObject(view.value),
    *judge(view) {
      const schema = schemaOf(view);
      const violation = schema && schemaViolation(schema, view.value);
      if (violation) yield atBodyPath(view, violation);
    },
  },
];

function schemaOf({ exchange }: BodyView): z.ZodType | undefined {
  if (vendorOf(exchange) !== "OpenAI") return undefined;
  return exchange.response.status >= 400 ? errorBody : schemas[exchange.endpoint];
}

/** The Responses API is judged in ../responses/. */
const schemas: Partial<Readonly<Record<Exchange["endpoint"], z.ZodType>>> = {
  chat: chatCompletion,
  completions: completion,
  models: openaiModelList,
  model: openaiModel,
  embeddings,
};
