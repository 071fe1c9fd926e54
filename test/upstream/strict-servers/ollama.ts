import { startOllama } from "../../support/ollama-double.ts";
import { listOf, objectOf } from "./strict-server.ts";
import type { Json, Refusal, StrictServer } from "./strict-server.ts";

/*
 * Source: https://github.com/ollama/ollama, openai/openai.go (FromChatRequest, FromCompletionToolCall, thinkFromReasoningEffort,
 * decodeImageURL, NewError), middleware/openai.go, and server/routes.go (ChatHandler: "does not support thinking"), of 2026-08. Unknown
 * members are ignored: the body is unmarshalled into a struct.
 */

const efforts = new Set(["", "none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]);

/**
 * Ollama's OpenAI endpoint with a model that can call tools. A prompt that is longer than `contextSize` tokens (default 4096) is cut without
 * an error: contextShiftPromptLimit in llm/llama_server.go, with `num_keep` 4.
 */
export function ollama({
  reasons = false,
  contextSize = 4096,
}: { readonly reasons?: boolean; readonly contextSize?: number } = {}): StrictServer {
  return {
    promptTokens(body) {
      const words = JSON.stringify(body["messages"]).split(/\s+/).length;
      return words < contextSize ? words : contextSize - Math.floor((contextSize - 4) / 2);
    },
    name: reasons ? "Ollama with a model that reasons" : "Ollama",
    owner: "library",
    others: { "/api/show": { capabilities: ["completion", "tools", ...(reasons ? ["thinking"] : [])] } },
    refusal: (body) => refusal(body, reasons),
  };
}

function refusal(body: Json, reasons: boolean): Refusal | undefined {
  const messages = listOf(body, "messages");
  if (messages.length === 0) return refused("[] is too short - 'messages'");
  for (const { content, tool_calls: calls, role } of messages) {
    for (const part of Array.isArray(content) ? content : []) {
      const { type, text, image_url: image } = objectOf(part);
      const url = objectOf(image)["url"] ?? image;
      if (type === "image_url" && /^data:(image\/(jpeg|jpg|png|webp))?;base64,/.test(String(url))) continue;
      if (type === "image_url" && /^https?:/.test(String(url)))
        return refused("image URLs are not currently supported, please use base64 encoded data instead");
      if (type === "image_url") return refused("invalid image input");
      if (type !== "text" || typeof text !== "string") return refused("invalid message format");
    }
    if (typeof role !== "string")
      return refused("json: cannot unmarshal into Go struct field Message.role of type string");
    if ((content ?? null) === null && (calls ?? null) === null) return refused("invalid message content type: <nil>");
    for (const call of Array.isArray(calls) ? calls : []) {
      // A call without `function` has no arguments, and "" is no JSON.
      const text = objectOf(objectOf(call)["function"])["arguments"];
      if (!isJsonObject(text)) return refused("invalid tool call arguments");
    }
  }
  const effort = objectOf(body["reasoning"])["effort"] ?? body["reasoning_effort"] ?? "";
  if (!efforts.has(String(effort)))
    return refused(
      `invalid reasoning value: "${String(effort)}" (must be "minimal", "low", "medium", "high", "xhigh", "ultra", "max", or "none")`,
    );
  if (effort !== "" && effort !== "none" && !reasons)
    return refused(`"${String(body["model"])}" does not support thinking`);
  return undefined;
}

function isJsonObject(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(String(text));
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function refused(message: string): Refusal {
  return { status: 400, body: { error: { message, type: "invalid_request_error", param: null, code: null } } };
}

/** Ollama's own API, of the double in test/support. */
export const ollamaNative: StrictServer = {
  name: "Ollama's own API",
  owner: "library",
  wholeCalls: true,
  refusal: () => undefined,
  async start(turn, models) {
    const double = await startOllama({
      models: Object.fromEntries(models.map((name) => [name, { capabilities: ["completion", "tools", "vision"] }])),
      reply({ body }) {
        const made = typeof turn === "function" ? turn(body) : turn;
        if (typeof made === "string") return made;
        return { calls: [{ name: made.call, arguments: JSON.parse(made.arguments) as Json }] };
      },
    });
    return {
      url: `${double.url}/v1`,
      get requests() {
        return double.requests.map(({ body }) => body);
      },
      get refusals() {
        return double.refusals.map((error) => ({ status: 400, body: { error } }));
      },
      close: () => double.close(),
    };
  },
};
