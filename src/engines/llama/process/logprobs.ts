import type { PromptTokenLogprob, TokenAlternative, TokenLogprob } from "../../../core/events.ts";
import type { LogitWindow } from "./raw-logprobs.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** OpenAI's stand-in for the logarithm of 0 (its specification, `logprob`). */
const impossible = -9999;

/** A token's logprob under the raw distribution, with its likeliest rivals. `window` null: it is not known, null. */
export function tokenLogprob(
  vocabulary: Vocabulary,
  token: number,
  window: LogitWindow | null,
  top: number,
): TokenLogprob {
  if (!window) return { ...spelled(vocabulary, token), logprob: null, top: [] };
  const { logTotal } = window;
  const at = window.tokens.indexOf(token);
  return {
    ...spelled(vocabulary, token),
    logprob: Math.max(impossible, (window.logits[at] ?? -Infinity) - logTotal),
    top: window.tokens.slice(0, top).map((rival, i): TokenAlternative => ({
      ...spelled(vocabulary, rival),
      logprob: (window.logits[i] ?? -Infinity) - logTotal,
    })),
  };
}

/** A token of a prompt and the likeliest ones in its place, best first; a token that is not among them stands last. */
export function rankedLogprobs(
  vocabulary: Vocabulary,
  token: number,
  window: LogitWindow,
  top: number,
): PromptTokenLogprob[] {
  const { logTotal } = window;
  const one = (id: number, at: number): PromptTokenLogprob => ({
    token: id,
    text: spelled(vocabulary, id).token,
    logprob: Math.max(impossible, (window.logits[at] ?? -Infinity) - logTotal),
    // The window has one token beyond the likeliest: this one, whose rank is then unknown.
    rank: at < Math.max(1, top) ? at + 1 : null,
  });
  const at = window.tokens.indexOf(token);
  const likeliest = window.tokens.slice(0, top).map(one);
  return at >= 0 && at < top ? likeliest : [...likeliest, one(token, at < 0 ? window.tokens.length : at)];
}

function spelled(vocabulary: Vocabulary, token: number): { token: string; bytes: readonly number[] } {
  const bytes = vocabulary.bytes(token);
  return { token: decoder.decode(bytes), bytes: [...bytes] };
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
