import { createHash, randomUUID } from "node:crypto";
import { refusalOf } from "./limits.ts";
import type { LimitLease, Limiter, UsageLimits, Refusal, Use } from "./limits.ts";
import { MemoryLimiter } from "./memory-limiter.ts";
import { RedisConnection } from "./redis-connection.ts";

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

  /** Resolves when the first attempt to connect has ended, or after `timeoutMs`; later attempts follow. */
  async connect(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#failed(new Error(`no answer within ${timeoutMs} ms`));
        resolve();
      }, timeoutMs);
    });
    await Promise.race([this.#connection.opened.catch(() => {}), late]);
    clearTimeout(timer);
  }

  async take(name: string, limits: UsageLimits, tokens: number, reserved = 0): Promise<LimitLease | Refusal> {
    if (this.#connection.isReady && performance.now() >= this.#retryAt) {
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

  async #takeShared(
    name: string,
    limits: UsageLimits,
    tokens: number,
    reserved: number,
  ): Promise<LimitLease | Refusal> {
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
      throw new Error("Redis refused a request that is within the limits.");
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
    this.#warn("the Redis of the limits is back; all instances count together again");
  }
}

/** Keys of one slot of a Redis cluster. */
function keysOf(name: string): readonly string[] {
  const tag = `truewire:limits:{${encodeURIComponent(name)}}`;
  return [tag, `${tag}:open`];
}

/** A script, which Redis runs atomically. */
export interface RedisScript {
  readonly text: string;
  /** The hash by which Redis identifies a loaded script. */
  readonly sha: string;
}

/**
 * `account.ts` and `use.ts` in Redis, whose clock counts for all instances. Keys: what is used under a name (a hash), and its open
 * requests (a sorted set: `memberOf` a request → until when it counts). A request of an instance that died is forgotten then, and what it
 * reserved is given back.
 *
 * If the clock goes back, nothing drains until the next request sets the time again; the tokens of two days are kept.
 */
const begin = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local today = math.floor(now / 86400000)
local perMinute, tokensPerMinute = tonumber(ARGV[1]), tonumber(ARGV[2])
local kept = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'at', 'day', 'used', 'otherDay', 'otherUsed')
for i = 1, 7 do kept[i] = tonumber(kept[i] or 0) end
local elapsed = math.max(0, now - kept[3])
local requests, tokens = 0, 0
if perMinute > 0 then requests = math.max(0, kept[1] - elapsed * perMinute / 60000) end
if tokensPerMinute > 0 then tokens = math.max(0, kept[2] - elapsed * tokensPerMinute / 60000) end
local day, used, otherDay, otherUsed = kept[4], kept[5], kept[6], kept[7]
if day ~= today then
  day, used, otherDay, otherUsed = otherDay, otherUsed, day, used
  if day ~= today then day, used = today, 0 end
end
local function keep()
  redis.call('HSET', KEYS[1], 'requests', string.format('%.17g', requests), 'tokens', string.format('%.17g', tokens),
    'at', string.format('%.0f', now), 'day', day, 'used', string.format('%.0f', used), 'otherDay', otherDay,
    'otherUsed', string.format('%.0f', otherUsed))
  redis.call('PEXPIRE', KEYS[1], 172800000)
end
`;

/** A request in the set of those that are open: its id, the tokens that it reserved, and the day (since 1970) that they count for. */
export function memberOf(id: string, reserved: number, day: number): string {
  return `${id}|${reserved}|${day}`;
}

/** Removes open requests by score, and releases what they reserved. */
const lapse = `
local lapsed = false
local function lapse(from, to)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], from, to)) do
    local reserved, counted = string.match(member, '|(%d+)|(%d+)$')
    reserved, counted = tonumber(reserved or 0), tonumber(counted or 0)
    tokens = math.max(0, tokens - reserved)
    if counted == day then used = math.max(0, used - reserved)
    elseif counted == otherDay then otherUsed = math.max(0, otherUsed - reserved) end
    redis.call('ZREM', KEYS[2], member)
    lapsed = true
  end
end
`;

/**
 * Arguments: the bounds (0: none) of requests and tokens a minute, of tokens a day and of open requests; the tokens of the prompt, and
 * those reserved for the answer; the request's id; and for how long it counts as open, in milliseconds. Replies, as texts: whether it was
 * taken, the `Use` after that, and the day.
 */
export const takeScript: RedisScript = script(`${begin}${lapse}
local perDay, most, ttl = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[8])
local reserved = tonumber(ARGV[6])
local asked = tonumber(ARGV[5]) + reserved
lapse('-inf', now)
lapse(now + 2 * ttl, '+inf')
local open = redis.call('ZCARD', KEYS[2])
local fits = (perMinute == 0 or requests + 1 <= perMinute + 1e-6) and (most == 0 or open < most)
if asked > 0 then
  fits = fits and (tokensPerMinute == 0 or tokens + asked <= tokensPerMinute + 1e-6)
  fits = fits and (perDay == 0 or used + asked <= perDay)
end
if fits then
  requests, tokens, used, open = requests + 1, tokens + asked, used + asked, open + 1
end
if fits or lapsed or now < kept[3] then keep() end
if fits then
  redis.call('ZADD', KEYS[2], now + ttl, ARGV[7] .. '|' .. string.format('%.0f', reserved) .. '|' .. day)
  redis.call('PEXPIRE', KEYS[2], 2 * ttl)
end
local function text(number) return string.format('%.17g', number) end
return { fits and '1' or '0', text(requests), text(tokens), text(used), text(86400000 - now % 86400000), text(open), text(day) }
`);

/**
 * Arguments: the bounds of requests and tokens a minute; the tokens that the request cost; those that were taken for its prompt, and those
 * reserved for its answer; its day; its member. Where it counts as open no more, its reservation has been given back already.
 */
export const endScript: RedisScript = script(`${begin}
local counted = tonumber(ARGV[6])
local difference = tonumber(ARGV[3]) - tonumber(ARGV[4])
if redis.call('ZREM', KEYS[2], ARGV[7]) == 1 then difference = difference - tonumber(ARGV[5]) end
if difference ~= 0 then
  tokens = math.max(0, tokens + difference)
  if counted == day then used = math.max(0, used + difference)
  elseif counted == otherDay then otherUsed = math.max(0, otherUsed + difference) end
  keep()
end
return 1
`);

/** Key: open requests. Arguments: for how long they count from now on, and their members; those that are not there stay forgotten. */
export const beatScript: RedisScript = script(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[1]), ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], 2 * tonumber(ARGV[1]))
return 1
`);

function script(text: string): RedisScript {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}
