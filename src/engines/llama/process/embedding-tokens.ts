import { FailureError, invalidRequest } from "../../../core/failure.ts";
import type { PromptInput } from "../preparing/prepared-request.ts";
import type { Steps } from "./round-share.ts";
import { tokenizePrompt, type Tokenizer } from "./tokenize-prompt.ts";

/** How long an input may be, in tokens. */
export interface InputLimits {
  readonly longest: number;
  /** No token stands for more UTF-16 units of text than this. */
  readonly longestToken: number;
}

/**
 * The tokens of a text to embed, with what the tokenizer puts around a whole one. `param`: as what it came. Throws FailureError 400 for
 * one that is too long, which is not made tokens of where it cannot fit whatever its tokens are.
 */
export function* embeddingTokens(
  tokenizer: Tokenizer,
  input: PromptInput,
  limits: InputLimits,
  param: string,
): Steps<number[]> {
  if (input.type === "spans") {
    const length = input.spans.reduce((sum, { text }) => sum + text.length, 0);
    const fewest = Math.ceil(length / limits.longestToken);
    if (fewest > limits.longest) throw inputTooLong(`more than ${fewest}`, fewest, limits.longest, param);
  }
  const tokens = yield* tokenizePrompt(tokenizer, input, param);
  if (tokens.length === 0) throw invalidRequest(`Invalid '${param}': it has no tokens.`, param, "empty_string");
  if (tokens.length > limits.longest) throw inputTooLong(`${tokens.length}`, tokens.length, limits.longest, param);
  return tokens;
}

/** In OpenAI's words. */
export function inputTooLong(
  count: string,
  asked: number,
  most: number,
  param: string,
  what: string = param,
): FailureError {
  return new FailureError({
    kind: "context-overflow",
    message: `This model's maximum input length is ${most} tokens. However, ${what} has ${count} tokens. Please reduce its length.`,
    status: 400,
    param,
    code: "context_length_exceeded",
    tokens: { asked, most },
  });
}
