import type { ChildProcess } from "node:child_process";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { until } from "../support/scripted-engine.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { json } from "../support/transports.ts";
import { fault } from "./fault.ts";
import { outcome } from "./outcome.ts";
import { afterwards, ask, canMount, mountSmallDisk, newFolder, serve, writeProgram } from "./support.ts";

const hasRedis = redisCommand() !== undefined;

/** One request of a conversation. */
function respond({ url }: RunningTruewire, more: object = {}): Promise<Response> {
  return fetch(`${url}/v1/responses`, json({ model: "program", input: "2", ...more }));
}

async function idOf(asking: Promise<Response>): Promise<string> {
  return ((await (await asking).json()) as { id: string }).id;
}

async function redisAt(port: number): Promise<ChildProcess> {
  const redis = await startRedis(port);
  afterwards(() => redis.kill("SIGKILL"));
  return redis;
}

async function killed(redis: ChildProcess): Promise<void> {
  redis.kill("SIGKILL");
  await once(redis, "exit");
}

fault(
  "the store's Redis goes away, and comes back",
  async () => {
    const port = await freePort();
    const redis = await redisAt(port);
    const server = await serve([writeProgram(newFolder()), "--store", `redis://127.0.0.1:${port}`]);
    const id = await idOf(respond(server));
    await killed(redis);
    const alone = await outcome(respond(server));
    const next = await outcome(respond(server, { previous_response_id: id }));
    await redisAt(port);
    const kept = async (): Promise<string> => {
      const first = await idOf(respond(server));
      return outcome(respond(server, { previous_response_id: first }));
    };
    await until(async () => (await kept()) === "200", "what is new is kept again");
    return { clients: [`a new request ${alone}`, `one that continues ${next}`], log: server.stderr };
  },
  hasRedis,
);

fault(
  "the store's Redis hangs, and comes back",
  async () => {
    const port = await freePort();
    const redis = await redisAt(port);
    const server = await serve([writeProgram(newFolder()), "--store", `redis://127.0.0.1:${port}`]);
    const id = await idOf(respond(server));
    redis.kill("SIGSTOP");
    // Requests that wait for it at once, the first ones while nobody knows yet that it hangs.
    const asking = [respond(server), respond(server, { previous_response_id: id }), respond(server)];
    const [alone, next] = await Promise.all(asking.map((one) => outcome(one)));
    const later = await outcome(respond(server, { previous_response_id: id }));
    redis.kill("SIGCONT");
    await until(
      async () => (await outcome(respond(server, { previous_response_id: id }))) === "200",
      "what was kept is found again",
    );
    return {
      clients: [`a new request ${alone}`, `a request that refers to it ${next}`, `the next one ${later}`],
      log: server.stderr,
    };
  },
  hasRedis,
);

fault(
  "the server is killed while it generates in the background",
  async () => {
    const args = [writeProgram(newFolder()), "--store", join(newFolder(), "store")];
    const first = await serve(args);
    const id = await idOf(respond(first, { input: "10000", background: true }));
    const status = async (server: RunningTruewire): Promise<string> =>
      ((await (await fetch(`${server.url}/v1/responses/${id}`)).json()) as { status: string }).status;
    await until(async () => (await status(first)) === "in_progress", "it is in progress");
    await first.stop("SIGKILL");
    const server = await serve(args);
    const after = await status(server);
    const stream = await (await fetch(`${server.url}/v1/responses/${id}?stream=true`)).text();
    const isTold = stream.includes("event: response.failed");
    return {
      clients: ["before `in_progress`", `after the restart \`${after}\`${isTold ? ", also for its stream" : ""}`],
      log: server.stderr,
    };
  },
  process.platform === "linux",
);

fault(
  "the store's Redis loses its data in the middle of a conversation",
  async () => {
    const port = await freePort();
    await redisAt(port);
    const server = await serve([writeProgram(newFolder()), "--store", `redis://127.0.0.1:${port}`]);
    const id = await idOf(respond(server));
    // A server that comes back empty is the same to it.
    const { createClient } = await import("@redis/client");
    const raw = await createClient({ url: `redis://127.0.0.1:${port}` }).connect();
    await raw.flushAll();
    await raw.close();
    const next = await outcome(respond(server, { previous_response_id: id }));
    return {
      clients: [`one that continues ${next}`, `a new request ${await outcome(respond(server))}`],
      log: server.stderr,
    };
  },
  hasRedis,
);

fault("the store's Redis is not there when the server starts", async () => {
  const store = ["--store", `redis://127.0.0.1:${await freePort()}`];
  const message = await serve([writeProgram(newFolder()), ...store]).then(() => "it starts", String);
  return { clients: [message.includes("exited with 1") ? "the server does not start" : message], log: () => message };
});

