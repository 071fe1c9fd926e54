/** A mistake in a request, and what the vendor answers: for the tests, and for docs/parameters.md. */
export interface RefusalCase {
  readonly api: "chat" | "completions" | "responses" | "messages";
  /** What docs/parameters.md says of the mistake. */
  readonly mistake: string;
  /** Added to a valid request. */
  readonly members: Readonly<Record<string, unknown>>;
  readonly message: string;
  /** OpenAI's. */
  readonly param?: string | null;
  readonly code?: string | null;
  /** The vendor's model that refuses it; absent: all of them. */
  readonly standsFor?: string;
  /** Profile `lean` has no warning: it is no mistake there. */
  readonly isFineInLean?: true;
  /** It is refused also where an upstream of the same API gets the request. */
  readonly isRefusedForUpstream?: true;
}

const hello = { role: "user", content: "Hello" };
const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
const toolUse = { type: "tool_use", id: "toolu_1", name: "f", input: {} };
const parameters = { type: "object", properties: { a: { type: "string" } } };
const customTool = { name: "f", input_schema: { ...parameters, additionalProperties: false, required: ["a"] } };
const cached = (text: string, ttl?: string): object => ({
  type: "text",
  text,
  cache_control: { type: "ephemeral", ...(ttl !== undefined && { ttl }) },
});
const image = (data: string, media_type = "image/png"): RefusalCase["members"] => ({
  messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type, data } }] }],
});
const png = "iVBORw0KGgoAAAANSUhEUg==";
const thinking = { max_tokens: 4096, thinking: { type: "enabled", budget_tokens: 1024 } };
const docs = "Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking";
const at = "messages.0.content.0.image.source.base64";
const unanswered =
  "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1";

