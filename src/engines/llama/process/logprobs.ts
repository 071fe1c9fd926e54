import type { Token } from "node-llama-cpp";
import type { TokenAlternative, TokenLogprob } from "../../../generation/event.ts";
import type { LogitWindow } from "./draw-token.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** A token's logprob under the raw distribution, with its likeliest rivals. `window` null: not known, the logprob is 0. */
export function tokenLogprob(
  vocabulary: Vocabulary,
  token: Token,
  window: LogitWindow | null,
  top: number,
): TokenLogprob {
  if (!window) return { ...spelled(vocabulary, token), logprob: 0, top: [] };
  const largest = window.logits[0] ?? 0;
  const total = window.logits.reduce((sum, logit) => sum + Math.exp(logit - largest), window.othersWeight);
  const logTotal = largest + Math.log(total);
  const at = window.tokens.indexOf(token);
  return {
    ...spelled(vocabulary, token),
    logprob: (at < 0 ? -Infinity : (window.logits[at] ?? -Infinity)) - logTotal,
    top: window.tokens.slice(0, top).map((rival, i): TokenAlternative => ({
      ...spelled(vocabulary, rival as Token),
      logprob: (window.logits[i] ?? -Infinity) - logTotal,
    })),
  };
}

function spelled(vocabulary: Vocabulary, token: Token): { token: string; bytes: readonly number[] } {
  const bytes = vocabulary.bytes(token);
  return { token: escapedText(bytes), bytes: [...bytes] };
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

/** UTF-8 text, in which bytes that are no whole character are written as OpenAI does: `\xf0\x9f`. */
function escapedText(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    return pieces(bytes);
  }
}

function pieces(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const length = [1, 2, 3, 4].find(
      (length) => at + length <= bytes.length && !lenient.decode(bytes.subarray(at, at + length)).includes("\ufffd"),
    );
    text +=
      length === undefined
        ? `\\x${(bytes[at] ?? 0).toString(16).padStart(2, "0")}`
        : lenient.decode(bytes.subarray(at, at + length));
    at += length ?? 1;
  }
  return text;
}
