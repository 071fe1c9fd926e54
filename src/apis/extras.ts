import type { ExtraEvent } from "../core/events.ts";
import type { RequestedAnswer, ChoicesContext } from "./choices-answer.ts";
import type { JsonValue } from "./json-text.ts";
import { jsonText } from "./json-text.ts";

/** The members of an extra event that the settings allow, or that the client requested by a parameter. */
export function allowedExtras(event: ExtraEvent, context: ChoicesContext): [name: string, value: JsonValue][] {
  const pass = context.settings.passExtra ?? false;
  const requested = requestedMembers(context.requested);
  if ((pass === false && requested.length === 0) || event.place === "item" || (event.dialect ?? "chat") !== "chat")
    return [];
  // A source's members are parsed JSON.
  const members = Object.entries(event.value as Record<string, JsonValue>);
  if (pass === true) return members;
  return members.filter(([name]) => requested.includes(name) || (pass !== false && pass.includes(name)));
}

/** The members that parameters of vLLM and llama.cpp request. */
function requestedMembers({
  includeTokenIds,
  includePromptLogprobs,
  includeProgress,
}: RequestedAnswer): readonly string[] {
  if (!includeTokenIds && !includePromptLogprobs && !includeProgress) return none;
  return [
    ...(includeTokenIds ? ["token_ids", "prompt_token_ids"] : []),
    ...(includePromptLogprobs ? ["prompt_logprobs"] : []),
    ...(includeProgress ? ["prompt_progress"] : []),
  ];
}

const none: readonly string[] = [];

/** Members as JSON text: `,"name":value` each. */
export function memberText(members: readonly [name: string, value: JsonValue][]): string {
  let text = "";
  for (const [name, value] of members) text += `,${JSON.stringify(name)}:${jsonText(value)}`;
  return text;
}