const ofChat: readonly Omit<RefusalCase, "api">[] = [
  {
    mistake: "a member that OpenAI does not have, extensions of other servers included",
    isFineInLean: true,
    members: { min_p: 0.1 },
    message: "Unknown parameter: 'min_p'.",
    param: "min_p",
    code: "unknown_parameter",
  },
  {
    mistake: "the same, within two edits of a member that the request does not have",
    members: { temperatur: 1 },
    message: "Unknown parameter: 'temperatur'. Did you mean 'temperature'?",
    param: "temperatur",
    code: "unknown_parameter",
  },
  {
    mistake: "`max_tokens` with `max_completion_tokens`",
    members: { max_tokens: 5, max_completion_tokens: 5 },
    message: "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
    param: "max_tokens",
    code: "invalid_parameter_combination",
  },
  {
    mistake: "a message without a content, and with nothing in its place",
    members: { messages: [hello, { role: "user", content: null }] },
    message: "Invalid value for 'content': expected a string, got null.",
    param: "messages.[1].content",
  },
  {
    mistake: "calls without results, before another message",
    members: { messages: [hello, { role: "assistant", tool_calls: [call] }, hello] },
    message: unanswered,
    param: "messages.[2].role",
  },
  {
    mistake: "calls without results, at the end",
    members: { messages: [hello, { role: "assistant", tool_calls: [call] }] },
    message: unanswered,
    param: "messages",
  },
  {
    mistake: "a result without calls before it",
    members: { messages: [hello, { role: "tool", tool_call_id: "call_1", content: "1" }] },
    message:
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    param: "messages.[1].role",
  },
  {
    mistake: "a result of another call",
    members: {
      messages: [
        hello,
        { role: "assistant", tool_calls: [call] },
        { role: "tool", tool_call_id: "call_2", content: "1" },
      ],
    },
    message: "Invalid parameter: 'tool_call_id' of 'call_2' not found in 'tool_calls' of previous message.",
    param: "messages.[2].tool_call_id",
  },
  {
    mistake: "an image in base64 that cannot be decoded, or is not a PNG, JPEG, GIF or WebP",
    members: {
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,####" } }] }],
    },
    message:
      "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
    param: null,
    code: null,
  },
  {
    mistake: "`json_object` where no message has the word JSON",
    members: { response_format: { type: "json_object" } },
    message: "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    param: "messages",
  },
  {
    mistake: "a strict function without parameters, or whose object is open",
    isFineInLean: true,
    isRefusedForUpstream: true,
    members: { tools: [{ type: "function", function: { name: "f", strict: true } }] },
    message:
      "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
  },
  {
    mistake: "parameters of a function without a type",
    isFineInLean: true,
    isRefusedForUpstream: true,
    members: { tools: [{ type: "function", function: { name: "f", parameters: { properties: {} } } }] },
    message:
      "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
  },
  {
    mistake: "an array without `items`",
    isFineInLean: true,
    isRefusedForUpstream: true,
    members: {
      tools: [
        {
          type: "function",
          function: { name: "f", parameters: { type: "object", properties: { a: { type: "array" } } } },
        },
      ],
    },
    message: "Invalid schema for function 'f': In context=('properties', 'a'), array schema missing items.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
  },
  {
    mistake: "`max_tokens`, `stop`, `logit_bias` or `prediction`, for a reasoning model",
    standsFor: "gpt-5-mini",
    members: { max_tokens: 5 },
    message:
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    param: "max_tokens",
    code: "unsupported_parameter",
  },
  {
    mistake: "a `temperature` but 1, for a model that reasons",
    standsFor: "gpt-5-mini",
    members: { temperature: 0.7 },
    message:
      "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.",
    param: "temperature",
    code: "unsupported_value",
  },
  {
    mistake: "`top_p`, penalties or `logprobs`, for a model that reasons",
    standsFor: "o4-mini",
    members: { logprobs: true },
    message: "Unsupported parameter: 'logprobs' is not supported with this model.",
    param: "logprobs",
    code: "unsupported_parameter",
  },
  {
    mistake: "a `reasoning_effort` that the model does not have",
    standsFor: "gpt-6-luna",
    members: { reasoning_effort: "max" },
    message:
      "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.",
    param: "reasoning_effort",
    code: "unsupported_value",
  },
  {
    mistake: "functions with a reasoning effort, for gpt-5.6 and later",
    standsFor: "gpt-6-luna",
    members: { tools: [{ type: "function", function: { name: "f", parameters } }] },
    message:
      "Function tools with reasoning_effort are not supported for gpt-6-luna in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    param: "reasoning_effort",
  },
];

