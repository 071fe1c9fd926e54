import { vendorOf } from "../rules/exchange.ts";
import type { Exchange } from "../rules/exchange.ts";

/** Headers of a request: the key in the form of its API, and the version of the API. */
export function requestHeaders(of: Pick<Exchange, "endpoint">, key: string | undefined): Record<string, string> {
  if (vendorOf(of) === "Anthropic")
    return { "anthropic-version": "2023-06-01", ...(key !== undefined && { "x-api-key": key }) };
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