fault(
  "the Redis of the limits goes away, and comes back",
  async () => {
    const port = await freePort();
    const redis = await redisAt(port);
    const args = ["--shared-limits", `redis://127.0.0.1:${port}`];
    const { server, headers } = await serveWithKey("tw-key-of-alice-0123456789", "requestsPerMinute: 1000", args);
    const hi = (): Promise<string> => outcome(ask(server.url, "program", "1", {}, headers));
    await hi();
    await killed(redis);
    const meanwhile = await hi();
    await redisAt(port);
    await until(async () => (await hi()) === "200" && server.stderr().includes("is back"), "it is back");
    return { clients: [meanwhile], log: server.stderr };
  },
  hasRedis,
);

fault(
  "the Redis of the limits hangs",
  async () => {
    const port = await freePort();
    const redis = await redisAt(port);
    const key = "tw-key-of-alice-0123456789";
    const { server, headers } = await serveWithKey(key, "requestsPerMinute: 3", [
      "--shared-limits",
      `redis://127.0.0.1:${port}`,
    ]);
    const hi = (): Promise<string> => outcome(ask(server.url, "program", "1", {}, headers));
    const before = await hi();
    redis.kill("SIGSTOP");
    const meanwhile = [await hi(), await hi(), await hi()];
    redis.kill("SIGCONT");
    await until(async () => {
      await hi();
      return server.stderr().includes("is back");
    }, "it is back");
    return { clients: [`before ${before}`, `meanwhile ${meanwhile.join(", ")}`], log: server.stderr };
  },
  hasRedis,
);

fault(
  "the disk of the store is full",
  async () => {
    const folder = newFolder();
    mountSmallDisk(folder, 128 * 1024);
    const server = await serve([writeProgram(newFolder()), "--store", folder]);
    const id = await idOf(respond(server));
    const filler = join(folder, "filler");
    fill(filler);
    const answered = await outcome(respond(server, { input: `2 ${"x".repeat(20_000)}` }));
    const next = await outcome(respond(server, { previous_response_id: id }));
    const background = await outcome(respond(server, { background: true, input: `2 ${"x".repeat(20_000)}` }));
    rmSync(filler);
    const again = await idOf(respond(server));
    await until(
      async () => (await outcome(respond(server, { previous_response_id: again }))) === "200",
      "what is new is kept again",
    );
    return {
      clients: [`a new request ${answered}`, `one that continues ${next}`, `one in the background ${background}`],
      log: server.stderr,
    };
  },
  canMount,
);

fault(
  "the store's folder becomes read-only",
  async () => {
    const folder = newFolder();
    mountSmallDisk(folder, 1024 * 1024);
    const server = await serve([writeProgram(newFolder()), "--store", folder]);
    const id = await idOf(respond(server));
    execFileSync("mount", ["-o", "remount,ro", folder]);
    const answered = await outcome(respond(server));
    const next = await outcome(respond(server, { previous_response_id: id }));
    execFileSync("mount", ["-o", "remount,rw", folder]);
    const again = await idOf(respond(server));
    await until(
      async () => (await outcome(respond(server, { previous_response_id: again }))) === "200",
      "what is new is kept again",
    );
    return { clients: [`a new request ${answered}`, `one that continues ${next}`], log: server.stderr };
  },
  canMount,
);

fault("the store's folder is deleted", async () => {
  const folder = join(newFolder(), "store");
  const server = await serve([writeProgram(newFolder()), "--store", folder]);
  const id = await idOf(respond(server));
  rmSync(folder, { recursive: true });
  const next = await outcome(respond(server, { previous_response_id: id }));
  const again = await idOf(respond(server));
  const kept = await outcome(respond(server, { previous_response_id: again }));
  return { clients: [`one that continues ${next}`, `one that follows a new one ${kept}`], log: server.stderr };
});

async function serveWithKey(
  key: string,
  limits: string,
  args: readonly string[],
): Promise<{ server: RunningTruewire; headers: Record<string, string> }> {
  const { createHash } = await import("node:crypto");
  const file = join(newFolder(), "keys.yaml");
  writeFileSync(
    file,
    `- { name: alice, hash: "sha256:${createHash("sha256").update(key).digest("hex")}", ${limits} }\n`,
  );
  const server = await serve([writeProgram(newFolder()), "--keys-file", file, ...args]);
  return { server, headers: { authorization: `Bearer ${key}` } };
}

/** Takes all the room that there is. */
function fill(file: string): void {
  try {
    for (let at = 0; ; at++) writeFileSync(file, Buffer.alloc(1024), { flag: "a" });
  } catch (error) {
    if (!String(error).includes("ENOSPC")) throw error;
  }
}
