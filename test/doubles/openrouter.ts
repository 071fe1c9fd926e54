import { missingSignature } from "../../src/wire/apis/gemini/turn-rules.ts";
import { callMessages, callsOfMessage, listOf, objectOf, pieces, signer } from "./chat-server.ts";
import type { ChatServer, Json, Refusal } from "./chat-server.ts";
import { reasoningOfCall } from "./task.ts";
import type { Step, TaskCall } from "./task.ts";

/*
 * OpenRouter with a model of Google or Anthropic behind it. `reasoning_details` are streamed in parts, and demanded back unchanged and in
 * order. Sources: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens, "Preserving reasoning blocks" (entries, formats, order);
 * the words: massgen/MassGen#624 (Gemini's), pi#260 (the entry of a call has the call's id); Anthropic's:
 * https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
 */

/** A server with a key of its own. */
export function openrouter(vendor: "google" | "anthropic"): ChatServer {
  const isGoogle = vendor === "google";
  const { sign, isValid } = signer("openrouter");
  const format = isGoogle ? "google-gemini-v1" : "anthropic-claude-v1";

  /** The details of an answer, as the whole message has them. `ids`: of its calls. */
  const detailsOf = ({ reasoning, calls }: Step): Json[] => {
    const text = reasoning === undefined ? [] : [{ type: "reasoning.text", text: reasoning, format, index: 0 }];
    if (!isGoogle) return text.map((entry) => ({ ...entry, signature: sign("thinking", reasoning) }));
    const [first] = calls;
    if (!first) return text;
    const data = sign("call", first.name, first.input, reasoning ?? "");
    return [...text, { type: "reasoning.encrypted", data, format, index: text.length }];
  };

  const problemOf = (message: Json, calls: readonly TaskCall[], at: number, since: boolean): Refusal | undefined => {
    const details = merged(listOf(message["reasoning_details"]));
    const [first] = calls;
    const encrypted = details.filter(({ type }) => type === "reasoning.encrypted");
    const texts = details.filter(({ type }) => type === "reasoning.text");
    if (isGoogle) {
      if (encrypted.length === 0 && since) return provider("Google AI Studio", google(String(first?.name), at));
      for (const { data } of encrypted) {
        const text = texts.map((entry) => String(entry["text"])).join("");
        if (!isValid(data, "call", first?.name, first?.input, text))
          return provider("Google AI Studio", upstream("Corrupted thought signature."));
      }
      return undefined;
    }
    for (const { text, signature } of texts)
      if (!isValid(signature, "thinking", text))
        return provider(
          "Anthropic",
          anthropic(`messages.${at}.content.0: Invalid \`signature\` in \`thinking\` block`),
        );
    const was = first && reasoningOfCall(first);
    if (since && was !== undefined && texts.length === 0)
      return provider(
        "Anthropic",
        anthropic(
          `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
        ),
      );
    return undefined;
  };

  return {
    name: `OpenRouter, ${vendor}`,
    model: isGoogle ? "google/gemini-3-pro-preview" : "anthropic/claude-sonnet-5",
    owner: "openrouter",
    refusal(body) {
      for (const { message, at, since } of callMessages(body)) {
        const problem = problemOf(message, callsOfMessage(message), at, since);
        if (problem) return problem;
      }
      // Details of an answer without calls are verified, too.
      for (const [at, message] of listOf(body["messages"]).entries()) {
        if (isGoogle || message["role"] !== "assistant" || listOf(message["tool_calls"]).length > 0) continue;
        const problem = problemOf(message, [], at, false);
        if (problem) return problem;
      }
      return undefined;
    },
    message: (step) => ({
      ...(step.reasoning !== undefined && { reasoning: step.reasoning }),
      reasoning_details: detailsOf(step),
    }),
    deltas: (step) =>
      detailsOf(step).flatMap((entry): Json[] => {
        const { text, signature, ...others } = entry;
        if (typeof text !== "string") return [{ reasoning_details: [entry] }];
        const texts = pieces(text).map((piece) => ({
          reasoning: piece,
          reasoning_details: [{ ...others, text: piece }],
        }));
        return signature === undefined ? texts : [...texts, { reasoning_details: [{ ...others, signature }] }];
      }),
  };
}

/** The parts of streamed entries as the entries that they are parts of: those with the same type and index that follow each other. */
function merged(details: readonly Json[]): Json[] {
  const entries: Record<string, unknown>[] = [];
  for (const detail of details) {
    const last = entries.at(-1);
    if (!last || last["type"] !== detail["type"] || last["index"] !== detail["index"]) {
      entries.push({ ...detail });
      continue;
    }
    for (const [name, value] of Object.entries(detail))
      last[name] = name === "text" ? `${typeof last["text"] === "string" ? last["text"] : ""}${String(value)}` : value;
  }
  return entries;
}

function google(name: string, position: number): string {
  const docs = "https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks";
  return `Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: ${docs}. Upstream error: ${upstream(missingSignature(name, position))}`;
}

function upstream(message: string): string {
  return JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }, null, 2);
}

function anthropic(message: string): string {
  return JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } });
}

function provider(name: string, raw: string): Refusal {
  const error = { message: "Provider returned error", code: 400, metadata: { raw, provider_name: name } };
  return { status: 400, body: { error: objectOf(error) } };
}
