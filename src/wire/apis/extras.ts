import type { ExtraEvent, ToolCallStartEvent } from "../core/events.ts";
import type { RequestedAnswer, ChoicesContext } from "./choices-answer.ts";
import type { JsonValue } from "./json-text.ts";
import { jsonText } from "./json-text.ts";

/**
 * The members of an extra event that the settings allow, or that the client requested by a parameter. Audio and moderation are OpenAI's own, and
 * only in answers to a request for them.
 */
export function allowedExtras(event: ExtraEvent, context: ChoicesContext): [name: string, value: JsonValue][] {
  if (event.place === "item" || (event.dialect ?? "chat") !== "chat") return [];
  // A source's members are parsed JSON.
  const members = Object.entries(event.value as Record<string, JsonValue>);
  const pass = context.settings.passExtra ?? false;
  if (pass === true) return members;
  const requested = requestedMembers(context.requested);
  return members.filter(
    ([name, value]) =>
      ofOpenai.has(name) ||
      requested.includes(name) ||
      (pass !== false && pass.includes(name)) ||
      // OpenAI's deltas of audio have no text.
      (name === "content" && value === null && context.profile.name === "exact"),
  );
}

const ofOpenai: ReadonlySet<string> = new Set(["audio", "moderation"]);

/** The members that a chat server adds to a call: those that it demands back, and those that the settings allow. */
export function callExtras(
  { native, state }: Pick<ToolCallStartEvent, "native" | "state">,
  { settings }: Pick<ChoicesContext, "settings">,
): [name: string, value: JsonValue][] {
  if (!native && !state) return [];
  const pass = settings.passExtra ?? false;
  const demanded = Object.entries((state?.value ?? {}) as Record<string, JsonValue>);
  if (native?.dialect !== "chat" || pass === false) return demanded;
  const others = Object.entries(native.value as Record<string, JsonValue>);
  return [...demanded, ...others.filter(([name]) => pass === true || pass.includes(name))];
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
