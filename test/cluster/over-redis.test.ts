import type { ChildProcess } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keyOf } from "../keys/support.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { answeredBy, ask, chat, read, startHolding, startWorkers } from "./processes.ts";

/** What several workers share. */
describe.skipIf(redisCommand() === undefined)("over Redis", () => {
  let redis: ChildProcess;
  let url: string;
  beforeAll(async () => {
    const port = await freePort();
    redis = await startRedis(port);
    url = `redis://127.0.0.1:${port}`;
  });
  afterAll(() => void redis.kill("SIGKILL"));

  test("limits of keys hold for all workers together, exactly", async () => {
    const { key, entry } = keyOf("alice");
    const upstream = await startHolding();
    const keys = [{ ...entry, requestsPerMinute: 3 }];
    const server = await startWorkers(upstream.url, { store: url, sharedLimits: url, keys });
    const path = "/v1/chat/completions";
    const answers = Array.from({ length: 20 }, () => ask(server.url, path, chat("Hi"), { key }));
    for (const answer of answers) await read(answer);
    const count = (status: number): number => answers.filter((answer) => answer.status === status).length;
    // The fourth request fits after twenty seconds.
    expect([count(200), count(429)]).toEqual([3, 17]);
    expect(await server.stop()).toBe(0);
    expect(answeredBy(server, path)).toEqual(new Set([1, 2]));
  });

  test("a conversation is continued, followed in the background and deleted at any worker", async () => {
    const upstream = await startHolding();
    const server = await startWorkers(upstream.url, { store: url });
    const path = "/v1/responses";
    interface Shown {
      readonly id: string;
      readonly status: string;
    }
    const respond = async (more: object): Promise<Shown> =>
      JSON.parse(await read(ask(server.url, path, { model: "m", input: "Hi", ...more }))) as Shown;
    let { id } = await respond({});
    for (let turn = 0; turn < 4; turn++) {
      const next = await respond({ previous_response_id: id });
      expect(next.status).toBe("completed");
      ({ id } = next);
    }
    const held = await respond({ input: "hold", background: true });
    for (let at = 0; at < 2; at++)
      expect(JSON.parse(await read(ask(server.url, `${path}/${held.id}`)))).toMatchObject({ id: held.id });
    const cancelled = await read(ask(server.url, `${path}/${held.id}/cancel`, {}));
    expect(JSON.parse(cancelled)).toMatchObject({ id: held.id, status: "cancelled" });

    await read(ask(server.url, `${path}/${id}`, undefined, { method: "DELETE" }));
    for (let at = 0; at < 2; at++) {
      const gone = ask(server.url, `${path}/${id}`);
      await gone.ended;
      expect(gone.status).toBe(404);
    }
    upstream.release();
    await server.stop();
    expect(answeredBy(server, path)).toEqual(new Set([1, 2]));
  });
});
