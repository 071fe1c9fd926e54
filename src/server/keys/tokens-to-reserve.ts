import type { GenerationRequest } from "../../core/request.ts";
import type { Limits } from "../../kv/limits.ts";

/** The tokens that a request without a limit of its own reserves for its answer, and the most of a limit that this may be. */
const defaultAnswerTokens = 1000;
const maxShareOfLimit = 1 / 10;

/**
 * The tokens that a request reserves for its answer while it runs: what its client allows at most (`max_tokens`), for each choice. Where
 * the client sets no limit: `answerTokens`, by default 1,000, but not more than a tenth of the smallest limit of tokens. 0 where no tokens
 * are limited.
 */
export function tokensToReserve(
  { prompt, n = 1, limits: { maxTokens } }: Pick<GenerationRequest, "prompt" | "n" | "limits">,
  { tokensPerMinute = Infinity, tokensPerDay = Infinity, answerTokens }: Limits,
): number {
  const limit = Math.min(tokensPerMinute, tokensPerDay);
  if (limit === Infinity) return 0;
  const choices = prompt.kind === "text" ? prompt.prompts.length * Math.max(n, prompt.bestOf ?? 1) : n;
  const standard = Math.min(defaultAnswerTokens, Math.ceil(limit * maxShareOfLimit));
  return choices * (maxTokens ?? answerTokens ?? standard);
}
