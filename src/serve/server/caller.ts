import type { ClientKey } from "../../wire/core/client-key.ts";
import type { UsageLimits } from "../kv/limits.ts";
import type { BodyBudget, BodyLease } from "./body-budget.ts";
import type { Client } from "./keys/key-ring.ts";
import type { UsageLease } from "./keys/usage-lease.ts";

/** Who sent a request, as its key tells. */
export class Caller {
  #client: Client | undefined;
  #isStranger = false;
  #ownKey: ClientKey | undefined;

  /** Undefined if no key is required, or the path needs none and the request has none. */
  get client(): Client | undefined {
    return this.#client;
  }

  /** The path needs no key, but others do, and the client has none or one for some models only: it must not learn model names. */
  get isStranger(): boolean {
    return this.#isStranger;
  }

  /** The client's own key, if its upstream gets it. */
  get ownKey(): ClientKey | undefined {
    return this.#ownKey;
  }

  identify(client: Client | undefined): void {
    this.#client = client;
    this.#isStranger = client === undefined || client.models !== undefined;
  }

  /** `key` goes to the upstream, whose limits, if it has any, hold for this client. */
  usesOwnKey(key: ClientKey, limits: UsageLimits | undefined): void {
    this.#ownKey = key;
    if (this.#client && limits) this.#client = { ...this.#client, limits };
  }
}

/** What a request holds of the server until it ends: memory for its body, and its part of the client's limits. */
export class Held {
  #body: BodyLease | undefined;
  #usage: UsageLease | undefined;

  /** The memory that the body takes from the server's budget; undefined before the body is read. */
  get body(): BodyLease | undefined {
    return this.#body;
  }

  /** Undefined if nobody counts what the request uses. */
  get usage(): UsageLease | undefined {
    return this.#usage;
  }

  /** The lease of the body: the same for each call. */
  bodyFrom(budget: BodyBudget): BodyLease {
    return (this.#body ??= budget.lease());
  }

  countUsage(lease: UsageLease): void {
    this.#usage = lease;
  }

  /** Moves everything into another one, for an answer that outlasts its exchange. */
  handOver(): Held {
    const taken = new Held();
    taken.takeFrom(this);
    return taken;
  }

  /** Moves everything back that `handOver` has moved. */
  takeFrom(other: Held): void {
    this.#body = other.#body;
    this.#usage = other.#usage;
    other.#body = undefined;
    other.#usage = undefined;
  }

  release(): void {
    this.#body?.release();
    this.#usage?.end();
  }
}
