import { estimateTokens } from "./estimate-tokens.ts";
import type { GenerationFailure } from "./events.ts";
import type { Message } from "./message.ts";
import type { GenerationRequest } from "./request.ts";

/** The share of the context that a shortened prompt may fill; the rest is for the answer and the next turn. */
const filled = 0.75;

/**
 * The request with fewer messages, for a model that refused its prompt as too long. The oldest messages are left out, in whole turns:
 * a user's message with everything up to the next one. Of the last turn the user's message stays, and the oldest steps after it go: an
 * assistant's message with the results of its calls. Instructions (`system`, `developer`) and the last step always stay.
 *
 * `tokens` of the failure says how much is too much; without it, half of the prompt is left out. Returns `null` if nothing can be left
 * out any more. Source: `truncation` in OpenAI's specification of the Responses API ("dropping items from the beginning of the
 * conversation").
 */
export function withoutOldest(request: GenerationRequest, { tokens }: GenerationFailure): GenerationRequest | null {
  // What the client sent still has all messages, so it does not go along.
  const { passthrough: _, ...rest } = request;
  const { prompt } = rest;
  if (prompt.kind !== "chat") return null;
  const groups = droppableGroups(prompt.messages);
  if (groups.length === 0) return null;
  const size = estimateTokens(rest);
  let excess = tokens ? size * (1 - (filled * tokens.most) / tokens.asked) : size / 2;
  const dropped = new Set<Message>();
  for (const group of groups) {
    for (const message of group) dropped.add(message);
    excess -= estimateTokens({ prompt: { ...prompt, messages: group } });
    if (excess <= 0) break;
  }
  return { ...rest, prompt: { ...prompt, messages: prompt.messages.filter((message) => !dropped.has(message)) } };
}

/** Messages that may be left out together, the oldest first. */
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
