import { isObject } from "../../core/json.ts";
import { type Json } from "./view.ts";

/** Whether these are the log probabilities of a completion: four lists, in place of chat's objects. */
export function isTokenLists(logprobs: unknown): logprobs is Json {
  return isObject(logprobs) && "token_logprobs" in logprobs;
}

/**
 * What is wrong with the lists of a completion's log probabilities, and in which; undefined when nothing is. Source: specification,
 * `CreateCompletionResponse`; what has none is null, as the first token of an echoed prompt (llama.cpp #27174).
 */
export function tokenListsOffence(logprobs: Json): { readonly member: string; readonly found: string } | undefined {
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
    if (wrong) return { member: "top_logprobs", found: `${JSON.stringify(top)} beside the log probability ${value}` };
  }
  return undefined;
}

/** Where no alternatives were asked for, the list of them may be left out or null. */
function isListed(tops: unknown): boolean {
  return tops !== undefined && tops !== null;
}
