import { FailureError } from "../core/failure.ts";
import { profileHeader } from "./exchange.ts";
import type { Exchange, HeaderFields } from "./exchange.ts";

/**
 * Which web pages may call: the CORS half of the server. A page that may not is refused outright (403) instead of merely kept from
 * reading the answer, since a local model without a key would otherwise work for every page that its user opens.
 */
export interface Origins {
  /** Headers for the answer. Throws `FailureError` 403 when the page may not call. */
  headersFor(exchange: Pick<Exchange, "header">): HeaderFields;
}

export interface OriginOptions {
  /**
   * Origins (`https://app.example.com`) or `*`. Empty: pages from this machine (`http://localhost:…`, `http://127.0.0.1:…`), and
   * installed apps, whose pages have schemes of their own (`app://`, `file://`, `vscode-webview://`), which no web page can have.
   */
  readonly allowed: readonly string[];
  /** Clients need a key, so that a page served under the API's own name cannot be an impostor's (DNS rebinding). */
  readonly keysRequired: boolean;
  /** Names of this server beside those that no stranger can own. Absent: it is part of another one, which knows its names. */
  readonly ownNames?: readonly string[];
  /** What else than `--cors-origin` lets it be known by another name, for the message: `with a key (--api-key), or `. */
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
  // Clients name the server as they did before.
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
        "access-control-expose-headers": "X-Request-ID, X-Truewire-Warning",
        ...(!all && { vary: "Origin" }),
      };
    },
  };
}

/** For a handler inside somebody else's server, which decides about pages itself. */
export const unrestrictedOrigins: Origins = { headersFor: () => ({}) };

/** The request headers that mean something here. */
const ownHeaders = `authorization, content-type, ${profileHeader.toLowerCase()}`;

/** What a browser asks before it sends a page's request (CORS protocol, preflight). */
export function preflightHeaders(exchange: Exchange, methods: readonly string[]): HeaderFields {
  return {
    "access-control-allow-methods": [...methods, "OPTIONS"].join(", "),
    "access-control-allow-headers": exchange.header("access-control-request-headers") ?? ownHeaders,
    "access-control-max-age": "7200",
    ...(exchange.header("access-control-request-private-network") === "true" && {
      "access-control-allow-private-network": "true",
    }),
  };
}

/** Whether a host name or address is this machine's own loopback. */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3})$/i.test(hostname) || ["[::1]", "::1"].includes(hostname);
}

function isLocal(page: URL): boolean {
  return (page.protocol !== "http:" && page.protocol !== "https:") || isLoopback(page.hostname);
}

const anyOrigin: HeaderFields = { "access-control-allow-origin": "*" };
const noOrigin: HeaderFields = {};

/**
 * The page comes from this very server. A name can be made to point here by anybody (DNS rebinding), an address cannot; with `ownNames`,
 * the name is one that `requireOwnHost` has let pass.
 */
function isOwn(page: URL, exchange: Pick<Exchange, "header">, options: OriginOptions): boolean {
  if (page.host !== exchange.header("host")?.toLowerCase()) return false;
  return (
    options.keysRequired ||
    options.ownNames !== undefined ||
    isLoopback(page.hostname) ||
    /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/.test(page.hostname)
  );
}

/**
 * Anybody can let a name of his own point to this machine; a browser then takes this server for a part of that name's site, and its pages
 * may read every answer (DNS rebinding). So without keys a request must name the server by what nobody else can own: an address, a
 * name without dots or of a local domain (RFC 6762, RFC 8375, RFC 9476; `.internal` is ICANN's), or one from the configuration.
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
