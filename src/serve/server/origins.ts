import { FailureError, upstreamRequestId } from "../../wire/core/failure.ts";
import { profileHeader, resumeHeader } from "./exchange.ts";
import type { HttpExchange, HeaderFields } from "./exchange.ts";

/**
 * CORS: which web pages may use the server. A page that may not is refused (403), instead of only being kept from reading the answer:
 * otherwise, any page that its user opens could make a local model without a key generate.
 */
export interface Origins {
  /** Returns headers for the answer. Throws `FailureError` 403 if the page may not use the server. */
  headersFor(exchange: Pick<HttpExchange, "header">): HeaderFields;
}

export interface OriginOptions {
  /**
   * Origins (`https://app.example.com`) or `*`. Empty: pages of this machine (`http://localhost:…`, `http://127.0.0.1:…`) and of
   * installed apps, which have schemes that web pages cannot have (`app://`, `file://`, `vscode-webview://`).
   */
  readonly allowed: readonly string[];
  /** Whether clients need a key. If so, DNS rebinding is no danger. */
  readonly keysRequired: boolean;
  /** Further names of this server. Absent: it is part of another server, which checks names itself. */
  readonly ownNames?: readonly string[];
  /** For the error message: the alternative to `--cors-origin`, such as `with a key (--api-key), or `. */
  readonly otherWay?: string;
}

export function restrictedOrigins(options: OriginOptions): Origins {
  const all = options.allowed.includes("*");
  const listed = new Set(options.allowed.map((origin) => origin.replace(/\/$/, "").toLowerCase()));
  const ownNames = new Set(
    [...(options.ownNames ?? []), ...options.allowed.flatMap((origin) => parsedOrigin(origin)?.hostname ?? [])].map(
      (name) => name.toLowerCase(),
    ),
  );
  const checksHost = options.ownNames !== undefined && !options.keysRequired && !all;
  // Most requests have the same host as the one before.
  let knownHost: string | undefined;
  return {
    headersFor(exchange) {
      const host = checksHost ? exchange.header("host") : undefined;
      if (host !== knownHost) {
        requireOwnHost(host, ownNames, options.otherWay ?? "");
        knownHost = host;
      }
      const origin = exchange.header("origin");
      if (origin === undefined) return all ? anyOrigin : noOrigin;
      const url = parsedOrigin(origin);
      const may =
        all ||
        listed.has(origin.toLowerCase()) ||
        (url !== null && ((listed.size === 0 && isLocal(url)) || isOwn(url, exchange, options)));
      if (!may) throw originRefused(origin);
      return {
        "access-control-allow-origin": all ? "*" : origin,
        "access-control-expose-headers": exposed,
        ...(!all && { vary: "Origin" }),
      };
    },
  };
}

const limits = ["limit", "remaining", "reset"];

/** The headers that pages of other origins may read: the clients of OpenAI and Anthropic do. A wildcard would not cover credentials. */
const exposed = [
  "X-Request-ID",
  "X-Truewire-Warning",
  "X-Truewire-Resume",
  upstreamRequestId,
  "request-id",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  ...["requests", "tokens"].flatMap((rate) => limits.map((part) => `x-ratelimit-${part}-${rate}`)),
  ...["requests", "tokens", "input-tokens", "output-tokens"].flatMap((rate) =>
    limits.map((part) => `anthropic-ratelimit-${rate}-${part}`),
  ),
].join(", ");

/** For a handler in another server, which implements CORS itself. */
export const unrestrictedOrigins: Origins = { headersFor: () => ({}) };

/** The request headers that this server reads. */
const ownHeaders = `authorization, content-type, last-event-id, ${profileHeader.toLowerCase()}, ${resumeHeader}`;

/** The headers of the answer to a preflight request. Source: Fetch standard, CORS protocol. */
export function preflightHeaders(exchange: HttpExchange, methods: readonly string[]): HeaderFields {
  return {
    "access-control-allow-methods": [...methods, "OPTIONS"].join(", "),
    "access-control-allow-headers": exchange.header("access-control-request-headers") ?? ownHeaders,
    "access-control-max-age": "7200",
    ...(exchange.header("access-control-request-private-network") === "true" && {
      "access-control-allow-private-network": "true",
    }),
  };
}

/** Whether a host name or address is a loopback of this machine. */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3})$/i.test(hostname) || ["[::1]", "::1"].includes(hostname);
}

function isLocal(page: URL): boolean {
  return (page.protocol !== "http:" && page.protocol !== "https:") || isLoopback(page.hostname);
}

const anyOrigin: HeaderFields = { "access-control-allow-origin": "*" };
const noOrigin: HeaderFields = {};

/**
 * Whether the page is one of this server. Anyone can let a name point to this server (DNS rebinding), but not an address; with `ownNames`,
 * `requireOwnHost` has checked the name.
 */
function isOwn(page: URL, exchange: Pick<HttpExchange, "header">, options: OriginOptions): boolean {
  if (page.host !== exchange.header("host")?.toLowerCase()) return false;
  return (
    options.keysRequired ||
    options.ownNames !== undefined ||
    isLoopback(page.hostname) ||
    /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/.test(page.hostname)
  );
}

/**
 * Prevents DNS rebinding: an attacker's name may point to this machine, and then pages of that name could read every answer. Without keys, a
 * request must name the server by an address, by a name without dots or of a local domain (RFC 6762, RFC 8375, RFC 9476; `.internal` is
 * reserved by ICANN), or by a name in the configuration.
 */
function requireOwnHost(host: string | undefined, ownNames: ReadonlySet<string>, otherWay: string): void {
  if (host === undefined || host === "") return;
  const url = parsedOrigin(`http://${host}`);
  const name = url?.hostname.replace(/\.$/, "") ?? host;
  const isAddress = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/.test(name);
  const isLocalName =
    !name.includes(".") || /\.(?:localhost|local|localdomain|lan|internal|home\.arpa|alt)$/i.test(name);
  if (url && (isAddress || isLocalName || ownNames.has(name.toLowerCase()))) return;
  throw new FailureError({
    message: `This server is not known as '${host}'. Start it ${otherWay}with --cors-origin http://${host}, to serve under this name.`,
    status: 403,
    kind: "permission",
    param: null,
    code: "host_not_allowed",
  });
}

function parsedOrigin(origin: string): URL | null {
  return URL.canParse(origin) ? new URL(origin) : null;
}

function originRefused(origin: string): FailureError {
  return new FailureError({
    message: `Pages from '${origin}' may not use this server. Start it with --cors-origin ${origin} to let them.`,
    status: 403,
    kind: "permission",
    param: null,
    code: "origin_not_allowed",
  });
}
