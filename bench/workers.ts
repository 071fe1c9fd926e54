// What a second process brings, and what it costs: the same load through a proxy that only copies bytes, through Truewire in one process,
// and in several workers. Linux only.
//
//   npm run build && npm run bench workers -- [--streams 64,256] [--workers 1,2] [--seconds 3] [--rounds 3]
//
// The clients and the upstream are processes on the same cores as the gateway: on two cores, streams per second show what is left for the
// gateway next to them, and a second worker can bring less than its core. CPU µs per event is the gateway's alone, all its processes
// together, and says what a stream costs wherever the load comes from.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { startTruewire } from "../test/support/serve.ts";
import { storesNothing } from "../test/support/stores-nothing.ts";
import type { Job } from "./gateway/client.ts";
import { startClients, startProcess } from "./gateway/processes.ts";
import { cpuOfAll } from "./gateway/process-usage.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "64,256" },
    workers: { type: "string", default: "1,2" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
  },
});
const seconds = Number(values.seconds);
const files = mkdtempSync(join(tmpdir(), "truewire-bench-"));

interface Gateway {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
}

process.on("exit", () => rmSync(files, { recursive: true, force: true }));

async function startGateway(upstream: string, workers: number): Promise<Gateway> {
  const file = join(files, `${workers}.yaml`);
  writeFileSync(file, stringify({ port: 0, workers, logLevel: "warn", inspect: false, ...storesNothing }));
  const server = await startTruewire(["--config", file, upstream]);
  process.on("exit", () => server.process.kill());
  return { name: `Truewire, ${workers}`, url: `${server.url}/v1`, pid: server.process.pid ?? 0 };
}

const upstream = await startProcess("upstream.js");
const passThrough = await startProcess("pass-through.js", upstream.url);
const gateways: Gateway[] = [{ name: "pass-through", url: passThrough.url, pid: passThrough.pid }];
for (const workers of values.workers.split(",").map(Number)) gateways.push(await startGateway(upstream.url, workers));

const load = startClients();

interface Sum {
  answers: number;
  events: number;
  seconds: number;
  failures: number;
  cpu: number;
}

async function measure({ url, pid }: Gateway, concurrency: number, sum: Sum): Promise<void> {
  const job: Job = { url, model: "burst", stream: true, concurrency, total: 0 };
  const warm = await load({ ...job, total: concurrency * 4 });
  const before = cpuOfAll(pid);
  const total = Math.max(concurrency, Math.ceil((warm.answers / warm.seconds) * seconds));
  const outcome = await load({ ...job, total });
  sum.cpu += cpuOfAll(pid) - before;
  sum.answers += outcome.answers;
  sum.events += outcome.events;
  sum.seconds += outcome.seconds;
  sum.failures += outcome.failures;
}

// Code that has run only a few hundred times is not optimized yet.
for (const { url } of gateways) await load({ url, model: "burst", stream: true, concurrency: 16, total: 2000 });
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
