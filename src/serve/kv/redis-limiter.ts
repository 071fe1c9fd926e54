import { randomUUID } from "node:crypto";
import { refusalOf } from "./limits.ts";
import type { LimitLease, Limiter, UsageLimits, Refusal, Use } from "./limits.ts";
import { MemoryLimiter } from "./memory-limiter.ts";
import { RedisConnection } from "./redis-connection.ts";
import { beatScript, endScript, memberOf, recordScript, takeScript } from "./redis-scripts.ts";
import type { RedisScript } from "./redis-scripts.ts";
import {
  addUsage,
  budgetPeriods,
  dayMs,
  dayOf,
  dayText,
  monthOf,
  nanodollars,
  noUsage,
  usageMembers,
} from "./spending.ts";
import type { ModelUsage, RequestUsage, UsageRow } from "./spending.ts";

/** How long a request waits for Redis, in milliseconds. */
const timeoutMs = 500;
/** How long Redis is not used after a failure, in milliseconds. */
const pauseMs = 2000;
/** How long a request counts as open after the last heartbeat of its instance, in milliseconds. */
const openMs = 60_000;

/**
 * Connects to Redis or Valkey. Never rejects: while Redis cannot be reached, the limiter counts within this process. `warn` is called with a
 * line when the connection fails, and when it is restored.
 */
export async function openRedisLimiter(url: string, warn: (line: string) => void): Promise<Limiter> {
  const limiter = new RedisLimiter(url, warn);
  await limiter.connect();
  return limiter;
}

/**
 * Counts in Redis or Valkey, for all instances: one script, and one round trip, when a request begins, and one when it ends. While Redis
 * cannot be reached, this instance continues from the last known usage of all instances.
 */
class RedisLimiter implements Limiter {
  readonly #connection: RedisConnection;
  readonly #warn: (line: string) => void;
  readonly #local = new MemoryLimiter();
  /** Open requests by name, as members of their sorted sets. */
  readonly #open = new Map<string, Set<string>>();
  readonly #beat: NodeJS.Timeout;
  /** What Redis does not know yet, by `UnsentKey` in JSON. */
  readonly #unsent = new Map<string, Unsent>();
  /** What Redis may know already, since only its answer did not come. */
  readonly #unanswered = new Set<Settlement>();
  readonly #inFlight = new Set<Promise<void>>();
  /** The names that Redis lists as those that have usage. */
  readonly #names = new Set<string>();
  #isAway = false;
  /** By `performance.now`. */
  #retryAt = 0;
  #isClosed = false;

