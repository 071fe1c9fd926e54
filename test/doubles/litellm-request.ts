import { listOf, objectOf } from "./chat-server.ts";
import type { Json } from "./chat-server.ts";

/*
 * What LiteLLM sends to Anthropic for a request of Chat Completions, and what it refuses itself. Sources, in BerriAI/litellm 1.108.7:
 * litellm/utils.py (get_optional_params), litellm/llms/anthropic/chat/transformation.py (map_openai_params, transform_request),
 * litellm_core_utils/prompt_templates/factory.py (anthropic_messages_pt), litellm/constants.py (DEFAULT_CHAT_COMPLETION_PARAM_VALUES).
 */

/** A request that LiteLLM refuses before it asks Anthropic. `isOfProxy`: before it chooses a deployment. */
export class LitellmRefusal extends Error {
  readonly status: number;
  readonly isOfProxy: boolean;
  constructor(status: number, message: string, isOfProxy = false) {
    super(message);
    this.status = status;
    this.isOfProxy = isOfProxy;
  }
}

/** OpenAI's members that it does not map for Claude, in its order. */
const unsupported = [
  "functions",
  "function_call",
  "n",
  "modalities",
  "prediction",
  "audio",
  "presence_penalty",
  "frequency_penalty",
  "logit_bias",
  "seed",
  "logprobs",
  "top_logprobs",
  "verbosity",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "store",
];
const mapped = new Set([
  "messages",
  "stream_options",
  "stop",
  "max_tokens",
  "max_completion_tokens",
  "user",
  "response_format",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning_effort",
  "metadata",
]);

const efforts = ["minimal", "low", "medium", "high", "xhigh", "max", "none"];
const budgets: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16_384,
};
const claude = "claude-sonnet-4-5-20250929";
/** In place of a content without text. */
const placeholder = "[System: Empty message content sanitised to satisfy protocol]";
const note = "Operator note (not from the user): the following was originally a mid-conversation system-role reminder.";

/** The body for Anthropic. Throws `LitellmRefusal`. `thinks`: the configuration of the model has `thinking`. */
export function forAnthropic(body: Json, thinks: boolean): Json {
  const { messages } = body;
  if (messages === undefined || messages === null)
    throw new LitellmRefusal(400, "/chat/completions: Missing required parameter: 'messages'.", true);
  if (!Array.isArray(messages))
    throw new LitellmRefusal(
      400,
      "Invalid request format: litellm.APIConnectionError: 'str' object has no attribute 'get'\nTraceback (most recent call last):",
      true,
    );
  const refused = unsupported.filter((name) => (body[name] ?? null) !== null && !(name === "n" && body["n"] === 1));
  if (refused.length > 0) throw unsupportedMembers(refused);
  const others = Object.entries(body).filter(([name, value]) => !mapped.has(name) && value !== null);
  const list = listOf(messages);
  // Without tools, a history with calls gets one that stands for all.
  const hasCalls = list.some(({ tool_calls: calls }) => Array.isArray(calls) && calls.length > 0);
  const tools = Array.isArray(body["tools"]) ? listOf(body["tools"]).map(toolOf) : hasCalls ? [dummyTool] : undefined;
  const budget = budgetOf(body["reasoning_effort"]);
  const choice = choiceOf(body);
  const format = formatOf(body["response_format"]);
  const thinking = budget ?? (thinks && body["reasoning_effort"] !== "none" ? 1024 : undefined);
  const { stop } = body;
  return {
    ...Object.fromEntries(others),
    model: claude,
    ...conversationOf(list),
    max_tokens: body["max_completion_tokens"] ?? body["max_tokens"] ?? 64_000,
    ...((stop ?? null) !== null && { stop_sequences: Array.isArray(stop) ? stop.slice(0, 4) : [stop] }),
    ...(tools && { tools }),
    ...(choice && { tool_choice: choice }),
    ...(format && { output_format: format }),
    ...(thinking !== undefined && { thinking: { type: "enabled", budget_tokens: thinking } }),
    ...(typeof body["user"] === "string" && { metadata: { user_id: body["user"] } }),
  };
}

