import type { TokenAlternative, TokenLogprob } from "../generation/event.ts";
import type { JsonValue } from "./json-text.ts";
import { floatText, JsonText } from "./json-text.ts";
import type { Profile } from "./profile.ts";

/** A choice's logprobs in the chat form: those of its text, or those of its refusal; null where there are none. */
export function chatLogprobs(
  text: readonly TokenLogprob[] | null | undefined,
  refusal: readonly TokenLogprob[] | null | undefined,
  profile: Profile,
): JsonValue {
  if (!text && !refusal) return null;
  return { content: text ? tokens(text, profile) : null, refusal: refusal ? tokens(refusal, profile) : null };
}

/** The same as compact JSON, put together by hand: in a stream every token has one. */
export function chatLogprobsText(
  text: readonly TokenLogprob[] | undefined,
  refusal: readonly TokenLogprob[] | undefined,
  profile: Profile,
): string {
  if (!text && !refusal) return "null";
  return `{"content":${text ? tokensText(text, profile) : "null"},"refusal":${refusal ? tokensText(refusal, profile) : "null"}}`;
}

function tokensText(list: readonly TokenLogprob[], profile: Profile): string {
  let text = "";
  for (const token of list) {
    let top = "";
    for (const other of token.top) top += `${top && ","}{${alternativeText(other, profile)}}`;
    text += `${text && ","}{${alternativeText(token, profile)},"top_logprobs":[${top}]}`;
  }
  return `[${text}]`;
}

function alternativeText({ token, logprob, bytes }: TokenAlternative, profile: Profile): string {
  return `"token":${JSON.stringify(token)},"logprob":${numberText(logprob, profile)},"bytes":${bytes ? `[${bytes.join(",")}]` : "null"}`;
}

function tokens(list: readonly TokenLogprob[], profile: Profile): JsonValue {
  return list.map((token) => ({
    ...alternative(token, profile),
    top_logprobs: token.top.map((other) => alternative(other, profile)),
  }));
}

function alternative(
  { token, logprob, bytes }: TokenAlternative,
  profile: Profile,
): { readonly [key: string]: JsonValue } {
  return { token, logprob: logprobNumber(logprob, profile), bytes };
}

/** JSON has no infinity: impossible tokens get OpenAI's -9999 (specification, `logprob`). */
const lowest = -9999;

/** A logprob as JSON; profile `exact` prints it as OpenAI does. */
export function logprobNumber(logprob: number | null, profile: Profile): JsonValue {
  return logprob === null ? null : new JsonText(numberText(logprob, profile));
}

function numberText(logprob: number | null, profile: Profile): string {
  if (logprob === null) return "null";
  const finite = Math.max(logprob, lowest);
  return profile.name === "exact" ? floatText(finite) : JSON.stringify(finite);
}
