import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../src/serve/kv/open.ts";
import type { Store } from "../../src/serve/kv/store.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { until } from "../support/scripted-engine.ts";

const limits = { maxCount: 10, maxBytes: 1e6, maxAgeMs: 60_000 };

describe.skipIf(redisCommand() === undefined)("a store in Redis", () => {
  let server: ChildProcess;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    server = await startRedis(port);
  });
  afterAll(() => void server.kill("SIGKILL"));

  const opened = async (options: Partial<typeof limits> = {}, warnings: string[] = []): Promise<Store> =>
    openStore(`redis://127.0.0.1:${port}`, { ...limits, ...options }, (line) => warnings.push(line));

  test("two instances share it", async () => {
    const [one, other] = [await opened(), await opened()];
    await one.set("a", "é");
    expect(await other.get("a")).toBe("é");
    expect(await other.delete("a")).toBe(true);
    expect(await one.get("a")).toBeUndefined();
    expect(await one.delete("a")).toBe(false);
    await Promise.all([one.close(), other.close()]);
  });

  test("additions of two instances follow each other, and begin its age anew", async () => {
    const [one, other] = [await opened(), await opened()];
    expect([await one.append("b", "x"), await one.readFrom("b", 0)]).toEqual([false, undefined]);
    await one.set("b", "é");
    await Promise.all(Array.from({ length: 40 }, (_, at) => (at % 2 ? one : other).append("b", `<${at}>`)));
    const { text = "", size } = (await other.readFrom("b", 2)) ?? {};
    expect(text.match(/<\d+>/g)).toHaveLength(40);
    expect(size).toBe(2 + text.length);
    const brief = await opened({ maxAgeMs: 50 });
    await brief.append("b", "!");
    await until(async () => (await one.readFrom("b", 0)) === undefined, "it is forgotten");
    await Promise.all([one, other, brief].map((store) => store.close()));
  });

  test("what is too old is forgotten", async () => {
    const store = await opened({ maxAgeMs: 50 });
    await store.set("old", "x");
    expect(await store.get("old")).toBe("x");
    await until(async () => (await store.get("old")) === undefined, "it is forgotten");
    await store.close();
  });

  test("a command fails at once while the server is away, and works again when it is back", async () => {
    const warnings: string[] = [];
    const store = await opened({}, warnings);
    server.kill("SIGKILL");
    await once(server, "exit");
    await until(() => warnings.length > 0, "the loss is noticed");
    expect(warnings[0]).toContain("the store's Redis cannot be reached");
    await expect(store.get("a")).rejects.toThrow();
    await expect(store.set("a", "x")).rejects.toThrow();
    server = await startRedis(port);
    await until(
      () =>
        store.set("a", "y").then(
          () => true,
          () => false,
        ),
      "it is connected again",
    );
    expect(await store.get("a")).toBe("y");
    await store.close();
  });

  // The client library's time-out ends only commands that wait to be sent: those that were sent never settled.
  test("when the server hangs, every command in flight fails in time, the next ones at once, and it works again afterwards", async () => {
    const warnings: string[] = [];
    const store = await opened({}, warnings);
    await store.set("a", "x");
    server.kill("SIGSTOP");
    try {
      const inFlight = [store.get("a"), store.set("b", "x".repeat(5_000_000)), store.delete("a"), store.get("b")];
      const settled = await Promise.allSettled(inFlight);
      expect(settled.map(({ status }) => status)).toEqual(Array.from(inFlight, () => "rejected"));
      expect(warnings).toEqual(["the store's Redis cannot be reached: no answer within 3000 ms"]);
      // The kernel accepts the new connection, and nobody answers on it.
      for (let i = 0; i < 3; i++) await expect(store.get("a")).rejects.toThrow("There is no connection to Redis.");
    } finally {
      server.kill("SIGCONT");
    }
    await until(
      () =>
        store.set("c", "y").then(
          () => true,
          () => false,
        ),
      "it is connected again",
    );
    expect(await store.get("c")).toBe("y");
    expect(warnings[1]).toBe("the store's Redis is back");
    await store.close();
  });

  test("a server that hangs from the start, or while it is closed, holds nobody", async () => {
    const store = await opened();
    server.kill("SIGSTOP");
    try {
      await expect(opened()).rejects.toThrow("no answer within 3000 ms");
      const asked = store.get("a");
      const closed = store.close();
      await expect(asked).rejects.toThrow();
      await closed;
    } finally {
      server.kill("SIGCONT");
    }
  });

  test("where there is no server, it cannot be opened", async () => {
    const nobody = await freePort();
    await expect(openStore(`redis://127.0.0.1:${nobody}`, limits, () => {})).rejects.toThrow(/ECONNREFUSED|refused/);
  });
});
