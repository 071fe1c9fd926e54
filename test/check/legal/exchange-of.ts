import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";

/** An exchange of Ollama's or Gemini's API; without more, an answer in JSON with status 200 to a request that is not known. */
export function exchangeOf(
  endpoint: Exchange["endpoint"],
  path: string,
  text: string,
  more: { readonly body?: Record<string, unknown>; readonly type?: string; readonly status?: number } = {},
): Exchange {
  const { body, type = "application/json; charset=utf-8", status = 200 } = more;
  return {
    endpoint,
    request: { method: "POST", path, ...(body && { body }) },
    response: { status, headers: { "content-type": type }, body: text, complete: true },
  };
}