  constructor(url: string, warn: (line: string) => void) {
    this.#connection = new RedisConnection(url, {
      timeoutMs,
      onLost: (error) => this.#failed(error),
      onBack: () => {},
    });
    this.#warn = warn;
    this.#beat = setInterval(() => this.#sendHeartbeat(), openMs / 3).unref();
  }

  /** Resolves when the first attempt to connect has ended, which takes a few seconds at most; later attempts follow. */
  async connect(): Promise<void> {
    await this.#connection.opened.catch(() => {});
  }

  async take(name: string, limits: UsageLimits, tokens: number, reserved = 0, cost = 0): Promise<LimitLease | Refusal> {
    if (Object.values(limits).every((limit) => limit === undefined)) return this.#unlimited(name);
    if (this.#isUsable) {
      const id = randomUUID();
      try {
        return await this.#takeShared(name, limits, tokens, reserved, cost, id);
      } catch (error) {
        this.#failed(error);
        // It is counted here. Redis may have taken it all the same.
        const day = dayOf(Date.now());
        const args = [0, 0, 0, tokens, reserved, day, memberOf(id, reserved, day), monthOf(day), -cost, 2];
        this.#unanswered.add({ script: endScript, keys: keysOf(name), args: () => args });
      }
    }
    const own = await this.#local.take(name, limits, tokens, reserved, cost);
    if ("bound" in own) return own;
    const day = dayOf(Date.now());
    return {
      levels: own.levels,
      end: (tokensUsed, usage) => {
        own.end(tokensUsed, usage);
        if (usage) this.#addUnsent({ name, day, month: monthOf(day), model: usage.model }, usage.cost, usage);
      },
    };
  }

  async use(name: string, limits: UsageLimits): Promise<Use> {
    if (!this.#isUsable) return this.#local.use(name, limits);
    return (await this.#ask(name, limits, 0, 0, 0, "")).use;
  }

  async usage(fromDay: number): Promise<readonly UsageRow[]> {
    if (!this.#isUsable) return this.#local.usage(fromDay);
    await this.#sendUnsent();
    const names = await this.#connection.run((client) => client.sMembers(namesKey));
    const today = dayOf(Date.now());
    const days = Array.from({ length: Math.max(0, today - fromDay + 1) }, (_, at) => fromDay + at);
    const rows: UsageRow[] = [];
    for (const name of names) {
      const kept = await this.#connection.run((client) =>
        Promise.all(days.map((day) => client.hGetAll(usageKey(name, day)))),
      );
      for (const [at, fields] of kept.entries()) rows.push(...rowsOf(name, dayText(days[at] ?? 0), fields));
    }
    return rows;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#beat);
    await this.#sendUnsent();
    await Promise.all(this.#inFlight);
    await this.#connection.close();
  }

  get #isUsable(): boolean {
    return this.#connection.isReady && performance.now() >= this.#retryAt;
  }

  /** A request without limits is only recorded, when it ends. */
  #unlimited(name: string): LimitLease {
    const day = dayOf(Date.now());
    let isOpen = true;
    return {
      levels: {},
      end: (_, usage) => {
        if (!isOpen || !usage) return;
        isOpen = false;
        this.#addUnsent({ name, day, month: monthOf(day), model: usage.model }, usage.cost, usage);
        void this.#sendUnsent();
      },
    };
  }

  async #ask(
    name: string,
    limits: UsageLimits,
    tokens: number,
    reserved: number,
    cost: number,
    id: string,
  ): Promise<{ readonly isTaken: boolean; readonly use: Use; readonly month: number }> {
    const { requestsPerMinute = 0, tokensPerMinute = 0, tokensPerDay = 0, concurrency = 0, budget } = limits;
    const bounds = [requestsPerMinute, tokensPerMinute, tokensPerDay, concurrency];
    const budgets = budgetPeriods.map((period) => {
      const most = budget?.[period];
      return most === undefined ? -1 : nanodollars(most);
    });
    const reply = await this.#run(takeScript, keysOf(name), [
      ...bounds,
      tokens,
      reserved,
      id,
      openMs,
      ...budgets,
      cost,
    ]);
    this.#answered();
    const [taken = 0, requests = 0, tokensUsed = 0, today = 0, unixMs = 0, open = 0, month = 0, ...spent] = (
      reply as readonly string[]
    ).map(Number);
    const [ofDay = 0, ofMonth = 0, total = 0] = spent;
    const use: Use = {
      requests,
      tokens: tokensUsed,
      today,
      dayLeftMs: dayMs - (unixMs % dayMs),
      open,
      spent: { day: ofDay, month: ofMonth, total },
      unixMs,
    };
    return { isTaken: taken === 1, use, month };
  }

  async #takeShared(
    name: string,
    limits: UsageLimits,
    tokens: number,
    reserved: number,
    cost: number,
    id: string,
  ): Promise<LimitLease | Refusal> {
    const { requestsPerMinute = 0, tokensPerMinute = 0 } = limits;
    const { isTaken, use, month } = await this.#ask(name, limits, tokens, reserved, cost, id);
    if (!isTaken) {
      const refusal = refusalOf(use, limits, tokens + reserved, cost);
      if (refusal) return refusal;
      throw new Error("Redis refused a request that is within the limits.");
    }
    const own = this.#local.follow(name, limits, use, tokens + reserved, cost);
    const day = dayOf(use.unixMs);
    const openHere = this.#openOf(name);
    const member = memberOf(id, reserved, day);
    openHere.add(member);
    return {
      levels: own.levels,
      end: (tokensUsed, usage) => {
        own.end(tokensUsed, usage);
        if (!openHere.delete(member)) return;
        const difference = (usage?.cost ?? 0) - cost;
        const args = [requestsPerMinute, tokensPerMinute, tokensUsed, tokens, reserved, day, member, month, difference];
        const used = usage ? valuesOf(usage.model, { requests: 1, ...usage }) : [];
        if (usage) this.#noteName(name);
        const keys = [...keysOf(name), usageKey(name, day)];
        void this.#settle({ script: endScript, keys, args: (isRepeated) => [...args, isRepeated ? 1 : 0, ...used] });
      },
    };
  }

  #addUnsent(of: UnsentKey, spent: number, usage: RequestUsage | undefined): void {
    if (spent === 0 && !usage) return;
    const key = JSON.stringify(of);
    const { spent: before, used } = this.#unsent.get(key) ?? { spent: 0, used: noUsage };
    this.#unsent.set(key, { spent: before + spent, used: usage ? addUsage(used, { requests: 1, ...usage }) : used });
  }

  /** Sends what Redis does not know yet: requests without limits, and those that were counted while it was away. Never rejects. */
  async #sendUnsent(): Promise<void> {
    for (const settlement of this.#unanswered) {
      if (!this.#isUsable) return;
      this.#unanswered.delete(settlement);
      await this.#settle(settlement);
    }
    for (const [key, unsent] of this.#unsent) {
      if (!this.#isUsable) return;
      this.#unsent.delete(key);
      const { name, day, month, model } = JSON.parse(key) as UnsentKey;
      this.#noteName(name);
      const args = [day, month, unsent.spent, ...valuesOf(model, unsent.used)];
      const keys = [spentKey(name), usageKey(name, day), onceKey(name, randomUUID())];
      await this.#settle({ script: recordScript, keys, args: () => args });
    }
  }

  /** Sends it, again later if there is no answer. Never rejects. */
  async #settle(settlement: Settlement): Promise<void> {
    const { script, keys, args, isRepeated = false } = settlement;
    const isSent = this.#connection.isReady;
    const sent = this.#run(script, keys, args(isRepeated)).then(
      () => {},
      (error: unknown) => {
        this.#failed(error);
        this.#unanswered.add({ ...settlement, isRepeated: isRepeated || isSent });
      },
    );
    this.#inFlight.add(sent);
    await sent;
    this.#inFlight.delete(sent);
  }

  #noteName(name: string): void {
    if (this.#names.has(name)) return;
    this.#names.add(name);
    this.#connection.run((client) => client.sAdd(namesKey, name)).catch(() => this.#names.delete(name));
  }

  /** Runs a script; rejects if there is no answer in time. */
  #run({ sha, text }: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const options = { keys: [...keys], arguments: args.map(String) };
    return this.#connection.run((client) =>
      client.evalSha(sha, options).catch((error: unknown) => {
        if (error instanceof Error && error.message.startsWith("NOSCRIPT")) return client.eval(text, options);
        throw error;
      }),
    );
  }

  #openOf(name: string): Set<string> {
    let ids = this.#open.get(name);
    if (!ids) this.#open.set(name, (ids = new Set()));
    return ids;
  }

  #sendHeartbeat(): void {
    if (!this.#connection.isReady) return;
    void this.#sendUnsent();
    for (const [name, ids] of this.#open) {
      if (ids.size === 0) continue;
      const [, key = ""] = keysOf(name);
      this.#run(beatScript, [key], [openMs, ...ids]).catch((error: unknown) => this.#failed(error));
    }
  }

  #failed(error: unknown): void {
    this.#retryAt = performance.now() + pauseMs;
    if (this.#isAway || this.#isClosed) return;
    this.#isAway = true;
    const reason = error instanceof Error ? error.message || error.name : String(error);
    this.#warn(
      `the Redis of the limits cannot be reached (${reason}); this instance counts for itself until it is back`,
    );
  }

  #answered(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    void this.#sendUnsent();
    this.#warn("the Redis of the limits is back; all instances count together again");
  }
}

