import { isObject } from "../../core/json.ts";
import { type Json } from "./view.ts";

/** Returns what is wrong with a usage object in the respect `kind`, or `undefined`. */
export function usageViolation(usage: Json, kind: "type" | "sum" | "details"): string | undefined {
  const { prompt_tokens: prompt, completion_tokens: completion = 0, total_tokens: total } = usage;
  const prompts = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const completions = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  if (kind === "type") {
    // OpenAI's completions leave out completion_tokens if it is 0 (recorded).
    const counts = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: total,
      ...prompts,
      ...completions,
    };
    const wrong = Object.entries(counts).find(
      ([, value]) => value !== null && !(Number.isInteger(value) && (value as number) >= 0),
    );
    return wrong && `${wrong[0]} is ${JSON.stringify(wrong[1]) ?? "missing"}`;
  }
  if (typeof prompt !== "number" || typeof completion !== "number") return undefined;
  if (kind === "sum")
    return total === prompt + completion ? undefined : `${String(total)} is not ${prompt} + ${completion}`;
  const { cached_tokens: cached } = prompts;
  const { reasoning_tokens: reasoning } = completions;
  if (typeof cached === "number" && cached > prompt) return `cached_tokens ${cached} of ${prompt}`;
  if (typeof reasoning === "number" && reasoning > completion) return `reasoning_tokens ${reasoning} of ${completion}`;
  return undefined;
}