const ofResponses: readonly Omit<RefusalCase, "api">[] = [
  {
    mistake: "a completion window of `2h` or `8h` without `background`, or with `stream`",
    members: { background_options: { completion_window: "2h" } },
    message: "Invalid value: '2h'. This completion window requires 'background' to be true and 'stream' to be false.",
    param: "background_options.completion_window",
    code: "invalid_value",
  },
  {
    mistake: "a member that OpenAI does not have, extensions of other servers included",
    members: { max_tokens: 5 },
    message: "Unknown parameter: 'max_tokens'.",
    param: "max_tokens",
    code: "unknown_parameter",
  },
  {
    mistake: "a member of chat that has another place here",
    members: { response_format: { type: "json_object" } },
    message:
      "Unsupported parameter: 'response_format'. In the Responses API, this parameter has moved to 'text.format'.",
    param: null,
    code: "unsupported_parameter",
  },
  {
    mistake: "an unknown member of `reasoning`, `text` or `stream_options`",
    members: { reasoning: { enabled: true } },
    message: "Unknown parameter: 'reasoning.enabled'.",
    param: "reasoning.enabled",
    code: "unknown_parameter",
  },
  {
    mistake: "a call without an output",
    members: { input: [hello, { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" }, hello] },
    message: "No tool output found for function call call_1.",
    param: "input",
  },
  {
    mistake: "`json_object` where no message has the word JSON",
    members: { text: { format: { type: "json_object" } } },
    message:
      "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
    param: "text.format",
  },
  {
    mistake: "reasoning with an id, without the item that followed it",
    members: { input: [hello, { type: "reasoning", id: "rs_1", summary: [] }, hello] },
    message: "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    param: "input",
  },
  {
    mistake: "sound or film as a file",
    members: {
      input: [
        {
          role: "user",
          content: [{ type: "input_file", filename: "a.mp3", file_data: "data:audio/mpeg;base64,SUQz" }],
        },
      ],
    },
    message:
      "Invalid file data: 'input[0].content[0].file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type 'audio/mpeg'. Please see https://platform.openai.com/docs/assistants/tools/file-search#supported-files for supported file types.",
    param: "input[0].content[0].file_data",
    code: "invalid_value",
  },
  {
    mistake: "a strict function without parameters, or whose object is open",
    isFineInLean: true,
    isRefusedForUpstream: true,
    members: { tools: [{ type: "function", name: "f", strict: true }] },
    message:
      "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.",
    param: "tools[0].parameters",
    code: "invalid_function_parameters",
  },
  {
    mistake: "a `temperature` but 1, any `top_p`, for a model that reasons",
    standsFor: "gpt-5-mini",
    members: { temperature: 0.2 },
    message: "Unsupported parameter: 'temperature' is not supported with this model.",
    param: "temperature",
  },
  {
    mistake: "a `reasoning.effort` that the model does not have",
    standsFor: "gpt-6-luna",
    members: { reasoning: { effort: "minimal" } },
    message:
      "Unsupported value: 'minimal' is not supported with the 'gpt-6-luna' model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh', and 'max'.",
    param: "reasoning.effort",
    code: "unsupported_value",
  },
];

const ofMessages: readonly Omit<RefusalCase, "api">[] = [
  {
    mistake: "a member that Anthropic does not have",
    isRefusedForUpstream: true,
    members: { min_p: 0.1 },
    message: "min_p: Extra inputs are not permitted",
  },
  {
    mistake: "a value that an enumeration does not have",
    isFineInLean: true,
    members: { output_config: { effort: "minimal" } },
    message: "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
  },
  {
    mistake: "a null",
    isFineInLean: true,
    isRefusedForUpstream: true,
    members: { temperature: null },
    message: "temperature: Input should be a valid number",
  },
  {
    mistake: "an empty text block",
    members: { messages: [{ role: "user", content: [{ type: "text", text: "" }] }] },
    message: "messages: text content blocks must be non-empty",
  },
  {
    mistake: "a blank text block",
    members: { system: [{ type: "text", text: " " }] },
    message: "system: text content blocks must contain non-whitespace text",
  },
  {
    mistake: "an empty text block with a mark of the cache",
    members: { messages: [{ role: "user", content: [cached("")] }] },
    message: "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
  },
  {
    mistake: "a call without its result in the next message",
    isRefusedForUpstream: true,
    members: { messages: [hello, { role: "assistant", content: [toolUse] }, hello] },
    message:
      "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
  },
  { mistake: "an empty image", members: image(""), message: `${at}: image cannot be empty` },
  { mistake: "an image that is not base64", members: image("####"), message: `${at}: invalid base64 data` },
  { mistake: "an image of no known type", members: image("AAAAAAAA"), message: "Could not process image" },
  {
    mistake: "an image of another type than it says",
    members: image(png, "image/jpeg"),
    message: `${at}.data: Image does not match the provided media type image/jpeg`,
  },
  {
    mistake: "more than four marks of the cache",
    members: { system: ["1", "2", "3", "4", "5"].map((text) => cached(text)) },
    message: "A maximum of 4 blocks with cache_control may be provided. Found 5.",
  },
  {
    mistake: "a mark for an hour after one for five minutes",
    members: { system: [cached("1"), cached("2", "1h")] },
    message:
      "system.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
  },
  {
    mistake: "`max_tokens` that leaves no tokens for the answer after the budget",
    members: { ...thinking, max_tokens: 1024 },
    message: `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. ${docs}#max-tokens-and-context-window-size`,
  },
  {
    mistake: "a `temperature` but 1, a `top_p` below 0.95, or `top_k`, with thinking",
    members: { ...thinking, temperature: 0 },
    message: `\`temperature\` may only be set to 1 when thinking is enabled. ${docs}#important-considerations-when-using-extended-thinking`,
  },
  {
    mistake: "a forced tool with a budget of thinking",
    members: { ...thinking, tools: [customTool], tool_choice: { type: "any" } },
    message: "Thinking may not be enabled when tool_choice forces tool use.",
  },
  {
    mistake: "a last turn of the assistant without its thinking, with a budget",
    members: { ...thinking, messages: [hello, { role: "assistant", content: "x" }] },
    message: `messages.1.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`text\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. ${docs}`,
  },
  {
    mistake: "more than 20 strict tools",
    members: { tools: Array.from({ length: 21 }, (_, index) => ({ ...customTool, name: `f${index}`, strict: true })) },
    message:
      "Too many strict tools (21). The maximum number of strict tools supported is 20. Try reducing the number of tools marked as strict.",
  },
  {
    mistake: "a strict tool whose object is open",
    members: { tools: [{ name: "f", input_schema: parameters, strict: true }] },
    message: "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
  },
  {
    mistake: "strict tools with more than 24 optional parameters, or 16 unions",
    members: {
      tools: [
        {
          name: "f",
          strict: true,
          input_schema: {
            type: "object",
            additionalProperties: false,
            properties: Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`a${index}`, { type: "string" }])),
          },
        },
      ],
    },
    message:
      "Schemas contains too many optional parameters (25), which would make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: 24).",
  },
  {
    mistake: "a `container` without a tool that executes code",
    members: { container: "container_1" },
    message: "container: Container identifier can only be provided when using the code execution tool",
  },
  {
    mistake: "a mode of thinking that the model does not have",
    standsFor: "claude-opus-5-5",
    members: { thinking: { type: "disabled" } },
    message:
      '"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" for the lowest thinking setting, or "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
  },
  {
    mistake: "an effort that the model does not have",
    standsFor: "claude-opus-4-6",
    members: { output_config: { effort: "xhigh" } },
    message: "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
  },
  {
    mistake: "a prefill, for 4.6 and later",
    standsFor: "claude-sonnet-5",
    members: { messages: [hello, { role: "assistant", content: "{" }] },
    message: "This model does not support assistant message prefill. The conversation must end with a user message.",
  },
  {
    mistake: "`temperature`, `top_p` or `top_k`, for 4.7 and later",
    standsFor: "claude-opus-4-8",
    members: { temperature: 0.5 },
    message: "`temperature` is deprecated for this model.",
  },
  {
    mistake: "`temperature` with `top_p`, for 4.5 and 4.6",
    standsFor: "claude-haiku-4-5",
    members: { temperature: 0.5, top_p: 0.9 },
    message: "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
  },
];

export const refusalCases: readonly RefusalCase[] = [
  ...ofChat.map((one) => ({ ...one, api: "chat" as const })),
  {
    api: "completions",
    mistake: "a member that OpenAI does not have, extensions of other servers included",
    members: { messages: [] },
    message: "Unknown parameter: 'messages'.",
    param: "messages",
    code: "unknown_parameter",
  },
  {
    api: "completions",
    mistake: "a model that only chats",
    standsFor: "gpt-4o-mini",
    members: {},
    message:
      "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?",
    param: "model",
  },
  ...ofResponses.map((one) => ({ ...one, api: "responses" as const })),
  ...ofMessages.map((one) => ({ ...one, api: "messages" as const })),
];

/** A request to which nothing is objected. */
export const validRequests: Readonly<Record<RefusalCase["api"], Readonly<Record<string, unknown>>>> = {
  chat: { model: "m", messages: [hello] },
  completions: { model: "m", prompt: "Hello" },
  responses: { model: "m", input: "Hello" },
  messages: { model: "m", max_tokens: 64, messages: [hello] },
};
