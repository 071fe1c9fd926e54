import { FailureError } from "../../../wire/core/failure.ts";
import type { HttpExchange } from "../exchange.ts";
import { KeyRing } from "../keys/key-ring.ts";
import { isLoopback } from "../origins.ts";

/** Headers that proxies add (RFC 7239, RFC 9110 section 7.6.3, and those of nginx and others). */
const forwarding = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/**
 * Access to the admin API: clients need an admin key. If there are none, and the server is for this machine only (it listens on loopback and
 * requires no client keys), programs on this machine and the server's own page may use it; other pages and proxied requests may not.
 */
export class AdminAccess {
  readonly #keys: KeyRing;
  readonly #isForThisMachine: boolean;

  constructor(keys: readonly string[], isForThisMachine: boolean) {
    this.#keys = new KeyRing(keys, [], false);
    this.#isForThisMachine = isForThisMachine;
  }

  /** `key`: "" if the client sent none. Throws `FailureError` 401 or 403. */
  async check(key: string, exchange: HttpExchange): Promise<void> {
    if (this.#keys.required) {
      if (!(await this.#keys.find(key))) throw wrongKey(key);
    } else if (!this.#isForThisMachine || !isFromThisMachine(exchange)) throw closed();
  }
}

function isFromThisMachine(exchange: HttpExchange): boolean {
  const host = exchange.header("host");
  const named = host !== undefined && URL.canParse(`http://${host}`) && isLoopback(new URL(`http://${host}`).hostname);
  const origin = exchange.header("origin");
  // A browser sends an origin with every POST of a page. The host is a loopback name, so a page with that origin is from this server.
  const isOwn =
    (origin === undefined || [`http://${host}`, `https://${host}`].includes(origin)) &&
    forwarding.every((name) => exchange.header(name) === undefined);
  // Browsers send it with requests that have no origin, such as those of <img> (Fetch Metadata).
  const site = exchange.header("sec-fetch-site") ?? "none";
  return exchange.isFromLoopback === true && named && isOwn && ["same-origin", "none"].includes(site);
}

function wrongKey(key: string): FailureError {
  return new FailureError({
    message:
      key === ""
        ? "The admin API needs an admin key (--admin-key), as 'Authorization: Bearer KEY'."
        : "This is not an admin key of this server (--admin-key). The keys of clients are not admin keys.",
    status: 401,
    kind: "authentication",
    code: key === "" ? null : "invalid_api_key",
  });
}

function closed(): FailureError {
  return new FailureError({
    message:
      "The admin API is closed: start the server with an admin key (--admin-key, or TRUEWIRE_ADMIN_KEY). Without one it is open to programs of this machine only, while the server listens on 127.0.0.1 and needs no key of its clients.",
    status: 403,
    kind: "permission",
    param: null,
    code: "admin_closed",
  });
}
