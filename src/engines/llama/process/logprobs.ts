import type { Token } from "node-llama-cpp";
import type { TokenAlternative, TokenLogprob } from "../../../generation/event.ts";
import type { LogitWindow } from "./draw-token.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** OpenAI's stand-in for the logarithm of 0 (its specification, `logprob`). */
const impossible = -9999;

/** A token's logprob under the raw distribution, with its likeliest rivals. `window` null: it is not known, null. */
export function tokenLogprob(
  vocabulary: Vocabulary,
  token: Token,
  window: LogitWindow | null,
  top: number,
): TokenLogprob {
  if (!window) return { ...spelled(vocabulary, token), logprob: null, top: [] };
  const largest = window.logits[0] ?? 0;
  const total = window.logits.reduce((sum, logit) => sum + Math.exp(logit - largest), window.othersWeight);
  const logTotal = largest + Math.log(total);
  const at = window.tokens.indexOf(token);
  return {
    ...spelled(vocabulary, token),
    logprob: Math.max(impossible, (window.logits[at] ?? -Infinity) - logTotal),
    top: window.tokens.slice(0, top).map((rival, i): TokenAlternative => ({
      ...spelled(vocabulary, rival as Token),
      logprob: (window.logits[i] ?? -Infinity) - logTotal,
    })),
  };
}

function spelled(vocabulary: Vocabulary, token: Token): { token: string; bytes: readonly number[] } {
  const bytes = vocabulary.bytes(token);
  return { token: decoder.decode(bytes), bytes: [...bytes] };
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
