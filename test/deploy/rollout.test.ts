import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/** A program that streams 40 words in about two seconds. */
const program = `
export default async function* () {
  for (let at = 0; at < 40; at++) {
    yield "word" + at + " ";
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
`;
const clients = 24;

/*
 * A rollout as Kubernetes does it: a new instance is ready before an old one leaves the service (maxUnavailable: 0); preStop keeps the old one
 * until balancers send it nothing new; then it gets SIGTERM and its `grace`.
 */
describe.skipIf(redisCommand() === undefined)(
  "three instances with one Redis, replaced one after the other under load",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "truewire-rollout-"));
    let redis: ChildProcess;
    let balancer: Server;
    let args: readonly string[] = [];
    /** Those that new connections go to. */
    const serving: RunningTruewire[] = [];
    const all: RunningTruewire[] = [];
    let turn = 0;

    const start = async (): Promise<void> => {
      const instance = await startTruewire(args);
      all.push(instance);
      serving.push(instance);
    };

    beforeAll(async () => {
      const port = await freePort();
      redis = await startRedis(port);
      writeFileSync(join(folder, "program.mjs"), program);
      args = ["--store", `redis://127.0.0.1:${port}`, "--grace", "120s", `demo=${join(folder, "program.mjs")}`];
      await Promise.all([start(), start(), start()]);
      balancer = createServer((socket) => {
        const target = serving[turn++ % serving.length];
        if (!target) return void socket.destroy();
        const onward = connect(Number(new URL(target.url).port), "127.0.0.1");
        socket.on("error", () => onward.destroy()).on("close", () => onward.destroy());
        onward.on("error", () => socket.destroy()).on("close", () => socket.destroy());
        socket.pipe(onward).pipe(socket);
      }).listen(0, "127.0.0.1");
      await once(balancer, "listening");
    });
    afterAll(async () => {
      balancer?.close();
      await Promise.all(all.map((instance) => instance.stop("SIGKILL")));
      redis?.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    });

    test("no stream is cut, and each old instance ends by itself", async () => {
      const url = `http://127.0.0.1:${(balancer.address() as AddressInfo).port}/v1/chat/completions`;
      const counts = { whole: 0, cut: 0, refused: 0 };
      const rollout = { isOver: false };
      const client = async (): Promise<void> => {
        while (!rollout.isOver) {
          const init = {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ model: "demo", stream: true, messages: [{ role: "user", content: "Count" }] }),
          };
          // A connection that an instance has closed, or a 503 of one that stops: nothing has begun, and every SDK asks again.
          const response = await fetch(url, init).catch(() => undefined);
          if (response?.status !== 200) {
            await response?.text().catch(() => "");
            counts.refused++;
            continue;
          }
          const text = await response.text().catch(() => "");
          if (text.includes("word39 ") && text.endsWith("data: [DONE]\n\n")) counts.whole++;
          else counts.cut++;
        }
      };
      const load = Array.from({ length: clients }, client);
      const codes: (number | null)[] = [];
      for (const old of serving.slice()) {
        await start();
        serving.splice(serving.indexOf(old), 1);
        // Streams are open in it: SIGTERM comes in the middle of them.
        codes.push(await old.stop("SIGTERM"));
      }
      rollout.isOver = true;
      await Promise.all(load);
      console.log(
        `rollout: ${counts.whole} streams whole, ${counts.cut} cut, ${counts.refused} refused before they began`,
      );
      expect(codes).toEqual([0, 0, 0]);
      expect(counts.cut).toBe(0);
      expect(counts.whole).toBeGreaterThan(clients);
    });
  },
);
