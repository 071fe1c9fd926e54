import type { TokenAlternative, TokenLogprob } from "../../core/events.ts";
import type { RepairLog } from "./repairs.ts";
import { isObject, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** The log probabilities of one delta's text and refusal. */
export interface ReadLogprobs {
  readonly text: readonly TokenLogprob[] | null;
  readonly refusal: readonly TokenLogprob[] | null;
}

/**
 * Reads log probabilities in the four shapes that servers send. null: none.
 *
 * - OpenAI's chat: `{content: [{token, logprob, bytes, top_logprobs}], refusal: […]}`
 * - OpenAI's completions: `{tokens, token_logprobs, top_logprobs: [{token: logprob}], text_offset}`
 * - Together's: the same without alternatives, `top_logprobs` absent, or a list of such lists
 * - a bare float: the logprob of the one token that `text` is
 */
export function readLogprobs(raw: unknown, text: string, repairs: RepairLog): ReadLogprobs | null {
  if (raw === null || raw === undefined) return null;
  if (typeof raw === "number") {
    repairs.note("logprobs-shape");
    return text === "" ? null : { text: [token(text, raw, null, [])], refusal: null };
  }
  if (Array.isArray(raw)) {
    repairs.note("logprobs-shape");
    return { text: chatTokens(raw), refusal: null };
  }
  if (!isObject(raw)) return null;
  if (Array.isArray(raw["tokens"])) return { text: parallelTokens(raw), refusal: null };
  return {
    text: Array.isArray(raw["content"]) ? chatTokens(raw["content"]) : null,
    refusal: Array.isArray(raw["refusal"]) ? chatTokens(raw["refusal"]) : null,
  };
}

/** OpenAI's list, in chat and in Responses. */
export function chatTokens(list: readonly unknown[]): TokenLogprob[] {
  return list.filter(isObject).map((entry) => {
    const top = Array.isArray(entry["top_logprobs"]) ? entry["top_logprobs"].filter(isObject) : [];
    return token(scalarText(entry["token"]), entry["logprob"], entry["bytes"], top.map(alternative));
  });
}

/**
 * Returns the tokens of the text. llama.cpp's server and Ollama list those of reasoning and calls, too: in a whole answer before those of the
 * text, in a stream in chunks of their own. vLLM lists the token that ends the answer. `hasOthers`: the answer or chunk may have such tokens.
 * An empty text without them may have a token that is a part of a character.
 */
export function tokensOfText(
  tokens: readonly TokenLogprob[],
  text: string,
  hasOthers: boolean,
  repairs: RepairLog,
): readonly TokenLogprob[] {
  if (!hasOthers || tokens.length === 0) return tokens;
  let joined = tokens.map(({ token }) => token).join("");
  let to = tokens.length;
  if (!joined.endsWith(text)) joined = joined.slice(0, joined.length - (tokens[--to]?.token.length ?? 0));
  if (!joined.endsWith(text)) return tokens;
  let from = text === "" ? to : 0;
  let before = text === "" ? 0 : joined.length - text.length;
  while (before > 0) before -= tokens[from++]?.token.length ?? before;
  // The text begins in the middle of a token.
  if (before < 0) from = 0;
  if (from === 0 && to === tokens.length) return tokens;
  repairs.note("logprobs-other-tokens");
  return tokens.slice(from, to);
}

function alternative(entry: JsonObject): TokenAlternative {
  return {
    token: scalarText(entry["token"]),
    logprob: number(entry["logprob"]),
    bytes: bytes(entry["bytes"]),
  };
}

/** Parallel lists, one entry a token. */
function parallelTokens(raw: JsonObject): TokenLogprob[] {
  const tokens = raw["tokens"] as readonly unknown[];
  const logprobs = Array.isArray(raw["token_logprobs"]) ? (raw["token_logprobs"] as unknown[]) : [];
  const tops = Array.isArray(raw["top_logprobs"]) ? (raw["top_logprobs"] as unknown[]) : [];
  return tokens.map((text, i) => {
    const top = tops[i];
    const alternatives = isObject(top)
      ? Object.entries(top).map(([token, logprob]) => ({ token, logprob: number(logprob), bytes: null }))
      : [];
    return token(scalarText(text), logprobs[i], null, alternatives);
  });
}

function token(text: string, logprob: unknown, rawBytes: unknown, top: readonly TokenAlternative[]): TokenLogprob {
  return { token: text, logprob: number(logprob), bytes: bytes(rawBytes), top };
}

/** OpenAI's value for impossible tokens is −9999. It replaces −Infinity, which is read as null. */
function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : -9999;
}

function bytes(value: unknown): readonly number[] | null {
  return Array.isArray(value) && value.every((byte) => typeof byte === "number") ? (value as number[]) : null;
}