function unsupportedMembers(names: readonly string[]): LitellmRefusal {
  const list = `[${names.map((name) => `'${name}'`).join(", ")}]`;
  return new LitellmRefusal(
    400,
    `litellm.UnsupportedParamsError: anthropic does not support parameters: ${list}, for model=${claude}. To drop these, set \`litellm.drop_params=True\` or for proxy:\n\n\`litellm_settings:\n drop_params: true\`\n. \n If you want to use these params dynamically send allowed_openai_params=${list} in your request.`,
  );
}

function budgetOf(effort: unknown): number | undefined {
  if ((effort ?? null) === null) return undefined;
  if (!efforts.includes(String(effort)))
    throw new LitellmRefusal(
      400,
      `litellm.BadRequestError: Unmapped reasoning effort: '${String(effort)}'. Must be one of: ${efforts.map((one) => `'${one}'`).join(", ")}.`,
    );
  return budgets[String(effort)];
}

/** An error of Python's, which it tries again and returns with status 500. */
const failed = (words: string): LitellmRefusal => new LitellmRefusal(500, `litellm.APIConnectionError: ${words}`);

const dummyTool = { name: "dummy_tool", input_schema: { type: "object", properties: {} }, type: "custom" };

function toolOf({ function: made, type }: Json): Json {
  if (type !== "function") throw failed("'function'");
  const { name, description, parameters } = objectOf(made);
  if (name === undefined) throw failed("'name'");
  const schema = objectOf(parameters);
  return {
    name,
    input_schema: { type: "object", ...(schema["properties"] === undefined && { properties: {} }), ...schema },
    type: "custom",
    ...(description !== undefined && { description }),
  };
}

function choiceOf({ tool_choice: choice, parallel_tool_calls: parallel }: Json): Json | undefined {
  const one = { auto: "auto", required: "any", none: "none" }[String(choice)];
  const { name } = objectOf(objectOf(choice)["function"]);
  const made = one ? { type: one } : name === undefined ? undefined : { type: "tool", name };
  if (typeof parallel !== "boolean" || made?.type === "none") return made;
  return { ...(made ?? { type: "auto" }), disable_parallel_tool_use: !parallel };
}

function formatOf(format: unknown): Json | undefined {
  const { type, json_schema: named } = objectOf(format);
  if (type !== "json_schema") return undefined;
  const { schema } = objectOf(named);
  if (typeof schema !== "object") throw failed("dictionary update sequence element #0 has length 1; 2 is required");
  return { type: "json_schema", schema: fitting(schema) };
}

/** Without what Anthropic's schemas have not; objects are closed. */
function fitting(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(fitting);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([name]) => name !== "uniqueItems");
  const inner = Object.fromEntries(kept.map(([name, value]) => [name, fitting(value)]));
  return inner["type"] === "object" ? { ...inner, additionalProperties: false } : inner;
}

/** Messages of one role in a row become one; those without content are left out. */
function conversationOf(messages: readonly Json[]): Json {
  const first = messages.findIndex(({ role }) => !isInstruction(role));
  const [leading, others] = first === -1 ? [messages, []] : [messages.slice(0, first), messages.slice(first)];
  if (others.length === 0)
    throw new LitellmRefusal(
      400,
      `litellm.BadRequestError: AnthropicException - litellm.BadRequestError: Anthropic requires at least one non-system message. Either provide one, or set \`litellm.modify_params = True\` // \`litellm_settings::modify_params: True\` to add the dummy user message - {'role': 'user', 'content': 'Please continue.'}.\nReceived Messages=[]`,
    );
  const turns: { role: string; content: Json[] }[] = [];
  for (const [at, message] of others.entries()) {
    const role = message["role"] === "assistant" ? "assistant" : "user";
    const content = blocksOf(message, leading.length + at);
    if (content.length === 0) continue;
    if (turns.at(-1)?.role === role) turns.at(-1)?.content.push(...content);
    else turns.push({ role, content });
  }
  const system = leading.flatMap(({ content }) => textsOf(content));
  return { ...(system.length > 0 && { system }), messages: turns };
}

