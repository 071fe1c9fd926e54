import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { listen } from "./listen.ts";

/** The command of a Redis or Valkey server; undefined, and one line that says so, where there is none. */
export function redisCommand(): string | undefined {
  const command = ["redis-server", "valkey-server"].find((name) => spawnSync(name, ["--version"]).status === 0);
  if (command === undefined) console.log("skipped: neither redis-server nor valkey-server is on the PATH");
  return command;
}

/** Starts a server that keeps nothing on disk; resolves when it is ready. */
export async function startRedis(port: number): Promise<ChildProcess> {
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn(redisCommand() ?? "", options, { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    child.once("exit", () => reject(new Error("the server did not start")));
    child.stdout.on("data", (piece: Buffer) => {
      if (piece.toString().includes("Ready to accept connections")) resolve();
    });
  });
  return child;
}

/** Returns a port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const { port, close } = await listen(() => {});
  await close();
  return port;
}
