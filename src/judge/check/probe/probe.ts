import type { Exchange } from "../rules/exchange.ts";
import type { ProfileName } from "../rules/profile/profile-rule.ts";
import { vendorOf } from "../rules/exchange.ts";

/** One request that is sent to a server under check. */
export interface Probe {
  readonly id: string;
  /** What it asks, in a few words. */
  readonly about: string;
  readonly endpoint: Exchange["endpoint"];
  readonly method: "GET" | "POST" | "DELETE";
  /** Behind the base URL: `/chat/completions`. */
  readonly path: (model: string) => string;
  readonly body?: (model: string) => Record<string, unknown>;
  /** Sent instead of `body`, unchanged. */
  readonly rawBody?: string;
  /**
   * What must come back. "answer": status 200. "refusal": a 4xx that names `param`, because the request is invalid. "any": the server
   * may answer or refuse; either way the rules judge what it sent.
   */
  readonly expects: "answer" | { readonly refusal: number; readonly param: string | null } | "any";
  /** The value of `anthropic-version`, for requests to Anthropic's API. Default 2023-06-01. */
  readonly version?: string;
  /** The probe is sent only if this profile is demanded. */
  readonly profile?: ProfileName;
  /** Why an answer shows nothing about the probe's subject ("the model called no tool"); undefined when it does. */
  readonly notShown?: (exchange: Exchange) => string | undefined;
}

export interface ProbeResult {
  readonly probe: Probe;
  /** undefined: there was no answer. */
  readonly exchange: Exchange | undefined;
  /** Why there is no answer. */
  readonly failure?: string;
  readonly milliseconds: number;
}

/** Headers of a request: the key in the form of its API, and the version of the API. */
export function requestHeaders(
  { endpoint, version = "2023-06-01" }: Pick<Exchange, "endpoint"> & Pick<Probe, "version">,
  key: string | undefined,
): Record<string, string> {
  const vendor = vendorOf({ endpoint });
  if (vendor === "Google") return key === undefined ? {} : { "x-goog-api-key": key };
  if (vendor === "Anthropic") return { "anthropic-version": version, ...(key !== undefined && { "x-api-key": key }) };
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
