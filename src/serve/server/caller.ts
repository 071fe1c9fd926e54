import type { ClientKey } from "../../wire/core/client-key.ts";
import type { BodyLease } from "./body-budget.ts";
import type { Client } from "./keys/key-ring.ts";
import type { UsageLease } from "./keys/usage-lease.ts";

/** Who sent a request, as its key shows. */
export interface Caller {
  /** Absent if no key is required, or the path needs none and the request has none. */
  readonly client?: Client | undefined;
  /** The path needs no key, but others do, and the client has none or one for some models only: it must not learn model names. */
  readonly isStranger?: boolean;
  /** The client's own key, if its upstream gets it. */
  readonly ownKey?: ClientKey;
}

/** What a request holds of the server until it ends. */
export interface Held {
  /** The memory that the body takes from the server's budget. */
  readonly body?: BodyLease;
  /** Present if what the request uses is counted. */
  readonly usage?: UsageLease;
}

export function release({ body, usage }: Held): void {
  body?.release();
  usage?.end();
}
