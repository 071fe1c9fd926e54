import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, serving } from "../support/transports.ts";
import { keyOf, recordingLog, withKey } from "./support.ts";

describe.skipIf(redisCommand() === undefined)("instances that count together", () => {
  let redis: ChildProcess;
  let port: number;
  const servers: TruewireServer[] = [];
  const logs = [recordingLog(), recordingLog()];
  const daily = keyOf("alice", { tokensPerDay: 100, answerTokens: 1 });
  const narrow = keyOf("bob", { requestsPerMinute: 3, concurrency: 2 });
  const engine = new ScriptedEngine(() => answer(["Hi"], { usage: { promptTokens: 10, completionTokens: 20 } }));
  beforeAll(async () => {
    port = await freePort();
    redis = await startRedis(port);
    const sharedLimits = `redis://127.0.0.1:${port}`;
    for (const { log } of logs) {
      const config = serving(engine, { keys: [daily.entry, narrow.entry], sharedLimits });
      servers.push(await createServer({ ...config, port: 0 }, { log }));
    }
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close(0)));
    redis.kill("SIGKILL");
  });

  const post = async (instance: number, key: string): Promise<number> => {
    const response = await fetch(`${servers[instance]?.url}/v1/chat/completions`, withKey(key, chat("Hello")));
    await response.text();
    return response.status;
  };
  const told = (): string[] =>
    logs.flatMap(({ lines }) => lines.map(({ message }) => message).filter((line) => line.includes("Redis")));

  test("what one has answered the other one counts; without Redis each goes on with what was counted, and says so once", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) statuses.push(await post(i % 2, narrow.key));
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    for (const instance of [0, 1, 0]) expect(await post(instance, daily.key)).toBe(200);
    expect(told()).toEqual([]);

    redis.kill("SIGKILL");
    await once(redis, "exit");
    await until(() => told().length === 2, "both notice");
    // 90 of 100 are used: the first instance knows of all, since it was the last to ask.
    await until(async () => (await post(0, daily.key)) === 429, "the rest is spent");
    for (let i = 0; i < 3; i++) expect(await post(0, daily.key)).toBe(429);
    expect(await post(1, daily.key)).toBe(200);
    expect(told()).toHaveLength(2);

    redis = await startRedis(port);
    await until(async () => (await post(0, daily.key)) === 200, "it is asked again");
    expect(told().some((line) => line.includes("is back"))).toBe(true);
  });
});
