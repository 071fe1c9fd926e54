import * as z from "zod";
import { checkGoTypes } from "../../src/wire/apis/ollama/go-decoder.ts";
import { ollamaTool } from "../../src/wire/apis/ollama/request-schema.ts";
import { list } from "../../src/wire/apis/request/shapes.ts";
import { FailureError } from "../../src/wire/core/failure.ts";
import { sessionDouble, listOf, objectOf, readChat, refused, stepOf } from "./chat-server.ts";
import type { ChatServer, Json, Refusal } from "./chat-server.ts";
import { startOllama } from "./ollama-api.ts";
import { lostReasoning } from "./reasoning.ts";
import { Sessions } from "./task.ts";

/*
 * Source: https://github.com/ollama/ollama, openai/openai.go (FromChatRequest, FromCompletionToolCall, thinkFromReasoningEffort,
 * decodeImageURL, NewError), middleware/openai.go, and server/routes.go (ChatHandler: "does not support thinking"), of 2026-08. Unknown
 * members are ignored: the body is unmarshalled into a struct.
 */

const efforts = new Set(["", "none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]);
/** Up to 0.17, where levels are for gpt-oss alone. */
const olderEfforts = new Set(["", "none", "low", "medium", "high"]);

/**
 * Ollama's OpenAI endpoint with a model that can call tools. A prompt that is longer than `contextSize` tokens (default 4096) is cut without
 * an error: contextShiftPromptLimit in llm/llama_server.go, with `num_keep` 4.
 */
export function ollama({
  reasons = false,
  contextSize = 4096,
  takesLevels = true,
}: { readonly reasons?: boolean; readonly contextSize?: number; readonly takesLevels?: boolean } = {}): ChatServer {
  return {
    promptTokens(body) {
      const words = JSON.stringify(body["messages"]).split(/\s+/).length;
      return words < contextSize ? words : contextSize - Math.floor((contextSize - 4) / 2);
    },
    name: reasons ? "Ollama with a model that reasons" : "Ollama",
    owner: "library",
    others: { "/api/show": { capabilities: ["completion", "tools", ...(reasons ? ["thinking"] : [])] } },
    refusal: (body) => (takesLevels ? undefined : refusedLevel(body, reasons)) ?? refusal(body, reasons),
  };
}

function refusal(body: Json, reasons: boolean): Refusal | undefined {
  const unreadable = unreadableJson(body);
  if (unreadable) return unreadable;
  const messages = listOf(body["messages"]);
  if (messages.length === 0) return refused("[] is too short - 'messages'");
  for (const { content, tool_calls: calls } of messages) {
    for (const part of Array.isArray(content) ? content : []) {
      const { type, text, image_url: image } = objectOf(part);
      const url = objectOf(image)["url"] ?? image;
      if (type === "image_url" && /^data:(image\/(jpeg|jpg|png|webp))?;base64,[\w+/]*={0,2}$/.test(String(url)))
        continue;
      if (type === "image_url" && /^https?:/.test(String(url)))
        return refused("image URLs are not currently supported, please use base64 encoded data instead");
      if (type === "image_url") return refused("invalid image input");
      if (type !== "text" || typeof text !== "string") return refused("invalid message format");
    }
    if (typeof content !== "string" && !Array.isArray(content) && (calls ?? null) === null)
      return refused(`invalid message content type: ${goTypes[typeof content] ?? "<nil>"}`);
    for (const call of Array.isArray(calls) ? calls : []) {
      // A call without `function` has no arguments, and "" is no JSON.
      const text = objectOf(objectOf(call)["function"])["arguments"];
      if (!isJsonObject(text)) return refused("invalid tool call arguments");
    }
  }
  const effort = effortOf(body);
  if (!efforts.has(String(effort)))
    return refused(
      `invalid reasoning value: "${String(effort)}" (must be "minimal", "low", "medium", "high", "xhigh", "ultra", "max", or "none")`,
    );
  if (effort !== "" && effort !== "none" && !reasons)
    return refused(`"${String(body["model"])}" does not support thinking`);
  const top = Number(body["top_logprobs"] ?? 0);
  return top < 0 || top > 20 ? refused("top_logprobs must be between 0 and 20") : undefined;
}

const effortOf = (body: Json): unknown => objectOf(body["reasoning"])["effort"] ?? body["reasoning_effort"] ?? "";

function refusedLevel(body: Json, reasons: boolean): Refusal | undefined {
  const effort = String(effortOf(body));
  if (!olderEfforts.has(effort))
    return refused(`invalid reasoning value: '${effort}' (must be "high", "medium", "low", or "none")`);
  const isTaken = effort === "" || effort === "none" || !reasons;
  return isTaken ? undefined : refused(`think value "${effort}" is not supported for this model`);
}

/** How Go calls the types of JSON's values. */
const goTypes: Readonly<Record<string, string>> = { number: "float64", boolean: "bool" };

function unreadableJson(body: Json): Refusal | undefined {
  try {
    checkGoTypes(completionRequest, body);
    return undefined;
  } catch (error) {
    if (error instanceof FailureError) return refused(error.message);
    throw error;
  }
}

const call = z
  .object({
    id: z.string(),
    index: z.int(),
    type: z.string(),
    // A struct without a name.
    function: z.object({ name: z.string(), arguments: z.string() }).meta({ go: "api." }),
  })
  .meta({ go: "openai.ToolCall" });

const message = z
  .object({
    role: z.string(),
    content: z.unknown(),
    reasoning: z.string(),
    tool_calls: list(call, { most: Infinity }),
    name: z.string(),
    tool_call_id: z.string(),
  })
  .meta({ go: "openai.Message" });

/** Source: openai/openai.go, ChatCompletionRequest. */
const completionRequest = z
  .object({
    model: z.string(),
    messages: list(message, { most: Infinity }),
    stream: z.boolean(),
    max_tokens: z.int(),
    seed: z.int(),
    stop: z.unknown(),
    temperature: z.number(),
    frequency_penalty: z.number(),
    presence_penalty: z.number(),
    top_p: z.number(),
    tools: list(ollamaTool, { most: Infinity }),
    reasoning_effort: z.string(),
    logprobs: z.boolean(),
    top_logprobs: z.int(),
  })
  .meta({ go: "api.ChatCompletionRequest" });

function isJsonObject(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(String(text));
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Ollama's own API (ollama-api.ts): `thinking` of a message, without which nothing is refused. */
export const ollamaNative: ChatServer = {
  name: "Ollama's own API",
  owner: "library",
  model: "qwen3",
  wholeCalls: true,
  refusal: () => undefined,
  async start(turn, models) {
    const requests: Json[] = [];
    const sessions = new Sessions();
    const capabilities = ["completion", "tools", "vision", "thinking"];
    const double = await startOllama({
      models: Object.fromEntries(models.map((name) => [name, { capabilities }])),
      reply({ body }) {
        requests.push(body);
        sessions.lost.push(...lostReasoning(body, (message) => message["thinking"]));
        const { text, reasoning, calls } =
          turn === undefined ? sessions.next(readChat(body), body["messages"]) : stepOf(turn, body);
        return {
          ...(text !== undefined && { text }),
          ...(reasoning !== undefined && { thinking: reasoning }),
          calls: calls.map(({ name, input }) => ({ name, arguments: input })),
        };
      },
    });
    const { url, refusals, close } = double;
    return sessionDouble({ url: `${url}/v1`, requests, refusals, close }, sessions, () => requests.length);
  },
};
