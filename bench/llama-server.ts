import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { libraryFolders } from "../src/engines/llama/libraries/library-folders.ts";
import { freePort } from "../test/support/redis-server.ts";

/** llama.cpp's own server, as `TRUEWIRE_LLAMA_SERVER` names it. */
export const llamaServerFile: string | undefined = process.env.TRUEWIRE_LLAMA_SERVER;

const copies = resolve(".cache/llama-server");
const cpuLibrary = /^libggml-cpu[^/]*\.so$/;

/**
 * A program from the folder of llama.cpp's server, and the environment in which it uses Truewire's CPU libraries, so that compiler flags decide
 * nothing. llama.cpp searches the folder of the program for them (ggml-backend-reg.cpp, `ggml_backend_load_best`), so the program is copied
 * to a folder with node-llama-cpp's libraries; the folder that is given stays as it is. A build with a static CPU backend keeps its own,
 * which `cpuLibraryOf` shows. Null if there is no such program.
 */
export function withOurLibraries(program: string): { readonly file: string; readonly env: NodeJS.ProcessEnv } | null {
  const given = llamaServerFile === undefined ? undefined : dirname(resolve(llamaServerFile));
  const source = given === undefined ? undefined : join(given, program);
  if (given === undefined || source === undefined || !existsSync(source)) return null;
  const [ours] = libraryFolders(false);
  if (!ours) throw new Error("node-llama-cpp has no libraries for this platform.");
  const folder = join(copies, program);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const file = join(folder, program);
  copyFileSync(source, file);
  for (const name of readdirSync(ours.folder).filter((entry) => cpuLibrary.test(entry)))
    copyFileSync(join(ours.folder, name), join(folder, name));
  const paths = [given, process.env.LD_LIBRARY_PATH].filter((path) => path !== undefined && path !== "");
  return { file, env: { ...process.env, LD_LIBRARY_PATH: paths.join(":") } };
}

/** The CPU library that a process has loaded: its name and the start of its SHA-256 (Linux). */
export function cpuLibraryOf(pid: number): string {
  const lines = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  const files = new Set(
    lines.map((line) => line.slice(line.indexOf("/"))).filter((path) => cpuLibrary.test(basename(path))),
  );
  const names = [...files].map(
    (path) => `${basename(path)} ${createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 8)}`,
  );
  return names.length === 0 ? "its own, linked statically" : names.join(" and ");
}

export interface LlamaServerOptions {
  readonly model: string;
  readonly slots: number;
  /** Of each slot. */
  readonly contextSize: number;
  readonly threads: number;
  /** More arguments. */
  readonly more?: readonly string[];
}

export interface RunningLlamaServer {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts llama.cpp's server on a free port, with Truewire's CPU libraries, and resolves when it answers; null if there is no such server. The
 * server ends with this process at the latest.
 */
export async function startLlamaServer(options: LlamaServerOptions): Promise<RunningLlamaServer | null> {
  if (llamaServerFile === undefined) return null;
  const server = withOurLibraries(basename(llamaServerFile));
  if (!server) throw new Error(`TRUEWIRE_LLAMA_SERVER names ${llamaServerFile}, which does not exist.`);
  const { model, slots, contextSize, threads, more = [] } = options;
  const port = await freePort();
  const numbers = ["-c", contextSize * slots, "-np", slots, "-t", threads, "-tb", threads, "--port", port, "-ngl", 0];
  const child = spawn(server.file, ["-m", model, "--host", "127.0.0.1", ...numbers.map(String), ...more], {
    stdio: "ignore",
    env: server.env,
  });
  const exited = new Promise<void>((settle) => {
    child.once("exit", () => settle());
    // A file that cannot be started.
    child.once("error", () => settle());
  });
  const kill = (): void => void child.kill("SIGKILL");
  const interrupted = (): void => process.exit(1);
  process.once("exit", kill);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, interrupted);
  const stop = async (): Promise<void> => {
    kill();
    await exited;
    process.off("exit", kill);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.off(signal, interrupted);
  };
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    const response = await fetch(`${url}/health`).catch(() => null);
    if (response?.ok) break;
    if (tries > 1200 || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) {
      await stop();
      throw new Error(`${llamaServerFile} does not answer (exit code ${child.exitCode ?? child.signalCode}).`);
    }
    await new Promise((settle) => setTimeout(settle, 100));
  }
  return { url, pid: child.pid ?? 0, stop };
}
