import { z } from "zod";
import { mostCalls, mostMessages, mostParts } from "../request/size-limits.ts";
import { anyObject, expecting, list } from "../request/shapes.ts";

/** A message of a chat request as the client sent it. Source: the specification's ChatCompletionRequestMessage. */
export type RawMessage =
  | { role: "system" | "developer"; content: RawContent; name?: string | null | undefined }
  | { role: "user"; content: RawContent; name?: string | null | undefined }
  | { role: "tool"; content: RawContent; tool_call_id: string; name?: string | null | undefined }
  | { role: "function"; content: string | null; name: string }
  | RawAssistantMessage;

export interface RawAssistantMessage {
  role: "assistant";
  content?: RawContent | null | undefined;
  name?: string | null | undefined;
  refusal?: string | null | undefined;
  reasoning_content?: string | null | undefined;
  reasoning?: string | null | undefined;
  tool_calls?: RawToolCall[] | null | undefined;
  function_call?: { name: string; arguments: string } | null | undefined;
}

export type RawToolCall =
  | { id: string; type: "function"; function: { name: string; arguments: string } }
  | { id: string; type: "custom"; custom: { name: string; input: string } };

export type RawContent = string | RawPart[];

/** The shapes below say which parts a role may have. */
export type RawPart =
  | { type: "text"; text: string }
  | { type: "refusal"; refusal: string }
  | { type: "image_url"; image_url: string | { url: string; detail?: string | null | undefined } }
  | { type: "input_audio"; input_audio: { data: string; format: string } }
  | { type: "file"; file: Record<string, unknown> };

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });
const imagePart = z.object({
  type: z.literal("image_url"),
  // A bare URL is not in OpenAI's specification, but many programs send it.
  image_url: z.union(
    [z.string(), z.object({ url: z.string(), detail: z.enum(["auto", "low", "high"]).nullish() })],
    expecting("an object"),
  ),
});
const audioPart = z.object({
  type: z.literal("input_audio"),
  input_audio: z.object({ data: z.string(), format: z.enum(["wav", "mp3"]) }, expecting("an object")),
});
const filePart = z.object({ type: z.literal("file"), file: anyObject() });

const anObject = expecting("an object");
const partOfUser = z.discriminatedUnion("type", [textPart, imagePart, audioPart, filePart], anObject);
const partOfAssistant = z.discriminatedUnion("type", [textPart, refusalPart], anObject);
const partOfText = z.discriminatedUnion("type", [textPart], anObject);

function parts(part: z.ZodType<RawPart>): z.ZodType<RawPart[]> {
  return list(part, { least: 1, most: mostParts });
}

const contentWords = expecting("one of a string or array of objects");
const userContent = z.union([z.string(), parts(partOfUser)], contentWords);
const assistantContent = z.union([z.string(), parts(partOfAssistant)], contentWords);
const textContent = z.union([z.string(), parts(partOfText)], contentWords);

const name = z.string().nullish();

const calledFunction = z.object({ name: z.string(), arguments: z.string() }, anObject);
const toolCall = z.discriminatedUnion(
  "type",
  [
    z.object({ id: z.string(), type: z.literal("function"), function: calledFunction }),
    z.object({ id: z.string(), type: z.literal("custom"), custom: z.object({ name: z.string(), input: z.string() }) }),
  ],
  anObject,
);

const message = z.discriminatedUnion(
  "role",
  [
    z.object({ role: z.literal("system"), content: textContent, name }),
    z.object({
      role: z.literal("assistant"),
      content: assistantContent.nullish(),
      name,
      refusal: z.string().nullish(),
      reasoning_content: z.string().nullish(),
      reasoning: z.string().nullish(),
      tool_calls: list(toolCall, { phrase: "an array of objects", most: mostCalls }).nullish(),
      function_call: calledFunction.nullish(),
    }),
    z.object({ role: z.literal("user"), content: userContent, name }),
    z.object({ role: z.literal("function"), content: z.string().nullable(), name: z.string() }),
    z.object({ role: z.literal("tool"), content: textContent, tool_call_id: z.string(), name }),
    z.object({ role: z.literal("developer"), content: textContent, name }),
  ],
  anObject,
);

export const messagesShape: z.ZodType<RawMessage[]> = list(message, {
  phrase: "an array of objects",
  least: 1,
  most: mostMessages,
});
