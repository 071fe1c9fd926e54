import { vendorOf } from "../rules/exchange.ts";
import type { Exchange } from "../rules/exchange.ts";

/** What a request says of itself beside its body: how its API has the key, and which version of the API it means. */
export function requestHeaders(of: Pick<Exchange, "endpoint">, key: string | undefined): Record<string, string> {
  if (vendorOf(of) === "Anthropic")
    return { "anthropic-version": "2023-06-01", ...(key !== undefined && { "x-api-key": key }) };
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
