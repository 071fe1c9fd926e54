import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { until } from "../support/scripted-engine.ts";

const limits = { maxCount: 10, maxBytes: 1e6, maxAgeMs: 60_000 };
const command = ["redis-server", "valkey-server"].find((name) => spawnSync(name, ["--version"]).status === 0);
if (command === undefined) console.log("skipped: neither redis-server nor valkey-server is on the PATH");

describe.skipIf(command === undefined)("a store in Redis", () => {
  let server: ChildProcess;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    server = await start(port);
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
    server = await start(port);
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

  test("where there is no server, it cannot be opened", async () => {
    const nobody = await freePort();
    await expect(openStore(`redis://127.0.0.1:${nobody}`, limits, () => {})).rejects.toThrow(/ECONNREFUSED|refused/);
  });
});

async function start(port: number): Promise<ChildProcess> {
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn(command ?? "", options, { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    child.once("exit", () => reject(new Error("the server did not start")));
    child.stdout.on("data", (piece: Buffer) => {
      if (piece.toString().includes("Ready to accept connections")) resolve();
    });
  });
  return child;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
