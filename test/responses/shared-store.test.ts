import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

describe.skipIf(redisCommand() === undefined)("instances that share a Redis", () => {
  let redis: ChildProcess;
  let store: string;
  const servers: TruewireServer[] = [];
  const engine = new ScriptedEngine(() => answer(["Hello"]));
  beforeAll(async () => {
    const port = await freePort();
    redis = await startRedis(port);
    store = `redis://127.0.0.1:${port}`;
    for (let i = 0; i < 2; i++)
      servers.push(await createServer({ port: 0, logLevel: "silent", ...serving(engine, { store }) }));
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close(0)));
    redis.kill("SIGKILL");
  });

  const post = (instance: number, body: object): Promise<Response> =>
    fetch(`${servers[instance]?.url}/v1/responses`, json({ model: "scripted", input: "x", ...body }));

  test("a client may come back to any of them; without the Redis it is answered, and nothing is kept", async () => {
    const { id } = (await (await post(0, {})).json()) as { id: string };
    expect((await post(1, { previous_response_id: id })).status).toBe(200);
    const prompt = engine.requests.at(-1)?.prompt;
    expect(prompt?.kind === "chat" && prompt.messages.length).toBe(3);

    redis.kill("SIGKILL");
    await once(redis, "exit");
    const answered = await post(0, {});
    expect([answered.status, await answered.json()]).toMatchObject([200, { status: "completed" }]);
    const streamed = await post(0, { stream: true });
    expect(await streamed.text()).toContain("event: response.completed");
    for (const refused of [
      await post(1, { previous_response_id: id }),
      await post(1, { background: true }),
      await fetch(`${servers[1]?.url}/v1/responses/${id}`),
    ]) {
      expect([refused.status, await refused.json()]).toMatchObject([
        503,
        { error: { message: "What is stored cannot be reached just now. Please try again later." } },
      ]);
    }
  });

  test("a server whose Redis is not there does not start, and says why", async () => {
    const nobody = `redis://127.0.0.1:${await freePort()}`;
    const config = { port: 0, logLevel: "silent", ...serving(engine, { store: nobody }) } as const;
    await expect(createServer(config)).rejects.toThrow(/store\.at: cannot be opened: .*ECONNREFUSED/);
  });
});
