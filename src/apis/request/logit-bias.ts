import { isObject } from "../../core/json.ts";
import type { RequestDraft } from "./draft.ts";
import { valuePhrase } from "./issue-failure.ts";
import { checkTotalLength } from "./text-limits.ts";
import { arrayTooLong, invalidType, invalidValue, numberAbove, numberBelow } from "./refusals.ts";

/** Each text is made tokens of before the model's next step. */
const mostTexts = 1000;

/**
 * Reads `logit_bias`: OpenAI's object by token id; in profile `lean` also by text, and llama.cpp's list of pairs (README of its server,
 * `logit_bias`), where `false` bans. Throws `FailureError`.
 */
export function readLogitBias(value: unknown, draft: RequestDraft): void {
  const strict = draft.profile.judgesAsVendor;
  const ids: Record<string, number> = {};
  const texts: { text: string; bias: number }[] = [];
  const add = (token: string, isText: boolean, amount: unknown, path: string): void => {
    const bias = biasOf(amount, path, !strict);
    if (isText) texts.push({ text: token, bias });
    else ids[token] = bias;
  };
  if (isObject(value)) {
    for (const [token, amount] of Object.entries(value)) {
      const isText = !/^\d+$/.test(token);
      if (isText && (strict || token === ""))
        throw invalidValue("logit_bias", `'${token}' is not a token id.`, "invalid_value");
      add(token, isText, amount, `logit_bias.${token}`);
    }
  } else if (Array.isArray(value) && !strict) {
    for (const [at, pair] of value.entries()) {
      const path = `logit_bias[${at}]`;
      if (!Array.isArray(pair) || pair.length !== 2) throw invalidType(path, "an array of two", valuePhrase(pair));
      const [token, amount] = pair as readonly unknown[];
      const isId = Number.isSafeInteger(token) && Number(token) >= 0;
      if (!isId && (typeof token !== "string" || token === ""))
        throw invalidType(`${path}[0]`, "one of a token id or a string", valuePhrase(token));
      add(String(token), !isId, amount, `${path}[1]`);
    }
  } else throw invalidType("logit_bias", "an object", valuePhrase(value));
  if (texts.length > mostTexts) throw arrayTooLong("logit_bias", mostTexts, texts.length);
  checkTotalLength(
    "logit_bias",
    texts.map(({ text }) => text),
  );
  if (Object.keys(ids).length > 0) draft.sampling.logitBias = ids;
  if (texts.length > 0) draft.sampling.textBias = texts;
}

function biasOf(amount: unknown, path: string, takesFalse: boolean): number {
  if (amount === false && takesFalse) return -100;
  if (typeof amount !== "number") throw invalidType(path, "a decimal", valuePhrase(amount));
  if (amount < -100) throw numberBelow(path, "decimal", -100, amount);
  if (amount > 100) throw numberAbove(path, "decimal", 100, amount);
  return amount;
}
