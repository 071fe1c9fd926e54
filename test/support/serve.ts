import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { DiscoveryOptions } from "../../src/serve/cli/serve-action.ts";
import { waitMs } from "./hang.ts";

/** The built command line; `TRUEWIRE_DIST` names another build than `npm run build`'s. */
export const builtMain: string = resolve(join(process.env.TRUEWIRE_DIST ?? "dist", "cli/main.js"));

export interface RunningTruewire {
  /** `http://127.0.0.1:…` */
  readonly url: string;
  readonly process: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Sends the signal (default SIGTERM) and resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface StartOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** In place of this repository's build. */
  readonly main?: string;
  /** Another subcommand that listens; default: serve. */
  readonly command?: string;
  /** How it looks for other servers; default: not at all, as it would find those of the developer. */
  readonly discovery?: DiscoveryOptions;
  /** How many files the process may have open (`ulimit -n`); not on Windows. Starting takes some 200. */
  readonly openFiles?: number;
  /** How much memory each of its processes may write to, in KiB (`ulimit -d`); Linux. */
  readonly memoryKibibytes?: number;
  /** A file that its stderr goes to, in place of being kept. */
  readonly stderrTo?: string;
}

/** The environment without the variables that Truewire reads: a developer may have set them. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const ours = /^(TRUEWIRE_(API_KEY|ADMIN_KEY|METRICS_KEY|SESSION_KEY|URL)|OPENAI_API_KEY|ANTHROPIC_API_KEY)$/;
  const others = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
  return others;
}

/** The beginning of a command that serves, and looks for other servers in this way. */
export function servingWith(discovery: DiscoveryOptions): string[] {
  const script = fileURLToPath(new URL("serve-with-discovery.mjs", import.meta.url));
  return [process.execPath, script, dirname(dirname(builtMain)), JSON.stringify(discovery)];
}

/**
 * Runs `truewire serve` with the arguments, on a free port unless they name one, and resolves when it says where it listens. Rejects
 * with what it said when it exits before, or hangs.
 */
export async function startTruewire(args: readonly string[], options: StartOptions = {}): Promise<RunningTruewire> {
  const { main = builtMain } = options;
  if (!existsSync(main)) throw new Error(`${main} is not there: npm run build`);
  const port = args.includes("--port") || args.includes("--config") ? [] : ["--port", "0"];
  const { command: name = "serve", discovery } = options;
  const begin = discovery
    ? servingWith(discovery)
    : [process.execPath, main, name, ...(name === "serve" ? ["--no-discovery"] : [])];
  const command = [...begin, ...port, ...args];
  const files = options.openFiles === undefined ? "" : `ulimit -n ${options.openFiles} && `;
  const memory = options.memoryKibibytes === undefined ? "" : `ulimit -d ${options.memoryKibibytes} && `;
  const limit = files + memory;
  const elsewhere = options.stderrTo === undefined ? "" : ` 2> "${options.stderrTo}"`;
  const inShell = ["sh", "-c", `${limit}exec "$@"${elsewhere}`, "sh", ...command];
  const [file = "", ...rest] = limit === "" && elsewhere === "" ? command : inShell;
  const child = spawn(file, rest, {
    cwd: options.cwd,
    env: { ...plainEnvironment(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  // Not "exit": its last lines may arrive after that.
  const closed = new Promise<number | null>((settle) => child.on("close", settle));
  const url = await new Promise<string>((settle, reject) => {
    const fail = (what: string): void => reject(new Error(`truewire ${what}\n${stdout}${stderr}`));
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      fail("did not say where it listens");
    }, waitMs);
    child.on("close", (code) => {
      clearTimeout(timer);
      fail(`exited with ${code}`);
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      const found = /(https?:\/\/\S+)\/v1\b[^\n]*\n/.exec(stdout);
      if (!found) return;
      clearTimeout(timer);
      settle(found[1] ?? "");
    });
  });
  return {
    url,
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    stop(signal = "SIGTERM") {
      child.kill(signal);
      return closed;
    },
  };
}

/** Runs the command line to its end. */
export function runTruewire(
  args: readonly string[],
  options: StartOptions = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { main = builtMain } = options;
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd,
    env: { ...plainEnvironment(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: waitMs,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return new Promise((settle) => child.on("close", (code) => settle({ code, stdout, stderr })));
}
