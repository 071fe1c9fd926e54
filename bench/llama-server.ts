import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

/** llama.cpp's own server, as `TRUEWIRE_LLAMA_SERVER` names it. */
export const llamaServerFile: string | undefined = process.env.TRUEWIRE_LLAMA_SERVER;

export interface LlamaServerOptions {
  readonly model: string;
  readonly slots: number;
  /** Of each slot. */
  readonly contextSize: number;
  readonly threads: number;
  /** A draft model. */
  readonly draft?: string;
}

export interface RunningLlamaServer {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts llama.cpp's server on a free port and resolves when it answers; null: there is none. */
export async function startLlamaServer(options: LlamaServerOptions): Promise<RunningLlamaServer | null> {
  if (llamaServerFile === undefined || !existsSync(llamaServerFile)) return null;
  const { model, slots, contextSize, threads, draft } = options;
  const port = await freePort();
  const numbers = ["-c", contextSize * slots, "-np", slots, "-t", threads, "-tb", threads, "--port", port, "-ngl", 0];
  const child = spawn(
    llamaServerFile,
    [
      "-m",
      model,
      "--host",
      "127.0.0.1",
      ...numbers.map(String),
      ...(draft === undefined
        ? []
        : ["--spec-type", "draft-simple", "-md", draft, "-td", String(threads), "-ngld", "0"]),
    ],
    {
      stdio: "ignore",
    },
  );
  const exited = new Promise<void>((settle) => child.once("exit", () => settle()));
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    const response = await fetch(`${url}/health`).catch(() => null);
    if (response?.ok) break;
    if (tries > 1200 || child.exitCode !== null) throw new Error(`${llamaServerFile} does not answer.`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    url,
    pid: child.pid ?? 0,
    stop() {
      child.kill("SIGKILL");
      return exited;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
