import { listOf, objectOf } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";

/*
 * Sources: https://console.groq.com/docs/openai, "Currently Unsupported OpenAI Features" (`logprobs`, `logit_bias`, `top_logprobs`,
 * `messages[].name`, `n` above 1); the words: https://github.com/fanenr/chatbot/issues/21 (members),
 * https://github.com/tashfeenahmed/freellmapi/issues/1070 and https://github.com/ServiceStack/llms/issues/17 (members of messages),
 * https://github.com/stanfordnlp/dspy/issues/1155 (`n`), https://github.com/groq/groq-python/issues/25 (`logprobs`).
 */

const members = new Set([
  "model",
  "messages",
  "temperature",
  "top_p",
  "max_tokens",
  "max_completion_tokens",
  "stream",
  "stream_options",
  "stop",
  "seed",
  "response_format",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "presence_penalty",
  "frequency_penalty",
  "n",
  "user",
  "logprobs",
  "top_logprobs",
  "reasoning_effort",
  "service_tier",
  "metadata",
]);

const messageMembers = new Set(["role", "content", "tool_calls", "tool_call_id", "reasoning"]);

/** Groq's own API. */
export const groq: ChatServer = { name: "Groq", owner: "Meta", refusal };

function refusal(body: Json): Refusal | undefined {
  for (const name of Object.keys(body)) if (!members.has(name)) return refused(`property '${name}' is unsupported`);
  for (const [at, message] of listOf(body["messages"]).entries())
    for (const name of Object.keys(message))
      if (!messageMembers.has(name))
        return refused(
          `'messages.${at}' : for 'role:${String(message["role"])}' the following must be satisfied[('messages.${at}' : property '${name}' is unsupported)]`,
        );
  if (body["n"] !== undefined && body["n"] !== 1) return refused("'n' : number must be at most 1");
  if (body["logprobs"] === true) return refused("`logprobs` is not supported with this model");
  for (const tool of listOf(body["tools"]))
    if (objectOf(tool)["type"] !== "function") return refused("'tools.0.type' : value must be one of function");
  return undefined;
}

function refused(message: string): Refusal {
  return { status: 400, body: { error: { message, type: "invalid_request_error" } } };
}
