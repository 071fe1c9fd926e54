// What a second process brings, and what it costs: the same load through a proxy that only copies bytes, through Truewire in one process,
// and in several. The load is an upstream's (each worker asks it by itself), or a program's (the primary process runs it, and sends what
// it says to its workers). Linux only.
//
//   npm run build && npm run bench workers -- [--streams 64,256] [--workers 1,2] [--seconds 3] [--rounds 3]
//
// The clients and the upstream are processes on the same cores as the gateway: on two cores, streams per second show what is left for the
// gateway beside them, and a second worker can bring less than its core. CPU µs per event is the gateway's alone, all its processes
// together, and says what a stream costs wherever the load comes from.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { startTruewire } from "../test/support/serve.ts";
import type { Job, Outcome } from "./gateway/client.ts";
import { childrenOf, cpuMicroseconds } from "./gateway/process-usage.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "64,256" },
    workers: { type: "string", default: "1,2" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
  },
});
const seconds = Number(values.seconds);
const folder = new URL("gateway/", import.meta.url);
const files = mkdtempSync(join(tmpdir(), "truewire-bench-"));

interface Gateway {
  readonly name: string;
  readonly url: string;
  readonly model: string;
  /** All its processes. */
  readonly pids: readonly number[];
}

const children: ChildProcess[] = [];
// Also where a process failed to start: what is left running holds the terminal's pipe open.
process.on("exit", () => {
  for (const child of children) child.kill();
  rmSync(files, { recursive: true, force: true });
});

async function startProcess(file: string, ...args: string[]): Promise<{ url: string; pid: number }> {
  const child = spawn(process.execPath, [new URL(file, folder).pathname, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { url: line, pid: child.pid ?? 0 };
}

async function startGateway(name: string, target: string, model: string, workers: number): Promise<Gateway> {
  const server = await startTruewire(["--log-level", "warn", "--no-inspect", "--workers", String(workers), target]);
  children.push(server.process);
  const pid = server.process.pid ?? 0;
  return { name: `${name}, ${workers}`, url: `${server.url}/v1`, model, pids: [pid, ...childrenOf(pid)] };
}

/** As many words as the upstream's answer has; a pause now and then lets others run. */
const program = join(files, "words.mjs");
writeFileSync(
  program,
  `export default async function* () {
  for (let at = 0; at < 200; at++) {
    yield at % 7 === 0 ? " word\\n" : " word";
    if (at % 50 === 49) await new Promise(setImmediate);
  }
}
`,
);

const upstream = await startProcess("upstream.js");
const passThrough = await startProcess("pass-through.js", upstream.url);
const gateways: Gateway[] = [{ name: "pass-through", url: passThrough.url, model: "burst", pids: [passThrough.pid] }];
for (const workers of values.workers.split(",").map(Number)) {
  gateways.push(await startGateway("upstream", upstream.url, "burst", workers));
  gateways.push(await startGateway("program", program, "words", workers));
}

const client = spawn(process.execPath, [new URL("client.js", folder).pathname], { stdio: ["pipe", "pipe", "inherit"] });
children.push(client);
const answers = createInterface({ input: client.stdout })[Symbol.asyncIterator]();

async function load(job: Job): Promise<Outcome> {
  client.stdin.write(`${JSON.stringify(job)}\n`);
  const { value } = await answers.next();
  return JSON.parse(value as string) as Outcome;
}

interface Sum {
  answers: number;
  events: number;
  seconds: number;
  failures: number;
  cpu: number;
}

async function measure({ url, model, pids }: Gateway, concurrency: number, sum: Sum): Promise<void> {
  const job: Job = { url, model, stream: true, concurrency, total: 0 };
  const warm = await load({ ...job, total: concurrency * 4 });
  const cpu = (): number => pids.reduce((all, pid) => all + cpuMicroseconds(pid), 0);
  const before = cpu();
  const total = Math.max(concurrency, Math.ceil((warm.answers / warm.seconds) * seconds));
  const outcome = await load({ ...job, total });
  sum.cpu += cpu() - before;
  sum.answers += outcome.answers;
  sum.events += outcome.events;
  sum.seconds += outcome.seconds;
  sum.failures += outcome.failures;
}

// Code that has run only a few hundred times is not optimized yet.
for (const { url, model } of gateways) await load({ url, model, stream: true, concurrency: 16, total: 2000 });
console.log("gateway, workers  streams  streams/s  tokens/s  CPU µs per event");
for (const concurrency of values.streams.split(",").map(Number)) {
  const sums = gateways.map((): Sum => ({ answers: 0, events: 0, seconds: 0, failures: 0, cpu: 0 }));
  // In turns: a machine that becomes slower does so for all.
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [at, gateway] of gateways.entries()) {
      const sum = sums[at];
      if (sum) await measure(gateway, concurrency, sum);
    }
  }
  for (const [at, { name }] of gateways.entries()) {
    const { answers: whole = 0, events = 0, seconds: time = 1, failures = 0, cpu = 0 } = sums[at] ?? {};
    const columns = [
      name.padEnd(16),
      String(concurrency).padStart(8),
      (whole / time).toFixed(0).padStart(10),
      (events / time).toFixed(0).padStart(9),
      (cpu / events).toFixed(2).padStart(17),
      failures === 0 ? "" : ` ${failures} failed`,
    ];
    console.log(columns.join(" "));
  }
}
process.exit();
