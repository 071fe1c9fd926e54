import * as z from "zod";
import { anyObject, expecting, list, maxCalls, maxMessages, maxParts, maxTools } from "../request/shapes.ts";

/*
 * The objects of a chat request, one schema for each object of the official SDKs. Source: OpenAI's OpenAPI document,
 * `CreateChatCompletionRequest`. `chatParameters` lists the members of the request itself.
 */

const anObject = expecting("an object");
const nullableText = z.string().nullish();

/** A mark of the prompt cache, of OpenRouter and LiteLLM: in parts, messages, calls and tools. It has no effect on the answer. */
const marked = { cache_control: z.unknown().optional() };

/**
 * The end of a prompt prefix that later requests repeat. Truewire finds the longest cached prefix without it, so that a time to live that
 * OpenAI would refuse has no effect either.
 */
const cacheable = {
  prompt_cache_breakpoint: z
    .object({ mode: z.string().nullish(), ttl: nullableText }, expecting("an object"))
    .nullish(),
  ...marked,
};

export const textContentPart = z.object({ type: z.literal("text"), text: z.string(), ...cacheable });
export const refusalContentPart = z.object({ type: z.literal("refusal"), refusal: z.string() });
export const imageContentPart = z.object({
  type: z.literal("image_url"),
  // A bare URL is not in OpenAI's specification, but many programs send it.
  image_url: z.union(
    [z.string(), z.object({ url: z.string(), detail: z.enum(["auto", "low", "high", "original"]).nullish() })],
    expecting("an object"),
  ),
  ...cacheable,
});
export const audioContentPart = z.object({
  type: z.literal("input_audio"),
  input_audio: z.object({ data: z.string(), format: z.enum(["wav", "mp3"]) }, anObject),
  ...cacheable,
});
export const fileContentPart = z.object({
  type: z.literal("file"),
  file: z.object({ file_data: nullableText, file_id: nullableText, filename: nullableText }, anObject),
  ...cacheable,
});

export const userPart = z.discriminatedUnion(
  "type",
  [textContentPart, imageContentPart, audioContentPart, fileContentPart],
  anObject,
);
export const assistantPart = z.discriminatedUnion("type", [textContentPart, refusalContentPart], anObject);
const textPart = z.discriminatedUnion("type", [textContentPart], anObject);

function content<Part>(part: z.ZodType<Part>): z.ZodType<string | Part[]> {
  return z.union(
    [z.string(), list(part, { least: 1, most: maxParts })],
    expecting("one of a string or array of objects"),
  );
}

const calledFunction = z.object({ name: z.string(), arguments: z.string() }, anObject);
/** What servers demand back with a call (`callStateMembers`). */
const callState = { extra_content: anyObject().nullish(), provider_specific_fields: anyObject().nullish() };
export const requestFunctionCall = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: calledFunction,
  ...callState,
  ...marked,
});
export const requestCustomCall = z.object({
  id: z.string(),
  type: z.literal("custom"),
  custom: z.object({ name: z.string(), input: z.string() }),
  ...callState,
  ...marked,
});
export const requestToolCall = z.discriminatedUnion("type", [requestFunctionCall, requestCustomCall], anObject);

/** A block of reasoning in Anthropic's form. Source: https://docs.litellm.ai/docs/reasoning_content. */
export const thinkingBlock = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("thinking"), thinking: z.string().nullish(), signature: nullableText }),
    z.object({ type: z.literal("redacted_thinking"), data: z.string() }),
  ],
  anObject,
);

export const systemMessage = z.object({
  role: z.literal("system"),
  content: content(textPart).nullish(),
  name: nullableText,
  ...marked,
});
export const developerMessage = z.object({
  role: z.literal("developer"),
  content: content(textPart),
  name: nullableText,
  ...marked,
});
export const userMessage = z.object({
  role: z.literal("user"),
  content: content(userPart).nullish(),
  name: nullableText,
  ...marked,
});
export const chatAssistantMessage = z.object({
  role: z.literal("assistant"),
  content: content(assistantPart).nullish(),
  name: nullableText,
  refusal: nullableText,
  reasoning_content: nullableText,
  reasoning: nullableText,
  /** OpenRouter's, and this server's (`detailsFor`). */
  reasoning_details: list(anyObject(), { phrase: "an array of objects", most: maxParts }).nullish(),
  thinking_blocks: list(thinkingBlock, { phrase: "an array of objects", most: maxParts }).nullish(),
  tool_calls: list(requestToolCall, { phrase: "an array of objects", most: maxCalls }).nullish(),
  function_call: calledFunction.nullish(),
  /** Refers to an earlier audio answer of OpenAI. */
  audio: z.object({ id: z.string() }).nullish(),
  ...marked,
});
export const toolMessage = z.object({
  role: z.literal("tool"),
  // OpenAI takes texts only; clients of LangChain and of the AI SDK also send what a tool has shown.
  content: content(userPart).nullish(),
  tool_call_id: z.string(),
  name: nullableText,
  ...marked,
});
export const functionMessage = z.object({
  role: z.literal("function"),
  content: z.string().nullable(),
  name: z.string(),
});

