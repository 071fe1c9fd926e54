import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface ProcessLimits {
  /** Of V8's heap, in MiB. */
  readonly heapMiB: number;
  /** Of all memory that the process writes to, in MiB: the heap, buffers, and what native code allocates. */
  readonly memoryMiB: number;
}

/** Raises the process's own chance to be ended if the machine runs out of memory, sets the limit, and becomes Node. */
const shell = '{ echo 1000 > /proc/self/oom_score_adj; ulimit -c 0; ulimit -d "$0"; } 2>/dev/null; exec "$@"';
const shellFile = "/bin/sh";

/** Linux counts the memory that a process writes to (`RLIMIT_DATA`, setrlimit(2)); macOS has the limit and does not enforce it. */
const isEnforced = process.platform === "linux" && existsSync(shellFile);

/**
 * Starts a process for what reads files of strangers, such as documents: with a limit on memory, and with nothing of the server's environment
 * but `env`. A worker thread would not do: its `resourceLimits` do not hold against one large allocation, for which V8 ends the process.
 * On Linux the system enforces the limit; elsewhere a thread of the process looks at the resident memory every 20 ms.
 *
 * The process runs a compiled module, which gets and sends messages by `process`; values are copied as by `structuredClone`. It ends with its
 * parent. `limits`: absent for a module that limits its own memory.
 */
export function startLimitedProcess(
  module: URL,
  limits?: ProcessLimits,
  env: Readonly<Record<string, string | undefined>> = {},
): ChildProcess {
  const flags = limits ? [`--max-old-space-size=${limits.heapMiB}`] : [];
  const main = fileURLToPath(new URL("./limited-main.js", import.meta.url));
  const bytes = (limits?.memoryMiB ?? 0) * 2 ** 20;
  const command = [process.execPath, ...flags, main, module.href, ...(isEnforced ? [] : [String(bytes)])];
  const limited =
    limits && isEnforced ? [shellFile, "-c", shell, String(bytes / 1024 + 2 * reservedKiB), ...command] : command;
  const [file = "", ...rest] = limited;
  return spawn(file, rest, {
    env: { ...neededVariables(), ...env },
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    windowsHide: true,
  });
}

/**
 * Memory that V8 reserves for an isolate and does not use, in KiB: `RLIMIT_DATA` counts it. It is 20 MiB in Node 20 and 540 MiB in Node 24,
 * which did not start with a lower limit. It is read when this module loads, before clients can change what this process uses. A limited process
 * has two isolates: its own, and that of the thread that watches it.
 */
const reservedKiB = isEnforced ? readReserved("/proc/self/status") : 0;

function readReserved(file: string): number {
  const status = existsSync(file) ? readFileSync(file, "utf8") : "";
  const [data = 0, used = 0] = [/^VmData:\s+(\d+)/m, /^RssAnon:\s+(\d+)/m].map((line) =>
    Number(line.exec(status)?.[1] ?? 0),
  );
  return Math.max(0, data - used);
}

/** Variables without which Node may not start: the folders of its libraries, and that of Windows. */
function neededVariables(): NodeJS.ProcessEnv {
  const needed = /^(?:LD_LIBRARY_PATH|DYLD_\w+_PATH|SystemRoot)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => needed.test(name)));
}

/** Why a limited process ended by itself, as the end of a sentence: "it needs more than 1024 MiB of memory, or breaks its reader". */
export function howItEnded(code: number | null, signal: NodeJS.Signals | null, { memoryMiB }: ProcessLimits): string {
  // V8 aborts if an allocation fails, native code may crash; the watching thread and the system kill.
  const isMemory = signal !== null || code === 134;
  return isMemory
    ? `it needs more than ${memoryMiB} MiB of memory, or breaks its reader`
    : `its process exited with code ${code}`;
}
