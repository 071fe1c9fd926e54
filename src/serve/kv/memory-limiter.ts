import { KeptAccounts } from "./kept-accounts.ts";
import { drained, levelsOf, refusalOf } from "./limits.ts";
import type { LimitLease, Limiter, UsageLimits, Refusal, Use } from "./limits.ts";
import { addUsage, dayMs, dayOf, dayText, keptDays, monthOf, noUsage, usageMembers } from "./spending.ts";
import type { ModelUsage, RequestUsage, UsageRow } from "./spending.ts";
import type { Store } from "./store.ts";

/** Names are forgotten where there are more. */
const minSweep = 10_000;
/** How long a name that has used nothing is kept: until its rates have drained. */
const unusedMs = 120_000;

/** Counts within this process. What was spent and used may be kept in a store. */
export class MemoryLimiter implements Limiter {
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => Moment;
  #kept: KeptAccounts | undefined;
  #sweepAt = minSweep;

  constructor(now: () => Moment = systemTime) {
    this.#now = now;
  }

  /** A limiter that continues what is in a store. Rejects if it cannot be read. */
  static async keptIn(store: Store, warn: (line: string) => void): Promise<MemoryLimiter> {
    const limiter = new MemoryLimiter();
    limiter.#kept = await KeptAccounts.open(
      store,
      (name, text) => limiter.#account(name).restore(JSON.parse(text) as StoredAccount),
      warn,
    );
    return limiter;
  }

  /** The number of names. */
  get size(): number {
    return this.#accounts.size;
  }

  async take(name: string, limits: UsageLimits, tokens: number, reserved = 0, cost = 0): Promise<LimitLease | Refusal> {
    const account = this.#account(name);
    const now = this.#now();
    const refusal = refusalOf(account.use(limits, now), limits, tokens + reserved, cost);
    if (refusal) return refusal;
    const lease = this.#lease(name, account, limits, tokens + reserved, cost);
    // Before the request runs: after a crash, what it may have cost is spent.
    if (limits.budget && cost > 0) await this.#save(name, account);
    return lease;
  }

  /**
   * Counts a request that another limiter has admitted, and adopts its usage, in case this limiter has to take over. `tokens`: taken and
   * reserved tokens. `cost`: what was taken from the budgets.
   */
  follow(name: string, limits: UsageLimits, use: Use, tokens: number, cost: number): LimitLease {
    const account = this.#account(name);
    const { day, month, total } = use.spent;
    // The usage includes the request, which is added again.
    account.adopt(
      {
        ...use,
        requests: use.requests - 1,
        tokens: use.tokens - tokens,
        today: use.today - tokens,
        spent: { day: day - cost, month: month - cost, total: total - cost },
      },
      this.#now(),
    );
    return this.#lease(name, account, limits, tokens, cost);
  }

  async use(name: string, limits: UsageLimits): Promise<Use> {
    return this.#account(name).use(limits, this.#now());
  }

  async usage(fromDay: number): Promise<readonly UsageRow[]> {
    return [...this.#accounts].flatMap(([name, account]) =>
      [...account.days].flatMap(([day, models]) =>
        day < fromDay ? [] : [...models].map(([model, used]) => ({ name, day: dayText(day), model, ...used })),
      ),
    );
  }

  async close(): Promise<void> {
    await this.#kept?.close();
  }

  async #save(name: string, account: Account): Promise<void> {
    await this.#kept?.save(name, () => JSON.stringify(account.stored()));
  }

  #lease(name: string, account: Account, limits: UsageLimits, tokens: number, reserved: number): LimitLease {
    const now = this.#now();
    const begun = account.begin(tokens, reserved, now);
    const levels = levelsOf(account.use(limits, now), limits);
    let isOpen = true;
    return {
      levels,
      end: (cost, usage) => {
        if (!isOpen) return;
        isOpen = false;
        account.end(begun, cost - tokens, usage);
        if (reserved > 0 || usage) void this.#save(name, account);
      },
    };
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (account) return account;
    if (this.#accounts.size >= this.#sweepAt) this.#sweep();
    this.#accounts.set(name, (account = new Account()));
    return account;
  }

  /** Forgets the names that have used nothing: with `passKey`, clients make up any number of them. */
  #sweep(): void {
    const { ms } = this.#now();
    for (const [name, account] of this.#accounts) if (account.isUnused(ms)) this.#accounts.delete(name);
    this.#sweepAt = Math.max(minSweep, 2 * this.#accounts.size);
  }
}

function systemTime(): Moment {
  return { ms: performance.now(), unixMs: Date.now() };
}

/** A time on two clocks. */
export interface Moment {
  /** Milliseconds of a monotonic clock. */
  readonly ms: number;
  /** Unix time in milliseconds. */
  readonly unixMs: number;
}

/** A request that has begun: when, and what was taken from the budgets for it, in nanodollars. */
interface Begun {
  readonly day: number;
  readonly cost: number;
}

