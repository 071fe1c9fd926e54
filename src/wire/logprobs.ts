import type { TokenAlternative, TokenLogprob } from "../generation/event.ts";
import type { JsonValue } from "./json-text.ts";
import { floatText, JsonText, jsonText } from "./json-text.ts";
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

/** The same, as compact JSON. */
export function chatLogprobsText(
  text: readonly TokenLogprob[] | undefined,
  refusal: readonly TokenLogprob[] | undefined,
  profile: Profile,
): string {
  return jsonText(chatLogprobs(text, refusal, profile));
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

/**
 * A logprob as a JSON number. JSON has no infinity: impossible tokens get OpenAI's -9999 (specification, `logprob`). Profile
 * `openai` prints it as OpenAI does.
 */
export function logprobNumber(logprob: number, profile: Profile): JsonValue {
  const finite = Math.max(logprob, -9999);
  return profile.name === "openai" ? new JsonText(floatText(finite)) : finite;
}
