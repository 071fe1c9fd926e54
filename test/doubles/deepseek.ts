import { withReasoning } from "./reasoning.ts";
import { listOf, objectOf } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";

/*
 * Sources of the words: https://github.com/earendil-works/pi/issues/1048 and https://github.com/BenedictKing/ccx/issues/149 (roles),
 * https://github.com/danny-avila/LibreChat/issues/12804 (tools), https://github.com/zhukunpenglinyutong/jetbrains-cc-gui/issues/591
 * and https://github.com/deepseek-ai/awesome-deepseek-integration/issues/57 (content), https://github.com/openai/codex/issues/22129 (results of
 * calls), https://api-docs.deepseek.com/guides/thinking_mode, https://github.com/anomalyco/opencode/issues/25356, esengine/DeepSeek-Reasonix#6217
 * and openclaw/openclaw#73417 (reasoning: the member must be there in every message that has calls, `""` suffices). Unknown members are ignored.
 */

const roles = ["system", "user", "assistant", "tool", "latest_reminder"];

/** DeepSeek's own API. */
export const deepseek: ChatServer = {
  name: "DeepSeek",
  owner: "deepseek",
  model: "deepseek-v4",
  refusal,
  ...withReasoning("reasoning_content"),
};

function refusal(body: Json): Refusal | undefined {
  const messages = listOf(body["messages"]);
  for (const [at, { role, content, tool_calls: calls }] of messages.entries()) {
    if (!roles.includes(String(role)))
      return unreadable(
        `messages[${at}].role: unknown variant \`${String(role)}\`, expected one of ${roles.map((name) => `\`${name}\``).join(", ")}`,
      );
    if (Array.isArray(content)) {
      for (const part of content)
        if (objectOf(part)["type"] !== "text")
          return unreadable(
            `messages[${at}].content: unknown variant \`${String(objectOf(part)["type"])}\`, expected \`text\``,
          );
      return unreadable(`messages[${at}]: invalid type: sequence, expected a string`);
    }
    if (role === "assistant" && Array.isArray(calls) && messages[at]?.["reasoning_content"] === undefined)
      return refused("The `reasoning_content` in the thinking mode must be passed back to the API.");
    if (role === "assistant" && (content === undefined || content === null) && !Array.isArray(calls))
      return refused("Invalid assistant message: content or tool_calls must be set");
  }
  for (const [at, tool] of listOf(body["tools"]).entries()) {
    if (tool["type"] !== "function")
      return unreadable(`tools[${at}].type: unknown variant \`${String(tool["type"])}\`, expected \`function\``);
    if (tool["function"] === undefined) return unreadable(`tools[${at}]: missing field \`function\``);
  }
  for (const [at, message] of messages.entries()) {
    const open = new Set(listOf(message["tool_calls"]).map(({ id }) => id));
    for (const next of messages.slice(at + 1)) {
      if (next["role"] !== "tool") break;
      open.delete(next["tool_call_id"]);
    }
    if (open.size > 0)
      return refused(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
      );
  }
  return undefined;
}

function unreadable(detail: string): Refusal {
  return refused(`Failed to deserialize the JSON body into the target type: ${detail} at line 1 column 1`);
}

function refused(message: string): Refusal {
  const type = "invalid_request_error";
  return { status: 400, body: { error: { message, type, param: null, code: type } } };
}
