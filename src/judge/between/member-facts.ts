import type { Api, Json } from "./facts.ts";
import { weather } from "./fact-values.ts";

/** Members that only their own API has, each in a request of its own. Some need a tool, or a header of a beta. */
interface MemberFact {
  readonly body: Json;
  readonly headers?: Readonly<Record<string, string>>;
}

const cacheOptions = { mode: "implicit", ttl: "30m" };
const generation = (name: string, value: unknown): Json => ({ generationConfig: { [name]: value } });
const beta = (name: string): Readonly<Record<string, string>> => ({ "anthropic-beta": name });

export const memberFacts: Readonly<Record<Api, Readonly<Record<string, MemberFact>>>> = {
  chat: {
    functions: { body: { functions: [weather], function_call: "auto" } },
    user: { body: { user: "user-17" } },
    prompt_cache_options: { body: { prompt_cache_options: cacheOptions } },
    prompt_cache_retention: { body: { prompt_cache_retention: "24h" } },
    max_tokens: { body: { max_tokens: 555 } },
    stream_options: { body: { stream: true, stream_options: { include_usage: true, include_obfuscation: false } } },
    allowed_tools: {
      body: {
        tools: ["a", "b"].map((name) => ({ type: "function", function: { name } })),
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "b" } }] },
        },
      },
    },
  },
  responses: {
    stream_options: { body: { stream: true, stream_options: { include_obfuscation: false } } },
    max_tool_calls: { body: { max_tool_calls: 3 } },
    user: { body: { user: "user-17" } },
    prompt_cache_options: { body: { prompt_cache_options: cacheOptions } },
    prompt_cache_retention: { body: { prompt_cache_retention: "24h" } },
    truncation: { body: { truncation: "auto" } },
    context_management: { body: { context_management: [{ type: "compaction", compact_threshold: 100_000 }] } },
    client_metadata: { body: { client_metadata: { run: "17" } } },
  },
  messages: {
    context_management: {
      body: { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
      headers: beta("context-management-2025-06-27"),
    },
    inference_geo: { body: { inference_geo: "us" } },
    diagnostics: { body: { diagnostics: { previous_message_id: null } } },
    display: { body: { max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 2048, display: "omitted" } } },
  },
  ollama: {
    truncate: { body: { truncate: true } },
    shift: { body: { shift: true } },
  },
  gemini: {
    safetySettings: {
      body: { safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_ONLY_HIGH" }] },
    },
    serviceTier: { body: { serviceTier: "flex" } },
    labels: { body: { labels: { run: "17" } } },
    retrievalConfig: { body: { toolConfig: { retrievalConfig: { languageCode: "de" } } } },
    responseModalities: { body: generation("responseModalities", ["TEXT"]) },
    mediaResolution: { body: generation("mediaResolution", "MEDIA_RESOLUTION_LOW") },
    audioTimestamp: { body: generation("audioTimestamp", true) },
  },
};