export const requestMessage = z.discriminatedUnion(
  "role",
  [systemMessage, chatAssistantMessage, userMessage, functionMessage, toolMessage, developerMessage],
  anObject,
);

export type ChatRequestMessage = z.infer<typeof requestMessage>;
export type ChatAssistantMessage = z.infer<typeof chatAssistantMessage>;
/** The content of a message of any role. */
export type ChatRequestContent = string | (z.infer<typeof userPart> | z.infer<typeof assistantPart>)[];

export const messagesShape: z.ZodType<ChatRequestMessage[]> = list(requestMessage, {
  phrase: "an array of objects",
  least: 1,
  most: maxMessages,
});

export const functionDefinition = z.object(
  {
    name: z.string().min(1),
    description: nullableText,
    parameters: anyObject().nullish(),
    strict: z.boolean().nullish(),
    ...marked,
  },
  anObject,
);
export const customToolFormat = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({
      type: z.literal("grammar"),
      grammar: z.object({ definition: z.string(), syntax: z.enum(["lark", "regex"]) }, anObject),
    }),
  ],
  anObject,
);
export const chatFunctionTool = z.object({ type: z.literal("function"), function: functionDefinition, ...marked });
export const chatCustomTool = z.object({
  type: z.literal("custom"),
  custom: z.object(
    { name: z.string().min(1), description: nullableText, format: customToolFormat.nullish() },
    anObject,
  ),
  ...marked,
});
export const requestTool = z.discriminatedUnion("type", [chatFunctionTool, chatCustomTool], anObject);

export type ChatRequestTool = z.infer<typeof requestTool>;
export type FunctionDefinition = z.infer<typeof functionDefinition>;

export const toolsShape: z.ZodType<ChatRequestTool[]> = list(requestTool, {
  phrase: "an array of objects",
  most: maxTools,
});
export const functionsShape: z.ZodType<FunctionDefinition[]> = list(functionDefinition, {
  phrase: "an array of objects",
  most: maxTools,
});

const namedFunction = z.object({ name: z.string() }, anObject);
export const namedFunctionChoice = z.object({ type: z.literal("function"), function: namedFunction });
export const namedCustomChoice = z.object({ type: z.literal("custom"), custom: namedFunction });
const namedTool = z.discriminatedUnion("type", [namedFunctionChoice, namedCustomChoice], anObject);
export const allowedToolChoice = z.object({
  type: z.literal("allowed_tools"),
  allowed_tools: z.object(
    {
      mode: z.enum(["auto", "required"]),
      tools: list(namedTool, { phrase: "an array of objects", least: 1, most: maxTools }),
    },
    anObject,
  ),
});
const toolChoiceObject = z.discriminatedUnion(
  "type",
  [allowedToolChoice, namedFunctionChoice, namedCustomChoice],
  anObject,
);

export type NamedToolChoice = z.infer<typeof namedTool>;
export const toolChoiceShape = z.union(
  [z.enum(["none", "auto", "required"]), toolChoiceObject],
  expecting("one of a string or object"),
);

export type ChatRequestToolChoice = z.infer<typeof toolChoiceShape>;

export type LegacyFunctionChoice = z.infer<typeof functionCallShape>;
export const functionCallShape = z.union(
  [z.enum(["none", "auto"]), namedFunction],
  expecting("one of a string or object"),
);

/** How OpenAI caches the prompt. Responses have further members. */
export const chatPromptCacheOptions = z.looseObject({ mode: nullableText, ttl: nullableText }, anObject);
