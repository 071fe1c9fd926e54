import type { GenerationRequest } from "./request.ts";

/** Characters of a token, about. Source: OpenAI's help center, "What are tokens and how to count them?". */
const charactersPerToken = 4;
/** What an image, a sound or a file without text counts as. */
const mediaCharacters = 2000;
/** Members whose texts the model does not read. */
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

/** About how many tokens a request's prompt has, before anybody has counted them; at least 1. */
export function estimateTokens({ prompt, tools }: Pick<GenerationRequest, "prompt" | "tools">): number {
  if (prompt.kind === "chat") return atLeastOne(tokensOf(charactersIn(prompt.messages) + charactersIn(tools)));
  return atLeastOne(estimateInputs(prompt.prompts));
}

/** The same of texts, or of token ids, which count as they are. */
export function estimateInputs(inputs: readonly (string | readonly number[])[]): number {
  return atLeastOne(
    inputs.reduce((sum, input) => sum + (typeof input === "string" ? tokensOf(input.length) : input.length), 0),
  );
}

/** About how many tokens so many characters are. */
export function tokensOf(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}

function atLeastOne(tokens: number): number {
  return Math.max(1, tokens);
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
