import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { createClient } from "@redis/client";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { LimitLease, Limiter, UsageLimits, Refusal } from "../../src/serve/kv/limits.ts";
import { MemoryLimiter } from "../../src/serve/kv/memory-limiter.ts";
import { openLimiter } from "../../src/serve/kv/open.ts";
import { dayOf, nanodollars } from "../../src/serve/kv/spending.ts";
import { beatScript } from "../../src/serve/kv/redis-scripts.ts";
import { pastMidnight } from "../support/past-midnight.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { until } from "../support/scripted-engine.ts";

const boundOf = (taken: LimitLease | Refusal): string => ("bound" in taken ? taken.bound : "taken");

describe.skipIf(redisCommand() === undefined)("limits that instances share through Redis", () => {
  let redis: ChildProcess;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    redis = await startRedis(port);
  });
  afterAll(() => void redis.kill("SIGKILL"));
  // Two of these failed where the day ended between two questions.
  beforeEach(pastMidnight);

  async function opened(count: number, warnings: string[] = []): Promise<readonly Limiter[]> {
    const url = `redis://127.0.0.1:${port}`;
    return Promise.all(Array.from({ length: count }, () => openLimiter(url, (line) => warnings.push(line))));
  }

  async function asked(
    limiters: readonly Limiter[],
    name: string,
    limits: UsageLimits,
    tokens: number,
  ): Promise<string[]> {
    const answers = await Promise.all(limiters.map((limiter) => limiter.take(name, limits, tokens)));
    return answers.map(boundOf).sort();
  }

  async function closeAll(limiters: readonly Limiter[]): Promise<void> {
    await Promise.all(limiters.map((limiter) => limiter.close()));
  }

  test.each([
    ["requests", { requestsPerMinute: 2 }],
    ["tokens", { tokensPerMinute: 25 }],
    ["day", { tokensPerDay: 25 }],
    ["concurrency", { concurrency: 2 }],
  ])("of what several ask for at once, no more than the bound of %s is taken", async (bound, limits) => {
    const limiters = await opened(5);
    expect(await asked(limiters, `at once: ${bound}`, limits, 10)).toEqual(
      [bound, bound, bound, "taken", "taken"].sort(),
    );
    await closeAll(limiters);
  });

  test("what one gives back, another may take", async () => {
    const [one, other] = (await opened(2)) as [Limiter, Limiter];
    const limits: UsageLimits = { concurrency: 1, tokensPerDay: 100, tokensPerMinute: 100 };
    const lease = await one.take("given back", limits, 90);
    expect(boundOf(await other.take("given back", limits, 90))).toBe("day");
    expect(boundOf(await other.take("given back", limits, 5))).toBe("concurrency");
    if ("end" in lease) lease.end(5);
    await until(async () => boundOf(await other.take("given back", limits, 90)) === "taken", "it is given back");
    expect(await one.take("given back", limits, 90)).toMatchObject({ bound: "day", used: 95 });
    await closeAll([one, other]);
  });

  test("open requests of an instance that died are forgotten, and those that a clock put far ahead", async () => {
    const raw = createClient({ url: `redis://127.0.0.1:${port}` });
    await raw.connect();
    await raw.zAdd("truewire:limits:{dead}:open", [
      { score: Date.now() - 1, value: "of one that died" },
      { score: Date.now() + 3_600_000, value: "by another clock" },
    ]);
    await raw.close();
    const limiters = await opened(2);
    expect(await asked(limiters, "dead", { concurrency: 1 }, 1)).toEqual(["concurrency", "taken"]);
    await closeAll(limiters);
  });

  test("what an instance that died had reserved is given back when its requests are forgotten, and only once", async () => {
    const [dead, other] = (await opened(2)) as [Limiter, Limiter];
    const limits: UsageLimits = { tokensPerDay: 100, tokensPerMinute: 100 };
    const lease = await dead.take("reserved", limits, 10, 70);
    expect(boundOf(await other.take("reserved", limits, 10, 20))).not.toBe("taken");
    const raw = await createClient({ url: `redis://127.0.0.1:${port}` }).connect();
    const key = "truewire:limits:{reserved}:open";
    const [member = ""] = await raw.zRange(key, 0, -1);
    await raw.zAdd(key, { score: Date.now() - 1, value: member });
    // Of the dead one's request, its prompt's 10 tokens stay counted.
    expect(await other.take("reserved", limits, 100)).toMatchObject({ used: 10 });
    // It was not dead: neither its sign of life nor the end of its request gives the 70 back once more.
    await raw.eval(beatScript.text, { keys: [key], arguments: ["60000", member] });
    expect(await raw.zCard(key)).toBe(0);
    if ("end" in lease) lease.end(35);
    await until(
      async () => Number(await raw.hGet("truewire:limits:{reserved}", "used")) === 35,
      "the request costs 35 tokens in all",
    );
    await raw.close();
    await closeAll([dead, other]);
  });

  describe("what Redis holds", () => {
    let raw: ReturnType<typeof createClient>;
    beforeAll(async () => {
      raw = createClient({ url: `redis://127.0.0.1:${port}` });
      await raw.connect();
    });
    afterAll(() => raw.close());

    const today = Math.floor(Date.now() / 86_400_000);
    const held = (name: string, fields: Record<string, number>): Promise<number> =>
      raw.hSet(`truewire:limits:{${name}}`, fields);

    test("a budget is there again on the next day; a clock that was at another day has freed nobody", async () => {
      const limiters = await opened(1);
      await held("yesterday", { day: today - 1, used: 100 });
      expect(await asked(limiters, "yesterday", { tokensPerDay: 100 }, 100)).toEqual(["taken"]);
      expect(await asked(limiters, "yesterday", { tokensPerDay: 100 }, 1)).toEqual(["day"]);
      await held("jumped", { day: today + 400, used: 1, otherDay: today, otherUsed: 100 });
      expect(await asked(limiters, "jumped", { tokensPerDay: 100 }, 1)).toEqual(["day"]);
      await closeAll(limiters);
    });

    // Nothing drained until the clock was where it had been before, since a refused request noted no time.
    test("a clock that went back by an hour locks nobody", async () => {
      const limiters = await opened(1);
      await held("back", { at: Date.now() + 3_600_000, requests: 1, day: today });
      expect(await asked(limiters, "back", { requestsPerMinute: 1 }, 1)).toEqual(["requests"]);
      const at = Number(await raw.hGet("truewire:limits:{back}", "at"));
      expect(Math.abs(at - Date.now())).toBeLessThan(600_000);
      await closeAll(limiters);
    });

    test("an open request counts for a minute, and for longer where its instance says that it is there", async () => {
      const limiters = await opened(1);
      const key = "truewire:limits:{open}:open";
      const before = Date.now();
      expect(await asked(limiters, "open", { concurrency: 1 }, 1)).toEqual(["taken"]);
      const after = Date.now();
      const [one] = await raw.zRangeWithScores(key, 0, -1);
      expect(one?.score).toBeGreaterThan(before + 59_000);
      expect(one?.score).toBeLessThan(after + 61_000);
      await raw.zAdd(key, { score: Date.now() + 10, value: one?.value ?? "" });
      await raw.eval(beatScript.text, { keys: [key], arguments: ["60000", one?.value ?? ""] });
      const [later] = await raw.zRangeWithScores(key, 0, -1);
      expect(later?.score).toBeGreaterThan(after + 59_000);
      await closeAll(limiters);
    });
  });

  // The rule is written twice, in TypeScript and in Lua.
  test("it decides as memory does, whatever the order", async () => {
    const [shared] = (await opened(1)) as [Limiter];
    const bound = fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined });
    const limitsOf = fc.record({
      requestsPerMinute: bound,
      tokensPerMinute: bound,
      tokensPerDay: bound,
      concurrency: bound,
    });
    const step = fc.oneof(
      fc.record({ take: fc.nat(30), reserve: fc.nat(10) }),
      fc.record({ end: fc.nat(5), cost: fc.nat(50) }),
    );
    let turn = 0;
    await fc.assert(
      fc.asyncProperty(limitsOf, fc.array(step, { maxLength: 25 }), async (limits, steps) => {
        const name = `turn {${turn++}}`;
        // Its clock stands still: nothing to speak of drains in the time that this takes.
        const memory = new MemoryLimiter(() => ({ ms: 0, unixMs: 1e12 }));
        const open: (readonly [LimitLease, LimitLease])[] = [];
        for (const one of steps) {
          if ("take" in one) {
            const here = await memory.take(name, limits, one.take, one.reserve);
            const there = await shared.take(name, limits, one.take, one.reserve);
            expect(boundOf(there)).toBe(boundOf(here));
            if (!("bound" in here) && !("bound" in there)) open.push([here, there]);
          } else for (const lease of open.splice(one.end, 1).flat()) lease.end(one.cost);
        }
      }),
      { numRuns: 100 },
    );
    await shared.close();
  });

  test("without Redis, each goes on from what all had used; a line says so once, and once that it is back", async () => {
    const warnings: string[] = [];
    const [one] = (await opened(1, warnings)) as [Limiter];
    const limits: UsageLimits = { tokensPerDay: 100 };
    expect(await asked([one], "alone", limits, 90)).toEqual(["taken"]);
    redis.kill("SIGKILL");
    await once(redis, "exit");
    await until(() => warnings.length > 0, "the loss is noticed");
    for (let i = 0; i < 3; i++) expect(await asked([one], "alone", limits, 20)).toEqual(["day"]);
    expect(await asked([one], "alone", limits, 10)).toEqual(["taken"]);
    expect(warnings).toEqual([expect.stringContaining("this instance counts for itself until it is back")]);
    redis = await startRedis(port);
    // The new server knows of nothing.
    await until(async () => (await asked([one], "alone", limits, 100)).includes("taken"), "it is asked again");
    expect(warnings.slice(1)).toEqual([expect.stringContaining("is back")]);
    await one.close();
  });

  test("a Redis that hangs costs a request half a second at most, and the next ones nothing", async () => {
    const warnings: string[] = [];
    const [one] = (await opened(1, warnings)) as [Limiter];
    const limits: UsageLimits = { requestsPerMinute: 4 };
    expect(await asked([one], "hanging", limits, 1)).toEqual(["taken"]);
    redis.kill("SIGSTOP");
    try {
      expect(await asked([one], "hanging", limits, 1)).toEqual(["taken"]);
      expect(warnings).toEqual([expect.stringContaining("no answer within 500 ms")]);
      // Not asked again at once: were it, each of these would wait, and say so.
      let waited = false;
      setImmediate(() => (waited = true));
      expect(await asked([one, one, one], "hanging", limits, 1)).toEqual(["requests", "taken", "taken"]);
      expect(waited).toBe(false);
    } finally {
      redis.kill("SIGCONT");
    }
    await one.close();
  });

  // On a busy machine, instances that started counted for themselves for two seconds, and each spent the whole budget.
  test("a limiter that opens waits for a Redis that is slow to answer", async () => {
    const warnings: string[] = [];
    // The modules are loaded.
    await closeAll(await opened(1));
    redis.kill("SIGSTOP");
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      const opening = opened(1, warnings);
      await vi.advanceTimersByTimeAsync(2000);
      vi.useRealTimers();
      redis.kill("SIGCONT");
      const [one] = (await opening) as [Limiter];
      expect(warnings).toEqual([]);
      expect(await asked([one], "slow", { requestsPerMinute: 1 }, 1)).toEqual(["taken"]);
      const [other] = (await opened(1, warnings)) as [Limiter];
      expect(await asked([other], "slow", { requestsPerMinute: 1 }, 1)).toEqual(["requests"]);
      await Promise.all([one.close(), other.close()]);
    } finally {
      vi.useRealTimers();
      redis.kill("SIGCONT");
    }
  });

  // On a busy machine, an answer that had come was not read before its time was over, and each instance spent the whole budget.
  test("the time in which this process computes is not time without an answer", async () => {
    const warnings: string[] = [];
    const [one] = (await opened(1, warnings)) as [Limiter];
    const limits: UsageLimits = { requestsPerMinute: 4 };
    await one.take("held up", limits, 1);
    const taken = one.take("held up", limits, 1);
    setImmediate(() => {
      for (const end = performance.now() + 700; performance.now() < end;);
    });
    expect(boundOf(await taken)).toBe("taken");
    expect(warnings).toEqual([]);
    await one.close();
  });

  // What was spent was sent again where only the answer was lost, and counted twice; so was a request whose beginning was not answered.
  describe("an answer of Redis that is lost", () => {
    /** Passes on what clients send; what Redis answers, only while `answers`. */
    async function openProxy(): Promise<{ url: string; answers: boolean; close(): void }> {
      const sockets = new Set<Socket>();
      const server = createServer((client) => {
        const upstream = connect(port, "127.0.0.1");
        for (const socket of [client, upstream]) sockets.add(socket.on("error", () => {}));
        client.on("data", (data) => upstream.write(data)).on("close", () => upstream.end());
        upstream.on("data", (data) => proxy.answers && client.write(data)).on("close", () => client.destroy());
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port: own } = server.address() as AddressInfo;
      const close = (): void => {
        for (const socket of sockets) socket.destroy();
        server.close();
      };
      const proxy = { url: `redis://127.0.0.1:${own}`, answers: true, close };
      return proxy;
    }

    const limits: UsageLimits = { tokensPerDay: 1000, budget: { total: 1 } };
    const cost = nanodollars(0.25);
    const usage = { model: "m", promptTokens: 10, cachedTokens: 0, completionTokens: 0, cost };

    /** What another instance sees under a name. */
    async function seen(name: string): Promise<unknown> {
      const [other] = (await opened(1)) as [Limiter];
      const { today: tokens, open, spent } = await other.use(name, limits);
      const rows = await other.usage(dayOf(Date.now()) - 1);
      await other.close();
      const requests = rows.filter((row) => row.name === name).reduce((sum, row) => sum + row.requests, 0);
      return { tokens, open, spent: spent.total, requests };
    }

    test.each([
      ["when a request ends", "end", limits],
      ["when it begins", "begin", limits],
      ["when one without limits ends", "end", {}],
    ] as const)("%s: it is counted once", async (_, when, own) => {
      const name = `lost: ${_}`;
      const proxy = await openProxy();
      const warnings: string[] = [];
      const limiter = await openLimiter(proxy.url, (line) => warnings.push(line));
      if (when === "begin") proxy.answers = false;
      const lease = await limiter.take(name, own, 10, 20, cost);
      if ("bound" in lease) throw new Error(lease.bound);
      proxy.answers = false;
      lease.end(10, usage);
      await until(() => warnings.length > 0, "the answer is missed");
      proxy.answers = true;
      const isBack = async (): Promise<boolean> => {
        await limiter.take("another", limits, 0);
        return warnings.length > 1;
      };
      await until(isBack, "Redis answers again");
      await limiter.close();
      const isCounted = own === limits && when === "end";
      expect(await seen(name)).toEqual({ tokens: isCounted ? 10 : 0, open: 0, spent: cost, requests: 1 });
      proxy.close();
    });
  });

  test("where there is no Redis from the start, it counts for itself", async () => {
    const warnings: string[] = [];
    const limiter = await openLimiter(`redis://127.0.0.1:${await freePort()}`, (line) => warnings.push(line));
    expect(await asked([limiter, limiter], "nobody", { requestsPerMinute: 1 }, 1)).toEqual(["requests", "taken"]);
    expect(warnings).toHaveLength(1);
    await limiter.close();
  });
});