/** Keys of one slot of a Redis cluster. */
function keysOf(name: string): readonly string[] {
  const tag = `truewire:limits:{${encodeURIComponent(name)}}`;
  return [tag, `${tag}:open`, spentKey(name), `${tag}:lapsed`];
}

function spentKey(name: string): string {
  return `truewire:limits:{${encodeURIComponent(name)}}:spent`;
}

function onceKey(name: string, id: string): string {
  return `truewire:limits:{${encodeURIComponent(name)}}:once:${id}`;
}

function usageKey(name: string, day: number): string {
  return `truewire:limits:{${encodeURIComponent(name)}}:usage:${day}`;
}

const namesKey = "truewire:limits:names";

/** A script that Redis has to run once, also where its answer gets lost. */
interface Settlement {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  args(isRepeated: boolean): readonly (string | number)[];
  /** It was sent, and not answered. */
  readonly isRepeated?: boolean;
}

interface UnsentKey {
  readonly name: string;
  readonly day: number;
  readonly month: number;
  readonly model: string;
}

interface Unsent {
  /** In nanodollars. */
  readonly spent: number;
  readonly used: ModelUsage;
}

/** The arguments of `record`. */
function valuesOf(model: string, used: ModelUsage): (string | number)[] {
  return [model, ...usageMembers.map((member) => used[member])];
}

/** The rows of one day: its fields are `MODEL|MEMBER`. */
function rowsOf(name: string, day: string, fields: Readonly<Record<string, string>>): UsageRow[] {
  const models = new Map<string, ModelUsage>();
  for (const [field, value] of Object.entries(fields)) {
    const at = field.lastIndexOf("|");
    const model = field.slice(0, at);
    models.set(model, { ...(models.get(model) ?? noUsage), [field.slice(at + 1)]: Number(value) });
  }
  return [...models].map(([model, used]) => ({ name, day, model, ...used }));
}
