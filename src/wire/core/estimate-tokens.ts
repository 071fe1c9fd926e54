import type { GenerationFailure } from "./events.ts";
import type { Message } from "./message.ts";
import type { GenerationRequest } from "./request.ts";

/** The average length of a token. Source: OpenAI's help center, "What are tokens and how to count them?". */
const charactersPerToken = 4;
/** The estimate for an image, a sound, or a file without text. */
const mediaCharacters = 2000;
/** Members whose texts are not part of the prompt. */
const unread: ReadonlySet<string> = new Set(["url", "data", "state", "path", "id", "toolCallId", "type", "role"]);

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
    // An entry of a WeakMap costs more than the length of a text.
    const isText = typeof message.content === "string";
    let characters = isText ? undefined : counted.get(message);
    if (characters === undefined) {
      characters = charactersIn(message);
      if (!isText) counted.set(message, characters);
    }
    sum += characters;
  }
  return sum;
}

function charactersIn(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + charactersIn(item), 0);
  let sum = isMedia(value) ? mediaCharacters : 0;
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) if (!unread.has(name)) sum += name.length + charactersIn(members[name]);
  return sum;
}

function isMedia(value: object): boolean {
  if (!("type" in value) || "text" in value) return false;
  return value.type === "image" || value.type === "audio" || value.type === "file";
}

/** The share of the context that a shortened prompt fills. The rest is for the answer and the next turn. */
const promptShare = 0.75;

/**
 * Removes the oldest messages of a request whose prompt was refused as too long. Removes whole turns: a user's message and everything up
 * to the next one. In the last turn the user's message is kept, and the oldest steps after it (an assistant's message with the results of
 * its calls) are removed. Instructions (`system`, `developer`) and the last step are always kept.
 *
 * `tokens` of the failure determines how much is removed; without it, half of the prompt. Returns `null` if nothing can be removed.
 * Source: `truncation` in OpenAI's specification of the Responses API ("dropping items from the beginning of the conversation").
 */
export function withoutOldest(request: GenerationRequest, { tokens }: GenerationFailure): GenerationRequest | null {
  // The client's own JSON still has all messages.
  const { passthrough: _, ...rest } = request;
  const { prompt } = rest;
  if (prompt.kind !== "chat") return null;
  const groups = droppableGroups(prompt.messages);
  if (groups.length === 0) return null;
  const size = estimateTokens(rest);
  let excess = tokens ? size * (1 - (promptShare * tokens.most) / tokens.asked) : size / 2;
  const dropped = new Set<Message>();
  for (const group of groups) {
    for (const message of group) dropped.add(message);
    excess -= estimateTokens({ prompt: { ...prompt, messages: group } });
    if (excess <= 0) break;
  }
  return { ...rest, prompt: { ...prompt, messages: prompt.messages.filter((message) => !dropped.has(message)) } };
}

/** Groups of messages that may be removed together, oldest first. */
function droppableGroups(messages: readonly Message[]): readonly (readonly Message[])[] {
  const lastUser = messages.findLastIndex(({ role }) => role === "user");
  const turns: Message[][] = [];
  const steps: Message[][] = [];
  for (const [index, message] of messages.entries()) {
    const { role } = message;
    if (index === lastUser || role === "system" || role === "developer") continue;
    const groups = index < lastUser ? turns : steps;
    const begins = role === (index < lastUser ? "user" : "assistant");
    if (begins || groups.length === 0) groups.push([]);
    groups.at(-1)?.push(message);
  }
  return [...turns, ...steps.slice(0, -1)];
}