/** What is kept of an account over a restart. */
interface StoredAccount {
  readonly spent: Readonly<Record<string, number>>;
  /** By day and model, the values of `usageMembers`. */
  readonly days: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;
  readonly open: readonly Begun[];
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
  /** In nanodollars: in all (`total`), by day (`d` and its number) and by month (`m`). */
  readonly #spent = new Map<string, number>();
  /** The open requests that have taken from budgets. */
  readonly #reserved = new Set<Begun>();
  /** By day and model. */
  readonly days = new Map<number, Map<string, ModelUsage>>();

  /** The current usage. */
  use({ requestsPerMinute, tokensPerMinute }: UsageLimits, { ms, unixMs }: Moment): Use {
    this.#requests = drained(this.#requests, requestsPerMinute, ms - this.#at);
    this.#tokens = drained(this.#tokens, tokensPerMinute, ms - this.#at);
    this.#at = ms;
    const day = dayOf(unixMs);
    const spent = (period: string): number => this.#spent.get(period) ?? 0;
    return {
      requests: this.#requests,
      tokens: this.#tokens,
      today: this.#day(day).tokens,
      dayLeftMs: dayMs - (unixMs % dayMs),
      open: this.open,
      spent: { day: spent(`d${day}`), month: spent(`m${monthOf(day)}`), total: spent("total") },
      unixMs,
    };
  }

  /** Whether nothing of the account is needed any more. `ms`: the time on the monotonic clock. */
  isUnused(ms: number): boolean {
    const hasSpent = [...this.#spent.values()].some((cost) => cost > 0);
    return this.open === 0 && this.days.size === 0 && !hasSpent && ms - this.#at >= unusedMs;
  }

  /** Opens a request with these tokens, and takes its cost from the budgets. */
  begin(tokens: number, cost: number, { unixMs }: Moment): Begun {
    const today = this.#day(dayOf(unixMs));
    this.#requests++;
    this.#tokens += tokens;
    today.tokens += tokens;
    this.open++;
    const begun = { day: today.number, cost };
    if (cost > 0) this.#reserved.add(begun);
    this.#spend(begun.day, cost);
    return begun;
  }

  /** Ends a request. `difference`: its tokens minus the counted ones. */
  end(begun: Begun, difference: number, usage: RequestUsage | undefined): void {
    this.open--;
    this.#tokens = Math.max(0, this.#tokens + difference);
    const counted = this.#days.find(({ number }) => number === begun.day);
    if (counted) counted.tokens = Math.max(0, counted.tokens + difference);
    this.#reserved.delete(begun);
    this.#spend(begun.day, (usage?.cost ?? 0) - begun.cost);
    if (!usage) return;
    const { model, ...used } = usage;
    this.#use(begun.day, model, { requests: 1, ...used });
  }

  /** Adopts the usage of all instances. Open requests of this process stay counted. */
  adopt(use: Use, { ms, unixMs }: Moment): void {
    this.#requests = use.requests;
    this.#tokens = use.tokens;
    this.#at = ms;
    const day = dayOf(unixMs);
    this.#day(day).tokens = use.today;
    this.#spent
      .set("total", use.spent.total)
      .set(`d${day}`, use.spent.day)
      .set(`m${monthOf(day)}`, use.spent.month);
  }

  stored(): StoredAccount {
    const days = [...this.days].map(([day, models]) => [
      day,
      Object.fromEntries([...models].map(([model, used]) => [model, usageMembers.map((member) => used[member])])),
    ]);
    return { spent: Object.fromEntries(this.#spent), days: Object.fromEntries(days), open: [...this.#reserved] };
  }

  /** Continues what a process kept that has ended. Its open requests have cost what they reserved. */
  restore({ spent, days, open }: StoredAccount): void {
    for (const [period, cost] of Object.entries(spent)) this.#spent.set(period, cost);
    for (const [day, models] of Object.entries(days))
      for (const [model, values] of Object.entries(models)) {
        const used = Object.fromEntries(usageMembers.map((member, at) => [member, values[at] ?? 0]));
        this.#use(Number(day), model, { ...noUsage, ...used });
      }
    for (const { day, cost } of open) this.#use(day, "", { ...noUsage, requests: 1, cost });
  }

  #spend(day: number, cost: number): void {
    if (cost === 0) return;
    const month = monthOf(day);
    for (const period of ["total", `d${day}`, `m${month}`])
      this.#spent.set(period, Math.max(0, (this.#spent.get(period) ?? 0) + cost));
    // The clock may jump to another day and back.
    for (const period of this.#spent.keys())
      if (Number(period.slice(1)) < (period.startsWith("d") ? day - 2 : month - 1)) this.#spent.delete(period);
  }

  #use(day: number, model: string, used: ModelUsage): void {
    const models = this.days.get(day) ?? new Map<string, ModelUsage>();
    this.days.set(day, models.set(model, addUsage(models.get(model) ?? noUsage, used)));
    for (const known of this.days.keys()) if (known <= day - keptDays) this.days.delete(known);
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
