import type { TokenAlternative, TokenLogprob } from "../core/events.ts";
import type { JsonValue } from "./json-text.ts";
import { JsonText } from "./json-text.ts";

/** Prints a finite number. */
export type PrintNumber = (value: number) => string;

/** A choice's log probabilities in the form of chat: of its text, or of its refusal; null without any. */
export function chatLogprobs(
  text: readonly TokenLogprob[] | null | undefined,
  refusal: readonly TokenLogprob[] | null | undefined,
  print: PrintNumber,
): JsonValue {
  if (!text && !refusal) return null;
  return { content: text ? tokens(text, print) : null, refusal: refusal ? tokens(refusal, print) : null };
}

/** `chatLogprobs` as compact JSON text, for streams, where every token has one. */
export function chatLogprobsText(
  text: readonly TokenLogprob[] | undefined,
  refusal: readonly TokenLogprob[] | undefined,
  print: PrintNumber,
): string {
  if (!text && !refusal) return "null";
  return `{"content":${text ? tokensText(text, print) : "null"},"refusal":${refusal ? tokensText(refusal, print) : "null"}}`;
}

function tokensText(list: readonly TokenLogprob[], print: PrintNumber): string {
  let text = "";
  for (const token of list) {
    let top = "";
    for (const other of token.top) top += `${top && ","}{${alternativeText(other, print)}}`;
    text += `${text && ","}{${alternativeText(token, print)},"top_logprobs":[${top}]}`;
  }
  return `[${text}]`;
}

function alternativeText({ token, logprob, bytes }: TokenAlternative, print: PrintNumber): string {
  return `"token":${JSON.stringify(token)},"logprob":${numberText(logprob, print)},"bytes":${bytes ? `[${bytes.join(",")}]` : "null"}`;
}

function tokens(list: readonly TokenLogprob[], print: PrintNumber): JsonValue {
  return list.map((token) => ({
    ...alternative(token, print),
    top_logprobs: token.top.map((other) => alternative(other, print)),
  }));
}

function alternative(
  { token, logprob, bytes }: TokenAlternative,
  print: PrintNumber,
): { readonly [key: string]: JsonValue } {
  return { token, logprob: logprobNumber(logprob, print), bytes };
}

/** JSON has no infinity: impossible tokens get OpenAI's -9999 (specification, `logprob`). */
const lowest = -9999;

/** A logprob as JSON. */
export function logprobNumber(logprob: number | null, print: PrintNumber): JsonValue {
  return logprob === null ? null : new JsonText(numberText(logprob, print));
}

function numberText(logprob: number | null, print: PrintNumber): string {
  if (logprob === null) return "null";
  return print(Math.max(logprob, lowest));
}
