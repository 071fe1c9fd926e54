import { drained, levelsOf, refusalOf } from "./limits.ts";
import type { LimitLease, Limiter, UsageLimits, Refusal, Use } from "./limits.ts";

/** Counts within this process. */
export class MemoryLimiter implements Limiter {
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => Moment;

  constructor(now: () => Moment = systemTime) {
    this.#now = now;
  }

  async take(name: string, limits: UsageLimits, tokens: number, reserved = 0): Promise<LimitLease | Refusal> {
    const account = this.#account(name);
    const now = this.#now();
    const refusal = refusalOf(account.use(limits, now), limits, tokens + reserved);
    return refusal ?? this.#lease(account, limits, tokens + reserved);
  }

  /**
   * Counts a request that another limiter has admitted, and adopts its usage, in case this limiter has to take over. `tokens`: taken and
   * reserved tokens.
   */
  follow(name: string, limits: UsageLimits, use: Use, tokens: number): LimitLease {
    const account = this.#account(name);
    // The usage includes the request, which is added again.
    account.adopt(
      { ...use, requests: use.requests - 1, tokens: use.tokens - tokens, today: use.today - tokens },
      this.#now(),
    );
    return this.#lease(account, limits, tokens);
  }

  async close(): Promise<void> {}

  #lease(account: Account, limits: UsageLimits, tokens: number): LimitLease {
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

const dayMs = 86_400_000;

/** A time on two clocks. */
export interface Moment {
  /** Milliseconds of a monotonic clock. */
  readonly ms: number;
  /** Unix time in milliseconds. */
  readonly unixMs: number;
}

/** The usage under one name. */
export class Account {
  #requests = 0;
  #tokens = 0;
  /** When both were updated last, on the monotonic clock. */
  #at = 0;
  /** Tokens by day. Two days are kept, so that no usage is lost if the clock jumps to another day and back. */
  #days: readonly Day[] = [];
  open = 0;

  /** The current usage. */
  use({ requestsPerMinute, tokensPerMinute }: UsageLimits, { ms, unixMs }: Moment): Use {
    this.#requests = drained(this.#requests, requestsPerMinute, ms - this.#at);
    this.#tokens = drained(this.#tokens, tokensPerMinute, ms - this.#at);
    this.#at = ms;
    return {
      requests: this.#requests,
      tokens: this.#tokens,
      today: this.#day(dayOf(unixMs)).tokens,
      dayLeftMs: dayMs - (unixMs % dayMs),
      open: this.open,
    };
  }

  /** Opens a request. Returns the day on which its tokens are counted. */
  begin(tokens: number, { unixMs }: Moment): number {
    const today = this.#day(dayOf(unixMs));
    this.#requests++;
    this.#tokens += tokens;
    today.tokens += tokens;
    this.open++;
    return today.number;
  }

  /** Ends a request. `difference`: its cost minus the counted tokens. */
  end(difference: number, day: number): void {
    this.open--;
    this.#tokens = Math.max(0, this.#tokens + difference);
    const counted = this.#days.find(({ number }) => number === day);
    if (counted) counted.tokens = Math.max(0, counted.tokens + difference);
  }

  /** Adopts the usage of all instances. Open requests of this process stay counted. */
  adopt(use: Use, { ms, unixMs }: Moment): void {
    this.#requests = use.requests;
    this.#tokens = use.tokens;
    this.#at = ms;
    this.#day(dayOf(unixMs)).tokens = use.today;
  }

  #day(number: number): Day {
    const [latest, other] = this.#days;
    if (latest?.number === number) return latest;
    const day = other?.number === number ? other : { number, tokens: 0 };
    this.#days = latest ? [day, latest] : [day];
    return day;
  }
}

interface Day {
  readonly number: number;
  tokens: number;
}

function dayOf(unixMs: number): number {
  return Math.floor(unixMs / dayMs);
}
