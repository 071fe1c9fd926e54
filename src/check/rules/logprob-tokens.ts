import { isObject } from "../../core/json.ts";
import { type Json } from "./view.ts";

/** What is wrong with one token of a logprobs list in one respect; undefined when nothing is. */
export function tokenOffence(token: unknown, kind: "shape" | "value" | "bytes" | "order"): string | undefined {
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
  // The token of half a character cannot be written as text: it holds the replacement character, or an escape such as \xe2.
  if (token.token.includes("\uFFFD") || token.token.includes("\\x")) return true;
  const bytes = new TextEncoder().encode(token.token);
  return bytes.length === token.bytes.length && bytes.every((byte, i) => byte === (token.bytes as number[])[i]);
}

/** The text of a list of tokens: by bytes where there are any, since the token of half a character has no text of its own. */
export function textOfTokens(list: readonly Json[]): string {
  const bytes = list.flatMap((token) =>
    Array.isArray(token.bytes) ? (token.bytes as number[]) : [...new TextEncoder().encode(String(token.token))],
  );
  return new TextDecoder().decode(new Uint8Array(bytes));
}
