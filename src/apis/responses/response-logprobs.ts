import type { TokenAlternative, TokenLogprob } from "../../core/events.ts";
import { JsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { NumberForm } from "./number-form.ts";

/** JSON has no infinity: impossible tokens get OpenAI's -9999 (specification, `logprob`). */
const lowest = -9999;

/** The `logprobs` of an event: members by the alphabet, numbers whole. */
export function logprobsText(tokens: readonly TokenLogprob[], number: NumberForm): string {
  let text = "";
  for (const token of tokens) {
    let top = "";
    for (const other of token.top) top += `${top && ","}{${alternativeText(other, number)}}`;
    text += `${text && ","}{${alternativeText(token, number)},"top_logprobs":[${top}]}`;
  }
  return `[${text}]`;
}

function alternativeText({ token, logprob, bytes }: TokenAlternative, number: NumberForm): string {
  return `"bytes":${bytes ? `[${bytes.join(",")}]` : "[]"},"logprob":${numberText(logprob, number)},"token":${JSON.stringify(token)}`;
}

/** The `logprobs` of a whole item: OpenAI rounds them to six decimals there (recordings of 2026-04 and 2026-05). */
export function itemLogprobs(tokens: readonly TokenLogprob[], number: NumberForm): JsonValue {
  const alternative = ({ token, logprob, bytes }: TokenAlternative) => ({
    bytes: bytes ?? [],
    logprob: new JsonText(numberText(logprob === null ? null : Number(logprob.toFixed(6)), number)),
    token,
  });
  return tokens.map((token) => ({ ...alternative(token), top_logprobs: token.top.map(alternative) }));
}

function numberText(logprob: number | null, number: NumberForm): string {
  return logprob === null ? "null" : number(Math.max(logprob, lowest));
}
