import { expect, test } from "vitest";
import * as z from "zod";
import { isObject } from "../../wire/core/json.ts";
import { chatParameters } from "../../wire/apis/chat/request.ts";
import { geminiRequest } from "../../wire/apis/gemini/request-schema.ts";
import { messageRequest } from "../../wire/apis/messages/request-schema.ts";
import { ollamaChatRequest } from "../../wire/apis/ollama/request-schema.ts";
import type { RequestParameter } from "../../wire/apis/request/parameter.ts";
import { responsesParameters } from "../../wire/apis/responses/parameters.ts";
import { answerFactsOf } from "./answer-facts.ts";
import { type Api, apis } from "./facts.ts";
import { requestFactsOf } from "./request-facts.ts";

/** Those of OpenAI's own. */
function ofParameters(
  parameters: readonly Pick<RequestParameter, "name" | "origin" | "treatment" | "shape">[],
): z.ZodObject {
  const own = parameters.filter(({ origin, treatment }) => origin === "openai" && treatment !== "refused");
  return z.object(Object.fromEntries(own.map(({ name, shape }) => [name, shape])));
}

const schemas: Readonly<Record<Api, z.ZodObject>> = {
  chat: ofParameters(chatParameters),
  responses: ofParameters(responsesParameters),
  messages: messageRequest,
  ollama: ollamaChatRequest,
  gemini: geminiRequest,
};

/** Members without a fact. What they refer to is stored at the vendor, is a product of its own, or no more than another spelling. */
const without: Readonly<Record<Api, string>> = {
  chat: "continuous_usage_stats",
  responses:
    "previous_response_id conversation background background_options generate access_programs image presence_penalty frequency_penalty include_usage continuous_usage_stats completion_window continuation_id generate_summary comparison_response_id prewarm cyber context_compression",
  messages:
    "output_format container mcp_servers speed fallbacks fallback_credit_token billing_policy user_profile_id workspace_id thread compaction betas block_binding prefix_mismatch_behavior task_budget",
  ollama: "_debug_render_only",
  gemini:
    "cachedContent store model includeServerSideToolInvocations enableEnhancedCivicAnswers speechConfig imageConfig responseFormat audioTranscriptionConfig translationConfig",
};

function membersIn(schema: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(schema)) for (const one of schema) membersIn(one, found);
  if (!isObject(schema)) return found;
  for (const [name, value] of Object.entries(schema)) {
    if (name === "properties" && isObject(value)) for (const member of Object.keys(value)) found.add(member);
    membersIn(value, found);
  }
  return found;
}

function namesIn(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const one of value) namesIn(one, found);
  if (!isObject(value)) return found;
  for (const [name, member] of Object.entries(value)) namesIn(member, found.add(name));
  return found;
}

test.each(apis)("every member of the requests of %s is in a fact, or is said to have none", (api) => {
  const members = membersIn(z.toJSONSchema(schemas[api], { unrepresentable: "any", io: "input" }));
  const facts = [...requestFactsOf(api, "m"), ...answerFactsOf(api, api, "m")];
  const names = namesIn(facts.map(({ body }) => body));
  expect([...members].filter((name) => !names.has(name)).toSorted()).toEqual(without[api].split(" ").toSorted());
});
