import type { RequestBody, ServerProfile } from "../../../wire/apis/adapt/server-profile.ts";

/** A short request that shows whether a server accepts one thing. */
export interface ProfileProbe {
  readonly id: string;
  /** What it asks for, in a few words. */
  readonly about: string;
  /** The members of a chat request, without `model`. */
  readonly members: RequestBody;
  /** What a refusal shows if its words do not. */
  readonly refused: ServerProfile;
  /** Requests are adapted without the profile, as a server that accepts this may still ignore it: a refusal is shown and not written down. */
  readonly isAdaptedAnyway?: true;
}

const user = { role: "user", content: "Say hi." };
const assistant = { role: "assistant", content: "Hi." };
const argument = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = {
  type: "function",
  function: { name: "get_weather", description: "The weather.", parameters: argument },
};
const call = (id: string): RequestBody => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }],
});
const result = (id: string): RequestBody => ({ role: "tool", tool_call_id: id, content: "21 degrees" });
/** A grey PNG of 32 by 32 pixels: some models accept no smaller image (Qwen2-VL: 28). */
const image =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mNoIAAYRhWMKhhVMFIVAABCAAAfN5c2AAAAAABJRU5ErkJggg==";

/**
 * Probes for what a server's profile says about chat requests. Each is sent with `max_tokens: 1` and without a stream; a refusal (4xx, 500,
 * 501) of one shows that the server does not accept what it asks for, if the server answers a plain request.
 */
export const profileProbes: readonly ProfileProbe[] = [
  {
    id: "system",
    about: "a system message at the beginning",
    members: { messages: [{ role: "system", content: "Be brief." }, user] },
    refused: { systemMessages: "none" },
  },
  {
    id: "repeated-roles",
    about: "consecutive messages of the user",
    members: { messages: [user, user] },
    refused: { repeatedRoles: false },
  },
  {
    id: "reasoning-history",
    about: "reasoning of an earlier turn",
    members: { messages: [user, { ...assistant, reasoning_content: "A greeting." }, user] },
    refused: { reasoningHistory: false },
  },
  {
    id: "message-name",
    about: "a message with a name",
    members: { messages: [{ ...user, name: "ada" }] },
    refused: { dropInMessages: ["name"] },
  },
  { id: "tools", about: "a tool", members: { messages: [user], tools: [weather] }, refused: { tools: false } },
  {
    id: "call-ids",
    about: "the id of a call in OpenAI's form",
    members: {
      messages: [user, call("call_2gSnF58IEhXLwlbnqbm5XKMd"), result("call_2gSnF58IEhXLwlbnqbm5XKMd")],
      tools: [weather],
    },
    refused: { callIds: "nine" },
  },
  {
    id: "user-after-tool",
    about: "a user's message after the result of a tool",
    members: { messages: [user, call("abcdefghi"), result("abcdefghi"), user], tools: [weather] },
    refused: { userAfterTool: false },
  },
  ...(["none", "required", "named"] as const).map((form) => ({
    id: `tool-choice-${form}`,
    about: form === "named" ? "one tool by name" : `tool_choice "${form}"`,
    members: {
      messages: [user],
      tools: [weather],
      tool_choice: form === "named" ? { type: "function", function: { name: "get_weather" } } : form,
    },
    refused: {},
  })),
  {
    id: "parallel-calls",
    about: "parallel_tool_calls",
    members: { messages: [user], tools: [weather], parallel_tool_calls: true },
    refused: { parallelCalls: false },
  },
  {
    id: "strict-schema",
    about: "a tool with strict",
    members: {
      messages: [user],
      tools: [
        {
          ...weather,
          function: { ...weather.function, strict: true, parameters: { ...argument, additionalProperties: false } },
        },
      ],
    },
    refused: { strictSchemas: false },
  },
  {
    id: "json-object",
    about: "any JSON object",
    members: { messages: [{ role: "user", content: "Say hi as JSON." }], response_format: { type: "json_object" } },
    refused: {},
  },
  {
    id: "json-schema",
    about: "JSON after a schema",
    members: {
      messages: [{ role: "user", content: "Name a city as JSON." }],
      response_format: { type: "json_schema", json_schema: { name: "city", schema: argument } },
    },
    refused: {},
  },
  {
    id: "image",
    about: "an image",
    members: {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: image } },
          ],
        },
      ],
    },
    refused: { images: false },
  },
  {
    id: "file",
    about: "a file",
    members: {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "file", file: { filename: "a.txt", file_data: "data:text/plain;base64,SGk=" } },
          ],
        },
      ],
    },
    refused: { files: false },
  },
  {
    id: "n",
    about: "two choices",
    // vLLM refuses two equal ones: "n must be 1 when using greedy sampling".
    members: { messages: [user], n: 2, temperature: 1 },
    refused: { severalChoices: false },
  },
  {
    id: "logprobs",
    about: "log probabilities",
    members: { messages: [user], logprobs: true, top_logprobs: 1 },
    refused: { logprobs: false },
  },
  {
    id: "stream-options",
    about: "stream_options",
    members: { messages: [user], stream: true, stream_options: { include_usage: true } },
    refused: { streamOptions: false },
  },
  {
    id: "max-completion-tokens",
    about: "max_completion_tokens",
    members: { messages: [user], max_tokens: undefined, max_completion_tokens: 1 },
    refused: { maxTokensMember: "max_tokens" },
  },
  {
    id: "developer",
    about: "a developer message",
    members: { messages: [{ role: "developer", content: "Be brief." }, user] },
    refused: { instructionRole: "system" },
    isAdaptedAnyway: true,
  },
  {
    id: "system-later",
    about: "a system message after the beginning",
    members: { messages: [user, assistant, { role: "system", content: "Be brief." }, user] },
    refused: { systemMessages: "first" },
    isAdaptedAnyway: true,
  },
  {
    id: "custom-tool",
    about: "a custom tool",
    members: { messages: [user], tools: [{ type: "custom", custom: { name: "patch", description: "Edits a file." } }] },
    refused: { customTools: false },
    isAdaptedAnyway: true,
  },
  {
    id: "reasoning-effort",
    about: "reasoning_effort",
    members: { messages: [user], reasoning_effort: "low" },
    refused: { reasoningEffort: false },
    isAdaptedAnyway: true,
  },
  {
    id: "metadata",
    about: "metadata",
    members: { messages: [user], metadata: { a: "b" } },
    refused: { sharedMembers: false },
    isAdaptedAnyway: true,
  },
];

/** The status of a refusal of what a probe asks for. Another failure, such as a rate limit, shows nothing. */
export function isRefusalOfProbe(status: number): boolean {
  return status === 400 || status === 404 || status === 415 || status === 422 || status === 500 || status === 501;
}
