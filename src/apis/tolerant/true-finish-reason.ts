import type { FinishReason } from "../../core/events.ts";

export interface FinishFacts {
  /** What the source said. */
  readonly said: FinishReason;
  /** How many calls there are. */
  readonly calls: number;
  readonly sawLegacyCall: boolean;
  /** Calls may still be found in the text. */
  readonly callsInText: boolean;
  /** The client asked with legacy `functions`; undefined: not known. */
  readonly legacyFunctions: boolean | undefined;
  readonly isOpenAi: boolean;
}

/**
 * The reason that is true of what came: "tool-calls" (or its legacy form) instead of "stop" exactly when there are calls; "length" and
 * "content-filter" win. null: calls were announced and none came, which is the source's error.
 */
export function trueFinishReason(facts: FinishFacts): FinishReason | null {
  const { said, calls, callsInText, sawLegacyCall, legacyFunctions, isOpenAi } = facts;
  const saidCalls = said === "tool-calls" || said === "function-call";
  if (saidCalls && calls === 0 && !callsInText) return null;
  if (!saidCalls && (calls === 0 || said !== "stop")) return said;
  const isLegacy = legacyFunctions ?? (isOpenAi && (said === "function-call" || sawLegacyCall));
  return isLegacy ? "function-call" : "tool-calls";
}