const isInstruction = (role: unknown): boolean => role === "system" || role === "developer";

function blocksOf(message: Json, at: number): Json[] {
  const { role, content } = message;
  switch (role) {
    case "system":
    case "developer":
      return [{ type: "text", text: note }, ...textsOf(content)];
    case "user":
      return orPlaceholder(partsOf(content, at));
    case "assistant":
      return assistantBlocks(message);
    case "tool":
    case "function":
      return [
        {
          type: "tool_result",
          tool_use_id: message["tool_call_id"],
          content: typeof content === "string" ? content : textsOf(content),
        },
      ];
    default:
      throw new LitellmRefusal(
        400,
        `litellm.BadRequestError: AnthropicException - litellm.BadRequestError: Invalid Message passed in ${JSON.stringify(message)}\nReceived Messages=[]`,
      );
  }
}

const orPlaceholder = (blocks: readonly Json[]): Json[] =>
  blocks.length > 0 ? [...blocks] : [{ type: "text", text: placeholder }];

function textsOf(content: unknown): Json[] {
  const texts = typeof content === "string" ? [content] : listOf(content).map(({ text }) => String(text ?? ""));
  return texts.filter((text) => text !== "").map((text) => ({ type: "text", text }));
}

function partsOf(content: unknown, at: number): Json[] {
  if (typeof content === "number") throw failed("'int' object is not iterable");
  if (!Array.isArray(content)) return textsOf(content);
  return listOf(content).flatMap((part): readonly Json[] => {
    const { type } = part;
    if (type === "text") return textsOf(part["text"] ?? "");
    if (type === "image_url") return [imageOf(String(objectOf(part["image_url"])["url"] ?? part["image_url"]))];
    if (type === "file") return [documentOf(String(objectOf(part["file"])["file_data"]))];
    throw failed(
      `Invalid user message at index ${at}. Please ensure all user messages are valid OpenAI chat completion messages.`,
    );
  });
}

function imageOf(url: string): Json {
  if (/^https?:/.test(url))
    throw new LitellmRefusal(
      400,
      `litellm.BadRequestError: Error: Unable to fetch image from URL. The proxy could not resolve this host or its URL policy rejected it; an admin can check the proxy log and \`user_url_allowed_hosts\` in litellm_settings. url=${url.replace(/\/\/[^/:]*/, "//REDACTED")}`,
    );
  return { type: "image", source: sourceOf(url) };
}

const documentOf = (url: string): Json => ({ type: "document", source: sourceOf(url) });

function sourceOf(url: string): Json {
  const comma = url.indexOf(",");
  const [mediaType = ""] = url.slice("data:".length, comma).split(";");
  return { type: "base64", media_type: mediaType, data: url.slice(comma + 1) };
}

function assistantBlocks({ content, thinking_blocks: thinking, tool_calls: calls }: Json): Json[] {
  // A block without a signature is left out, and so is the index of a stream.
  const signed = listOf(thinking).filter(({ signature }) => (signature ?? "") !== "");
  const reasoning = signed.map(({ type, thinking: text, signature }) => ({ type, thinking: text, signature }));
  const uses = listOf(calls)
    .filter(({ type }) => type === "function")
    .map(useOf);
  const texts = content === "" ? [{ type: "text", text: placeholder }] : textsOf(content);
  return [...reasoning, ...texts, ...uses];
}

function useOf({ id, function: made }: Json): Json {
  const { name, arguments: text } = objectOf(made);
  const invalid = (words: string): LitellmRefusal =>
    new LitellmRefusal(
      400,
      `Invalid request format: litellm.BadRequestError: AnthropicException - ${words}\nReceived Messages=[]`,
    );
  if (typeof text === "object" && text !== null) throw invalid("'dict' object has no attribute 'strip'");
  if (typeof id !== "string") throw invalid("'NoneType' object has no attribute 'startswith'");
  return { type: "tool_use", id, name, input: inputOf(String(text)) };
}

function inputOf(text: string): unknown {
  try {
    return text.trim() === "" ? {} : (JSON.parse(text) as unknown);
  } catch {
    return {};
  }
}
