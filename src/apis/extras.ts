import type { ExtraEvent } from "../core/events.ts";
import type { AskedAnswer, ChoicesContext } from "./choices-answer.ts";
import type { JsonValue } from "./json-text.ts";
import { jsonText } from "./json-text.ts";

/** The members of an extra event that the settings let pass, and those that the client asked for by a parameter. */
export function passedMembers(event: ExtraEvent, context: ChoicesContext): [name: string, value: JsonValue][] {
  const pass = context.settings.passExtra ?? false;
  const asked = askedMembers(context.asked);
  if ((pass === false && asked.length === 0) || event.place === "item" || (event.dialect ?? "chat") !== "chat")
    return [];
  // What a source added was read from JSON.
  const members = Object.entries(event.value as Record<string, JsonValue>);
  if (pass === true) return members;
  return members.filter(([name]) => asked.includes(name) || (pass !== false && pass.includes(name)));
}

/** vLLM's and llama.cpp's names for what requests of theirs ask for. */
function askedMembers({ includeTokenIds, includePromptLogprobs, includeProgress }: AskedAnswer): readonly string[] {
  if (!includeTokenIds && !includePromptLogprobs && !includeProgress) return none;
  return [
    ...(includeTokenIds ? ["token_ids", "prompt_token_ids"] : []),
    ...(includePromptLogprobs ? ["prompt_logprobs"] : []),
    ...(includeProgress ? ["prompt_progress"] : []),
  ];
}

const none: readonly string[] = [];

/** Members as they stand in JSON after others: `,"name":value` each. */
export function memberText(members: readonly [name: string, value: JsonValue][]): string {
  let text = "";
  for (const [name, value] of members) text += `,${JSON.stringify(name)}:${jsonText(value)}`;
  return text;
}
