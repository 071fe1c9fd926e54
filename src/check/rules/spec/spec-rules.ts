import type * as z from "zod";
import { chatChunk, chatCompletion, failure } from "../../../apis/chat/schema.ts";
import { completion } from "../../../apis/completions/schema.ts";
import { embeddings } from "../../../apis/embeddings/schema.ts";
import { model, modelList } from "../../../apis/models/schema.ts";
import { type Exchange, vendorOf } from "../exchange.ts";
import { atMember } from "../place.ts";
import type { BodyRule, StreamRule } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { type BodyView } from "../view.ts";
import { atName } from "../body/body-place.ts";
import { specOffence } from "./validate.ts";

const source = "OpenAI's OpenAPI document";
/** Typed clients do not break on a missing nullable member, such as `logprobs.refusal`: they read null. Validation does. */
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
        const offence = specOffence(schema, chunk.value);
        if (offence) yield atMember(chunk, offence.member, `${offence.path} ${offence.found}`);
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
      const offence = schema && specOffence(schema, view.value);
      if (offence) yield atName(view, offence.member, `${offence.path} ${offence.found}`);
    },
  },
];

function schemaOf({ exchange }: BodyView): z.ZodType | undefined {
  if (vendorOf(exchange) !== "OpenAI") return undefined;
  return exchange.response.status >= 400 ? failure : schemas[exchange.endpoint];
}

/** Responses are judged in ../responses/. */
const schemas: Partial<Readonly<Record<Exchange["endpoint"], z.ZodType>>> = {
  chat: chatCompletion,
  completions: completion,
  models: modelList,
  model,
  embeddings,
};
