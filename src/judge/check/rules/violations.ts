import { jsonOf } from "../../../wire/apis/tolerant/json-fence.ts";
import { isObject } from "../../../wire/core/json.ts";
import { shown } from "./place.ts";
import { type Json, parsedJson } from "./view.ts";

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

/** Returns what is wrong with one token of a logprobs list in the respect `kind`, or `undefined`. */
export function tokenViolation(token: unknown, kind: "shape" | "value" | "bytes" | "order"): string | undefined {
  if (!isObject(token)) return kind === "shape" ? "a token that is no object" : undefined;
  const top = Array.isArray(token.top_logprobs) ? token.top_logprobs.filter(isObject) : [];
  switch (kind) {
    case "shape": {
      if (!Array.isArray(token.top_logprobs)) return "a token without top_logprobs";
      const missing = [token, ...top].flatMap((one) => ["token", "logprob", "bytes"].filter((name) => !(name in one)));
      return missing[0] === undefined ? undefined : `a token without ${missing[0]}`;
    }
    case "value":
      return [token, ...top].some((one) => !(typeof one.logprob === "number" && one.logprob <= 0))
        ? `logprob ${JSON.stringify(token.logprob)}`
        : undefined;
    case "bytes":
      return [token, ...top].find((one) => !bytesFit(one)) ? "bytes that are not the token's" : undefined;
    case "order":
      return top.some((one, i) => i > 0 && Number(top[i - 1]?.logprob) < Number(one.logprob))
        ? "top_logprobs out of order"
        : undefined;
  }
}

function bytesFit(token: Json): boolean {
  if (!Array.isArray(token.bytes) || typeof token.token !== "string") return true;
  // A token with a part of a character cannot be written as text: it has the replacement character, or an escape such as \xe2.
  if (token.token.includes("\uFFFD") || token.token.includes("\\x")) return true;
  const bytes = new TextEncoder().encode(token.token);
  return bytes.length === token.bytes.length && bytes.every((byte, i) => byte === (token.bytes as number[])[i]);
}

/** Returns the text of a list of tokens, from their bytes if known: a token with a part of a character has no text. */
export function textOfTokens(list: readonly Json[]): string {
  const bytes = list.flatMap((token) =>
    Array.isArray(token.bytes) ? (token.bytes as number[]) : [...new TextEncoder().encode(String(token.token))],
  );
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** Returns whether these are the log probabilities of a completion: four lists instead of a list of objects. */
export function isTokenLists(logprobs: unknown): logprobs is Json {
  return isObject(logprobs) && "token_logprobs" in logprobs;
}

/**
 * Returns what is wrong with the lists of a completion's log probabilities, and in which, or `undefined`. A token without a log probability
 * has null, such as the first token of an echoed prompt (llama.cpp #27174). Source: specification, `CreateCompletionResponse`.
 */
export function tokenListsViolation(logprobs: Json): { readonly member: string; readonly found: string } | undefined {
  const { tokens, token_logprobs: values, top_logprobs: tops, text_offset: offsets } = logprobs;
  const lists = { token_logprobs: values, tokens, text_offset: offsets, ...(isListed(tops) && { top_logprobs: tops }) };
  const length = Array.isArray(tokens) ? tokens.length : 0;
  for (const [member, list] of Object.entries(lists)) {
    if (!Array.isArray(list)) return { member, found: `${member} is not a list` };
    if (list.length !== length) return { member, found: `${list.length} in ${member}, ${length} in tokens` };
  }
  for (const [at, value] of (values as unknown[]).entries()) {
    if (value !== null && !(typeof value === "number" && value <= 0))
      return { member: "token_logprobs", found: `the log probability ${JSON.stringify(value)}` };
    const top: unknown = Array.isArray(tops) ? tops[at] : null;
    const wrong =
      value === null ? top !== null : isObject(top) && Object.values(top).some((one) => typeof one !== "number");
    if (wrong) return { member: "top_logprobs", found: `${JSON.stringify(top)} next to the log probability ${value}` };
  }
  return undefined;
}

/** Without requested alternatives, their list may be absent or null. */
function isListed(tops: unknown): boolean {
  return tops !== undefined && tops !== null;
}

/** Markup of a model that clients should never see as text; the rules about streams and bodies share these. */

/** Returns the tag that opens reasoning at the start of a text, or `undefined`. */
export function reasoningTagIn(text: string): string | undefined {
  return /^\s*(<think>|<thinking>|\[THINK\]|<seed:think>|◁think▷)/.test(text)
    ? text.trimStart().slice(0, 12)
    : undefined;
}

/** Returns the markup of a tool call in a text, or `undefined`. */
export function callIn(text: string): string | undefined {
  return /<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|<function=|<\|tool_call|<｜tool▁call/.exec(text)?.[0];
}

/** Returns the special token at the end of a text, or `undefined`. */
export function specialTokenIn(text: string): string | undefined {
  return /(<\|im_end\|>|<\|eot_id\|>|<\|eom_id\|>|<\|endoftext\|>|<\|end\|>|<end_of_turn>|<\/s>)\s*$/.exec(text)?.[1];
}

/** What is wrong with a text that must be JSON, by the rule of the repairer; empty: nothing. */
export function notOnlyJson(text: string): string[] {
  if (parsedJson(text) !== undefined) return [];
  const { isJson, hasOtherText } = jsonOf(text);
  const how = !isJson ? "text that is not JSON" : hasOtherText ? "JSON between other text" : "JSON in a Markdown fence";
  return [`${how}: ${shown(text.slice(0, 40))}`];
}
