import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/** A program that says how many messages it was given, slowly where it is told to. */
const program = `
export default async function* ({ messages }) {
  yield "I know ";
  if (JSON.stringify(messages.at(-1)).includes("slowly")) await new Promise((resolve) => setTimeout(resolve, 60_000));
  yield messages.length + " messages.";
}
`;

describe.skipIf(redisCommand() === undefined)("two instances behind a balancer, with one Redis", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-instances-"));
  let redis: ChildProcess;
  let instances: RunningTruewire[] = [];
  let balancer: Server;
  let client: OpenAI;

  beforeAll(async () => {
    const port = await freePort();
    redis = await startRedis(port);
    writeFileSync(join(folder, "program.mjs"), program);
    const args = ["--store", `redis://127.0.0.1:${port}`, `demo=${join(folder, "program.mjs")}`];
    instances = await Promise.all([startTruewire(args), startTruewire(args)]);
    balancer = createServer((socket) => {
      socket.on("error", () => {});
      // The first instance that takes the connection.
      const open = ([target, ...others]: readonly RunningTruewire[]): void => {
        if (!target) return void socket.destroy();
        let connected = false;
        const onward = connect(Number(new URL(target.url).port), "127.0.0.1", () => {
          connected = true;
          socket.pipe(onward).pipe(socket);
        });
        onward.on("error", () => {});
        onward.on("close", () => (connected ? socket.destroy() : open(others)));
        socket.on("close", () => onward.destroy());
      };
      open(instances);
    }).listen(0, "127.0.0.1");
    await once(balancer, "listening");
    const baseURL = `http://127.0.0.1:${(balancer.address() as AddressInfo).port}/v1`;
    client = new OpenAI({ baseURL, apiKey: "sk-none", maxRetries: 2 });
  });
  afterAll(async () => {
    balancer?.close();
    await Promise.all(instances.map((instance) => instance.stop("SIGKILL")));
    redis?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  test("one is killed in the middle of a conversation, and the conversation goes on", async () => {
    const first = await client.responses.create({ model: "demo", input: "One" });
    expect(first.output_text).toBe("I know 1 messages.");
    const second = await client.responses.create({ model: "demo", input: "Two", previous_response_id: first.id });
    expect(second.output_text).toBe("I know 3 messages.");

    const stream = await client.responses.create({
      model: "demo",
      input: "Three, slowly",
      previous_response_id: second.id,
      stream: true,
    });
    const types: string[] = [];
    const read = (async () => {
      for await (const event of stream) {
        types.push(event.type);
        if (event.type === "response.output_text.delta") instances[0]?.process.kill("SIGKILL");
      }
    })();
    // A stream that broke must not look like one that ended.
    await expect(read).rejects.toThrow();
    expect(types).not.toContain("response.completed");

    const again = await client.responses.create({ model: "demo", input: "Three", previous_response_id: second.id });
    expect(again.output_text).toBe("I know 5 messages.");
    expect((await client.responses.retrieve(first.id)).output_text).toBe("I know 1 messages.");
  });
});
