import { isObject } from "../../core/json.ts";
import type { CallState } from "../../core/turn-state.ts";

/**
 * Members of calls that servers demand back with the same call in the next request: Gemini's signature of the reasoning before a call, also
 * as LiteLLM has it. Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility";
 * https://docs.litellm.ai/blog/gemini_3.
 */
export const callStateMembers = ["extra_content", "provider_specific_fields"] as const;

/** The state of a call: the members that its server demands back. `source`: see `TurnState`. */
export function callStateOf(call: Readonly<Record<string, unknown>>, source?: string): CallState | undefined {
  let value: Record<string, unknown> | undefined;
  for (const name of callStateMembers) {
    const member = call[name];
    if (isObject(member) && Object.keys(member).length > 0) (value ??= {})[name] = member;
  }
  return value && { kind: "call", value, ...(source !== undefined && { source }) };
}
