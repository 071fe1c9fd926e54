import type { Message } from "./message.ts";
import type { GenerationRequest } from "./request.ts";

/** The average length of a token. Source: OpenAI's help center, "What are tokens and how to count them?". */
const charactersPerToken = 4;
/** The estimate for an image, a sound, or a file without text. */
const mediaCharacters = 2000;
/** Members whose texts are not part of the prompt. */
const unread: ReadonlySet<string> = new Set([
  "url",
  "data",
  "signature",
  "encrypted",
  "path",
  "id",
  "toolCallId",
  "type",
  "role",
]);

/** Estimates the number of tokens of a request's prompt; at least 1. */
export function estimateTokens({ prompt, tools }: Pick<GenerationRequest, "prompt" | "tools">): number {
  if (prompt.kind === "chat")
    return atLeastOne(tokensInCharacters(charactersInMessages(prompt.messages) + charactersIn(tools)));
  return atLeastOne(estimateInputs(prompt.prompts));
}

/** Estimates the number of tokens of texts. Token ids are counted. */
export function estimateInputs(inputs: readonly (string | readonly number[])[]): number {
  return atLeastOne(
    inputs.reduce(
      (sum, input) => sum + (typeof input === "string" ? tokensInCharacters(input.length) : input.length),
      0,
    ),
  );
}

/** Estimates the number of tokens of this many characters. */
export function tokensInCharacters(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}

function atLeastOne(tokens: number): number {
  return Math.max(1, tokens);
}

/** The requests of a conversation have its earlier messages in common. */
const counted = new WeakMap<Message, number>();

function charactersInMessages(messages: readonly Message[]): number {
  let sum = 0;
  for (const message of messages) {
    let characters = counted.get(message);
    if (characters === undefined) counted.set(message, (characters = charactersIn(message)));
    sum += characters;
  }
  return sum;
}

function charactersIn(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + charactersIn(item), 0);
  let sum = isMedia(value) ? mediaCharacters : 0;
  for (const [name, member] of Object.entries(value)) if (!unread.has(name)) sum += name.length + charactersIn(member);
  return sum;
}

function isMedia(value: object): boolean {
  if (!("type" in value) || "text" in value) return false;
  return value.type === "image" || value.type === "audio" || value.type === "file";
}
