import { lostReasoning } from "./reasoning.ts";
import { listOf, objectOf, pieces } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";

/*
 * Sources: https://docs.mistral.ai/api/endpoint/chat (members); https://github.com/mistralai/mistral-common,
 * src/mistral_common/protocol/instruct/validator.py (order of messages, ids, names); the form of errors:
 * https://github.com/avante-corp/avante.nvim/issues/2347, https://github.com/charmbracelet/crush/issues/1590 and
 * https://github.com/avante-corp/avante.nvim/pull/2695; the chunks of reasoning, without which nothing is refused:
 * https://docs.mistral.ai/capabilities/reasoning.
 */

const members = new Set([
  "model",
  "messages",
  "temperature",
  "top_p",
  "max_tokens",
  "stream",
  "stop",
  "random_seed",
  "metadata",
  "response_format",
  "tools",
  "tool_choice",
  "presence_penalty",
  "frequency_penalty",
  "n",
  "prediction",
  "parallel_tool_calls",
  "prompt_mode",
  "safe_prompt",
]);

const messageMembers: Readonly<Record<string, readonly string[]>> = {
  system: ["role", "content"],
  user: ["role", "content"],
  assistant: ["role", "content", "tool_calls", "prefix"],
  tool: ["role", "content", "tool_call_id", "name"],
};

const following: Readonly<Record<string, readonly string[]>> = {
  system: ["user", "assistant", "system"],
  user: ["assistant", "system", "user"],
  assistant: ["assistant", "user", "tool"],
  tool: ["assistant", "tool"],
};

/** Mistral's own API. The last chunk of a stream has the usage: mistralai/client-python, `CompletionChunk.usage`. */
export const mistral: ChatServer = {
  name: "Mistral",
  owner: "mistralai",
  model: "magistral-medium-latest",
  reportsUsage: true,
  refusal,
  lost: (body) =>
    lostReasoning(body, ({ content }) =>
      listOf(content)
        .flatMap((chunk) => listOf(chunk["thinking"]))
        .map(({ text }) => String(text))
        .join(""),
    ),
  content: ({ reasoning, text = "" }) =>
    reasoning === undefined ? text : [thinking(reasoning), ...(text === "" ? [] : [{ type: "text", text }])],
  deltas: ({ reasoning = "" }) => pieces(reasoning).map((piece) => ({ content: [thinking(piece)] })),
};

function thinking(text: string): Json {
  return { type: "thinking", thinking: [{ type: "text", text }] };
}

function refusal(body: Json): Refusal | undefined {
  for (const [name, value] of Object.entries(body)) if (!members.has(name)) return extra(["body", name], value);
  const messages = listOf(body["messages"]);
  for (const [at, message] of messages.entries()) {
    const role = String(message["role"]);
    const known = messageMembers[role];
    if (!known)
      return unprocessable({
        type: "union_tag_invalid",
        loc: ["body", "messages", at],
        msg: `Input tag '${role}' found using 'role' does not match any of the expected tags: 'assistant', 'system', 'tool', 'user'`,
      });
    for (const [name, value] of Object.entries(message))
      if (!known.includes(name)) return extra(["body", "messages", at, role, name], value);
  }
  for (const [at, tool] of listOf(body["tools"]).entries()) {
    if (tool["type"] !== "function")
      return unprocessable({
        type: "literal_error",
        loc: ["body", "tools", at, "type"],
        msg: "Input should be 'function'",
        input: tool["type"],
      });
    const name = String(objectOf(tool["function"])["name"]);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name))
      return refused(
        `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
        "3280",
      );
  }
  for (const [at, { role }] of messages.entries()) {
    const before = String(messages[at - 1]?.["role"]);
    if (at > 0 && !following[before]?.includes(String(role)))
      return refused(`Unexpected role '${String(role)}' after role '${before}'`, "3230");
  }
  const last = String(messages.at(-1)?.["role"]);
  if (last !== "user" && last !== "tool")
    return refused(
      `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last}`,
      "3230",
    );
  for (const message of messages) {
    const ids = listOf(message["tool_calls"]).map(({ id }) => id);
    if (message["role"] === "tool") ids.push(message["tool_call_id"]);
    for (const id of ids)
      if (!/^[a-zA-Z0-9]{9}$/.test(String(id)))
        return refused(`Tool call id was ${String(id)} but must be a-z, A-Z, 0-9, with a length of 9.`, "3280");
  }
  return undefined;
}

function extra(location: readonly unknown[], input: unknown): Refusal {
  return unprocessable({ type: "extra_forbidden", loc: location, msg: "Extra inputs are not permitted", input });
}

function unprocessable(detail: unknown): Refusal {
  const message = { detail: [detail] };
  return { status: 422, body: { object: "error", message, type: "invalid_request_error", param: null, code: null } };
}

function refused(message: string, code: string): Refusal {
  return { status: 400, body: { object: "error", message, type: "invalid_request_message_order", param: null, code } };
}
