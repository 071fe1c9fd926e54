import { isObject } from "../core/json.ts";
import type { CapturedExchange } from "./captured-exchange.ts";

/**
 * The exchanges of a HAR file, as browsers save it. It holds a body as a whole, so its timing is that of its end.
 * Source: HTTP Archive 1.2.
 */
export function readHar(value: unknown, from: string): CapturedExchange[] {
  const entries = isObject(value) && isObject(value["log"]) ? value["log"]["entries"] : undefined;
  if (!Array.isArray(entries)) throw new Error(`${from}: expected a HAR file: {"log":{"entries":[…]}}`);
  return entries.flatMap((entry: unknown, at) => {
    const exchange = isObject(entry) ? exchangeOf(entry, `${from}: log.entries[${at}]`) : undefined;
    return exchange ? [exchange] : [];
  });
}

function exchangeOf(entry: Readonly<Record<string, unknown>>, from: string): CapturedExchange | undefined {
  const { request, response, time } = entry;
  if (!isObject(request) || !isObject(response)) return undefined;
  const { url, method, postData } = request;
  if (typeof url !== "string" || typeof method !== "string" || !URL.canParse(url)) return undefined;
  const { pathname, search } = new URL(url);
  const body = isObject(postData) ? postData["text"] : undefined;
  const content = isObject(response["content"]) ? response["content"] : {};
  const text = typeof content["text"] === "string" ? content["text"] : "";
  const ms = typeof time === "number" ? time : 0;
  return {
    from,
    request: { method, path: pathname + search, ...(typeof body === "string" && { body }) },
    response: {
      status: Number(response["status"]) || 200,
      headers: headersOf(response["headers"]),
      pieces: text === "" ? [] : [content["encoding"] === "base64" ? { ms, base64: text } : { ms, text }],
    },
  };
}

/** Headers without those that describe the encoding of the body: HAR contains the decoded body. */
function headersOf(value: unknown): [string, string][] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((header: unknown): [string, string][] => {
    if (!isObject(header) || typeof header["name"] !== "string" || typeof header["value"] !== "string") return [];
    // HTTP/2's own, such as ":status".
    if (header["name"].startsWith(":") || header["name"].toLowerCase() === "content-encoding") return [];
    return [[header["name"], header["value"]]];
  });
}
