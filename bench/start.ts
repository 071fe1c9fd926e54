import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { processCpuMs } from "./process-cpu.ts";

/**
 * The time from the start of a gateway until it prints its address, next to a server of Node that does nothing, in turns. The upstream does
 * not exist: the gateway is ready without it.
 *
 *     npm run build && npm run bench start [-- --rounds 10] [--main ANOTHER/dist/cli/main.js]
 *
 * Wall time and CPU time (all threads, in steps of 10 ms) in milliseconds, resident memory in MB, medians. Needs Linux (/proc).
 * Exits with 1 if a server does not start.
 */
const { values } = parseArgs({ options: { rounds: { type: "string", default: "10" }, main: { type: "string" } } });

const serve = ["serve", "--port", "0", "--workers", "1", "--log-level", "silent", "http://127.0.0.1:9/v1"];
const bare = `const s = require("node:http").createServer(() => {}).listen(0, () => console.log(s.address().port))`;
const ways: Readonly<Record<string, readonly string[]>> = {
  "node:http": ["-e", bare],
  truewire: ["dist/cli/main.js", ...serve],
  ...(values.main !== undefined && { [values.main]: [values.main, ...serve] }),
};

interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly residentMb: number;
}

/** An empty folder: caches of compiled code begin empty, and the first start of each way fills them. */
const caches = mkdtempSync(join(tmpdir(), "truewire-start-"));

async function startOf(args: readonly string[]): Promise<Start> {
  const from = performance.now();
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, XDG_CACHE_HOME: caches },
  });
  const ended = once(child, "exit");
  const first = await Promise.race([once(child.stdout, "data"), ended]);
  const wallMs = performance.now() - from;
  if (child.pid === undefined || !Buffer.isBuffer(first[0])) throw new Error(`node ${args.join(" ")} ended.`);
  const cpuMs = processCpuMs(child.pid);
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
  child.kill("SIGINT");
  await ended;
  return { wallMs, cpuMs, residentMb: Number(kilobytes) / 1024 };
}

const starts = new Map<string, Start[]>();
for (const args of Object.values(ways)) await startOf(args);
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, args] of Object.entries(ways)) starts.set(name, [...(starts.get(name) ?? []), await startOf(args)]);
}
console.log(`Node ${process.version}, ${availableParallelism()} CPUs, load ${loadavg()[0]?.toFixed(1)}`);
for (const [name, all] of starts) {
  const middle = (of: (start: Start) => number): string =>
    (all.map(of).toSorted((a, b) => a - b)[all.length >> 1] ?? 0).toFixed(0).padStart(4);
  console.log(
    `${name.padEnd(12)} ready ${middle(({ wallMs }) => wallMs)} ms   CPU ${middle(({ cpuMs }) => cpuMs)} ms   resident ${middle(({ residentMb }) => residentMb)} MB`,
  );
}
