import { vendorOf } from "../rules/exchange.ts";
import type { Exchange } from "../rules/exchange.ts";
import type { Probe } from "./probe.ts";

/** Headers of a request: the key in the form of its API, and the version of the API. */
export function requestHeaders(
  { endpoint, version = "2023-06-01" }: Pick<Exchange, "endpoint"> & Pick<Probe, "version">,
  key: string | undefined,
): Record<string, string> {
  if (vendorOf({ endpoint }) === "Anthropic")
    return { "anthropic-version": version, ...(key !== undefined && { "x-api-key": key }) };
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
