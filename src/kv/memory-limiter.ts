import { Account } from "./account.ts";
import type { Moment } from "./account.ts";
import type { Lease, Limiter, Limits, Refusal } from "./limits.ts";
import { levelsOf, refusalOf } from "./use.ts";
import type { Use } from "./use.ts";

/** Counts in this process alone. */
export class MemoryLimiter implements Limiter {
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => Moment;

  constructor(now: () => Moment = systemTime) {
    this.#now = now;
  }

  async take(name: string, limits: Limits, tokens: number, reserved = 0): Promise<Lease | Refusal> {
    const account = this.#account(name);
    const now = this.#now();
    const refusal = refusalOf(account.use(limits, now), limits, tokens + reserved);
    return refusal ?? this.#lease(account, limits, tokens + reserved);
  }

  /**
   * Counts a request that another limiter has taken, for `tokens` with those that are reserved, and adopts what is used there, in case
   * this limiter has to take over.
   */
  follow(name: string, limits: Limits, use: Use, tokens: number): Lease {
    const account = this.#account(name);
    // The request is in what is used, and is added again.
    account.adopt(
      { ...use, requests: use.requests - 1, tokens: use.tokens - tokens, today: use.today - tokens },
      this.#now(),
    );
    return this.#lease(account, limits, tokens);
  }

  async close(): Promise<void> {}

  #lease(account: Account, limits: Limits, tokens: number): Lease {
    const now = this.#now();
    const day = account.begin(tokens, now);
    const levels = levelsOf(account.use(limits, now), limits);
    let isOpen = true;
    return {
      levels,
      end(cost) {
        if (!isOpen) return;
        isOpen = false;
        account.end(cost - tokens, day);
      },
    };
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (!account) this.#accounts.set(name, (account = new Account()));
    return account;
  }
}

function systemTime(): Moment {
  return { ms: performance.now(), unixMs: Date.now() };
}
