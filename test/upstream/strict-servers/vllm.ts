import { listOf, objectOf } from "./strict-server.ts";
import type { Json, Refusal, StrictServer } from "./strict-server.ts";

/*
 * Source: https://github.com/vllm-project/vllm, vllm/entrypoints/openai/chat_completion/protocol.py (2026-11): ChatCompletionToolsParam,
 * ChatCompletionRequest, check_tool_usage, validate_stream_options. Unknown members are ignored (OpenAIBaseModel, `extra="allow"`).
 */

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** vLLM without a look at the model's template. */
export const vllm: StrictServer = { name: "vLLM", owner: "vllm", refusal };

function refusal(body: Json): Refusal | undefined {
  const { tools, tool_choice: choice, reasoning_effort: effort, stream, stream_options: options } = body;
  if (options !== undefined && stream !== true)
    return refused("Stream options can only be defined when `stream=True`.");
  if (Array.isArray(tools) && tools.length === 0)
    return refused("`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.");
  if (choice !== undefined && choice !== null && choice !== "none") {
    if (tools === undefined) return refused("When using `tool_choice`, `tools` must be set.");
    if (typeof choice === "object") {
      const usage = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`';
      const named = objectOf(choice)["function"];
      if (typeof named !== "object" || named === null)
        return refused(`Invalid value for \`function\`: \`None\` in \`tool_choice\`! ${usage}`);
      const { name } = objectOf(named);
      if (!listOf(body, "tools").some((tool) => objectOf(tool["function"])["name"] === name))
        return refused("The tool specified in `tool_choice` does not match any of the specified `tools`");
    } else if (choice !== "auto" && choice !== "required")
      return refused(
        `Invalid value for \`tool_choice\`: ${String(choice)}! Only named tools, "none", "auto" or "required" are supported.`,
      );
  }
  for (const [at, tool] of listOf(body, "tools").entries()) {
    if (tool["type"] !== "function")
      return invalid("literal_error", `'body', 'tools', ${at}, 'type'`, "Input should be 'function'");
    if (typeof objectOf(tool["function"])["name"] !== "string")
      return invalid("missing", `'body', 'tools', ${at}, 'function', 'name'`, "Field required");
  }
  if (effort !== undefined && effort !== null && !efforts.includes(String(effort)))
    return invalid(
      "literal_error",
      "'body', 'reasoning_effort'",
      `Input should be ${efforts.map((name) => `'${name}'`).join(", ")}`,
    );
  for (const [at, message] of listOf(body, "messages").entries())
    for (const call of listOf(message, "tool_calls"))
      if (call["type"] !== "function" || typeof objectOf(call["function"])["arguments"] !== "string")
        return invalid("missing", `'body', 'messages', ${at}, 'tool_calls'`, "Field required");
  return undefined;
}

function invalid(type: string, location: string, message: string): Refusal {
  return refused(`1 validation error:\n  {'type': '${type}', 'loc': (${location}), 'msg': "${message}"}`);
}

function refused(message: string): Refusal {
  return { status: 400, body: { error: { message, type: "BadRequestError", param: null, code: 400 } } };
}
