import { randomUUID } from "node:crypto";
import { RedisConnection } from "./redis-connection.ts";
import type { Lease, Limiter, Limits, Refusal } from "./limits.ts";
import { MemoryLimiter } from "./memory-limiter.ts";
import { beatScript, endScript, memberOf, takeScript } from "./redis-scripts.ts";
import type { RedisScript } from "./redis-scripts.ts";
import { refusalOf } from "./use.ts";
import type { Use } from "./use.ts";

/** How long a request waits for Redis at most, in milliseconds. */
const patienceMs = 500;
/** After a failure, Redis is not asked for so long. */
const pauseMs = 2000;
/** A request counts as open for so long after the last sign of life of its instance. */
const openMs = 60_000;

/**
 * Connects to Redis or Valkey. Never rejects: where there is none, `warn` gets a line, and the limiter counts for itself until there is
 * one. It gets a line, too, when Redis is lost and when it is back.
 */
export async function openRedisLimiter(url: string, warn: (line: string) => void): Promise<Limiter> {
  const limiter = new RedisLimiter(url, warn);
  await limiter.connect();
  return limiter;
}

/**
 * Counts in Redis or Valkey, for all instances together: one step, and one round trip, when a request begins and one when it ends. While
 * Redis cannot be reached, this instance counts for itself, from what all had used when it was last asked.
 */
class RedisLimiter implements Limiter {
  readonly #connection: RedisConnection;
  readonly #warn: (line: string) => void;
  readonly #local = new MemoryLimiter();
  /** Open requests by name, as members of their sorted sets. */
  readonly #open = new Map<string, Set<string>>();
  readonly #beat: NodeJS.Timeout;
  #isAway = false;
  /** By the clock of `performance.now`. */
  #askAgainAt = 0;
  #isClosed = false;

  constructor(url: string, warn: (line: string) => void) {
    this.#connection = new RedisConnection(url, {
      timeoutMs: patienceMs,
      onLost: (error) => this.#failed(error),
      onBack: () => {},
    });
    this.#warn = warn;
    this.#beat = setInterval(() => this.#tellOpen(), openMs / 3).unref();
  }

  /** Resolves when the first attempt to connect has ended, or after `patienceMs`; later attempts follow. */
  async connect(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#failed(new Error(`no answer within ${patienceMs} ms`));
        resolve();
      }, patienceMs);
    });
    await Promise.race([this.#connection.opened.catch(() => {}), late]);
    clearTimeout(timer);
  }

  async take(name: string, limits: Limits, tokens: number, reserved = 0): Promise<Lease | Refusal> {
    if (this.#connection.isReady && performance.now() >= this.#askAgainAt) {
      try {
        return await this.#takeShared(name, limits, tokens, reserved);
      } catch (error) {
        this.#failed(error);
      }
    }
    return this.#local.take(name, limits, tokens, reserved);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#beat);
    await this.#connection.close();
  }

  async #takeShared(name: string, limits: Limits, tokens: number, reserved: number): Promise<Lease | Refusal> {
    const { requestsPerMinute = 0, tokensPerMinute = 0, tokensPerDay = 0, concurrency = 0 } = limits;
    const id = randomUUID();
    const bounds = [requestsPerMinute, tokensPerMinute, tokensPerDay, concurrency];
    const reply = await this.#run(takeScript, keysOf(name), [...bounds, tokens, reserved, id, openMs]);
    this.#answered();
    const [taken = 0, requests = 0, tokensUsed = 0, today = 0, dayLeftMs = 0, open = 0, day = 0] = (
      reply as readonly string[]
    ).map(Number);
    const use: Use = { requests, tokens: tokensUsed, today, dayLeftMs, open };
    if (taken === 0) {
      const refusal = refusalOf(use, limits, tokens + reserved);
      if (refusal) return refusal;
      throw new Error("Redis refused what there is room for.");
    }
    const own = this.#local.follow(name, limits, use, tokens + reserved);
    const openHere = this.#openOf(name);
    const member = memberOf(id, reserved, day);
    openHere.add(member);
    return {
      levels: own.levels,
      end: (cost) => {
        own.end(cost);
        if (!openHere.delete(member)) return;
        const args = [requestsPerMinute, tokensPerMinute, cost, tokens, reserved, day, member];
        this.#run(endScript, keysOf(name), args).catch((error: unknown) => this.#failed(error));
      },
    };
  }

  /** Runs a script; rejects when there is no answer in time. */
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

  #tellOpen(): void {
    if (!this.#connection.isReady) return;
    for (const [name, ids] of this.#open) {
      if (ids.size === 0) continue;
      const [, key = ""] = keysOf(name);
      this.#run(beatScript, [key], [openMs, ...ids]).catch((error: unknown) => this.#failed(error));
    }
  }

  #failed(error: unknown): void {
    this.#askAgainAt = performance.now() + pauseMs;
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
    this.#warn("the Redis of the limits is back; all instances count together again");
  }
}

/** Of the same slot of a cluster. */
function keysOf(name: string): readonly string[] {
  const tag = `truewire:limits:{${encodeURIComponent(name)}}`;
  return [tag, `${tag}:open`];
}
