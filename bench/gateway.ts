// The cost of a gateway: the same load sent directly, through a proxy that only copies bytes, and through Truewire. Each gateway, the
// upstream and the clients are processes of their own. CPU is the time of the gateway's process alone.
//
//   npm run build && npm run tools && node .cache/tools/bench/gateway.js [--streams 1,16,64,256] [--seconds 3] [--paced] [--json] [--keys]
//   node .cache/tools/bench/gateway.js --against "DIST [option ...]" [--options="..."] [--rounds 24] [--json]
//   node .cache/tools/bench/gateway.js --many 9000   (with a limit of open files above twice that: ulimit -n)
//
// `--against`: another build of Truewire (its `dist` folder, and options for its `serve`) under the same load, the two in turns; the
// ratio says what this build costs beside it. `--options`: for this build's `serve`.
// `--paced`: an event every 10 ms. `--keys`: Truewire also with a key, and with a key that has limits, counted in memory and, where
// `REDIS_URL` is set, in that Redis. `--many N`: N streams with one event per second for 30 seconds, from three client processes.
//
// Targets: at most 3.5 µs of CPU an event at 16 streams and more; at most 1 ms more to the first byte at one stream; at most 0.1 ms of
// CPU for an answer that is not streamed; with --many 9000, less than 1 GB of memory.
import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startTruewire } from "../test/support/serve.ts";
import type { RunningTruewire } from "../test/support/serve.ts";
import type { Outcome } from "./gateway/client.ts";
import { compareBuilds } from "./gateway/compare.ts";
import { killProcesses, startClients, startProcess } from "./gateway/processes.ts";
import { cpuMicroseconds, openFiles, residentMib } from "./gateway/process-usage.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "1,16,64,256" },
    seconds: { type: "string", default: "3" },
    only: { type: "string", default: "direct,pass-through,truewire" },
    paced: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    keys: { type: "boolean", default: false },
    many: { type: "string" },
    against: { type: "string" },
    options: { type: "string", default: "" },
    rounds: { type: "string", default: "24" },
  },
});
const seconds = Number(values.seconds);

/** With `--many`: how many events each stream has. */
const eventsEach = 30;

interface Gateway {
  readonly name: string;
  readonly url: string;
  readonly pid: number | null;
  readonly key?: string;
}

const upstream = await startProcess("upstream.js");
const passThrough = await startProcess("pass-through.js", upstream.url);
const ownOptions = values.options.split(" ").filter((option) => option !== "");
// One process: what several cost and bring, `npm run bench workers` tells. It keeps no requests to be looked at, as a server that others
// reach does not. Another build of today needs the same options: `--against "dist --workers 1 --no-inspect"`.
const always = ["--log-level", "warn", "--workers", "1", "--no-inspect"];
const truewire = await startTruewire([...always, ...ownOptions, upstream.url]);
const key = "tw-bench-0123456789";
const withKeys = values.keys ? await startWithKeys() : [];
const gateways: Gateway[] = [
  { name: "direct", url: upstream.url, pid: null },
  { name: "pass-through", ...passThrough },
  asGateway("truewire", truewire),
  ...withKeys.map(({ name, server }) => ({ ...asGateway(name, server), key })),
].filter(({ name, key: ofKeys }) => ofKeys !== undefined || values.only.split(",").includes(name));

function asGateway(name: string, { url, process: { pid = 0 } }: RunningTruewire): Gateway {
  return { name, url: `${url}/v1`, pid };
}

/** Truewire with a key, without limits and with such as are never reached. */
async function startWithKeys(): Promise<{ readonly name: string; readonly server: RunningTruewire }[]> {
  const file = join(mkdtempSync(join(tmpdir(), "truewire-bench-")), "keys.json");
  const hash = `sha256:${createHash("sha256").update(key).digest("hex")}`;
  const limits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, tokensPerDay: 1e15, concurrency: 1e6 };
  writeFileSync(file, JSON.stringify([{ name: "bench", hash, ...limits }]));
  const start = (...args: string[]): Promise<RunningTruewire> => startTruewire([...always, upstream.url, ...args]);
  const { REDIS_URL: redis } = process.env;
  return [
    { name: "key", server: await start("--api-key", key) },
    { name: "limits", server: await start("--keys-file", file) },
    ...(redis === undefined
      ? []
      : [{ name: "limits, Redis", server: await start("--keys-file", file, "--shared-limits", redis) }]),
  ];
}

const load = startClients();

/** Sends load for about this many seconds, and measures the CPU time of the gateway. */
async function measure(gateway: Gateway, model: string, stream: boolean, concurrency: number): Promise<void> {
  const { url, key: ofKeys } = gateway;
  const job = { url, model, stream, concurrency, ...(ofKeys !== undefined && { key: ofKeys }) };
  const isPaced = model.startsWith("paced");
  const warm = await load({ ...job, total: isPaced ? concurrency : Math.max(concurrency, stream ? 400 : 4000) });
  const rounds = Math.max(1, Math.round(seconds / warm.seconds));
  const total = isPaced
    ? concurrency * rounds
    : Math.max(concurrency, Math.ceil((warm.answers / warm.seconds) * seconds));
  const before = gateway.pid === null ? 0 : cpuMicroseconds(gateway.pid);
  const outcome = await load({ ...job, total });
  const cpu = gateway.pid === null ? null : cpuMicroseconds(gateway.pid) - before;
  const at = (part: number): string =>
    (outcome.firstByteMs[Math.floor(outcome.firstByteMs.length * part)] ?? 0).toFixed(2);
  const units = stream ? outcome.events : outcome.answers;
  const columns = [
    gateway.name.padEnd(13),
    (stream ? model : "json").padEnd(9),
    String(concurrency).padStart(4),
    (outcome.answers / outcome.seconds).toFixed(0).padStart(9),
    at(0.5).padStart(9),
    at(0.99).padStart(9),
    (cpu === null ? "" : (cpu / units).toFixed(2)).padStart(9),
    outcome.failures === 0 ? "" : `${outcome.failures} failed`,
  ];
  console.log(columns.join(" "));
}

async function many(count: number): Promise<void> {
  const gateway = gateways.find(({ name }) => name === "truewire");
  if (!gateway?.pid) return;
  const { pid } = gateway;
  const processes = 3;
  const started = performance.now();
  const jobs = Array.from({ length: processes }, (_, at) => {
    const share = Math.floor(count / processes) + (at < count % processes ? 1 : 0);
    const job = {
      url: gateway.url,
      model: `paced-1000-${eventsEach}`,
      stream: true,
      localAddress: `127.0.0.${at + 2}`,
    };
    return startClients()({ ...job, concurrency: share, total: share });
  });
  let peak = 0;
  let files = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, residentMib(pid));
    files = Math.max(files, openFiles(pid));
  }, 1000);
  const outcomes = await Promise.all(jobs);
  clearInterval(timer);
  const sum = (value: (outcome: Outcome) => number): number => outcomes.reduce((all, each) => all + value(each), 0);
  const events = sum((outcome) => outcome.events);
  console.log(
    `${count} streams: ${sum(({ answers }) => answers)} whole, ${sum(({ failures }) => failures)} failed, ` +
      `${events} of ${count * eventsEach} events in ${((performance.now() - started) / 1000).toFixed(0)} s, ` +
      `at most ${peak.toFixed(0)} MiB and ${files} open files`,
  );
}

/** This build and another one. */
async function compare(against: string): Promise<void> {
  const [dist = "", ...options] = against.split(" ");
  const main = resolve(join(dist, "cli/main.js"));
  const other = await startTruewire(["--log-level", "warn", ...options, upstream.url], { main });
  const builds = [
    { name: ["this build", ...ownOptions].join(" "), url: `${truewire.url}/v1`, pid: truewire.process.pid ?? 0 },
    { name: against, url: `${other.url}/v1`, pid: other.process.pid ?? 0 },
  ] as const;
  try {
    await compareBuilds(builds, load, Number(values.rounds), values.json);
  } finally {
    await other.stop();
  }
}

try {
  if (values.against !== undefined) await compare(values.against);
  else if (values.many !== undefined) await many(Number(values.many));
  else {
    console.log("gateway       load      open  answers/s  p50 ms    p99 ms   CPU µs (per event; json: per answer)");
    // Warm up: code that has run only a few hundred times is not optimized yet.
    for (const { url, key: ofKeys } of gateways) {
      const job = { url, model: "burst", stream: true, concurrency: 16, total: 2000 };
      await load({ ...job, ...(ofKeys !== undefined && { key: ofKeys }) });
    }
    const loads = values.json ? [] : values.paced ? ["paced-10"] : ["burst"];
    for (const model of loads) {
      for (const concurrency of values.streams.split(",").map(Number)) {
        for (const gateway of gateways) await measure(gateway, model, true, concurrency);
      }
    }
    if (!values.paced) for (const gateway of gateways) await measure(gateway, "burst", false, 16);
  }
} finally {
  await Promise.all([truewire, ...withKeys.map(({ server }) => server)].map((server) => server.stop()));
  killProcesses();
}
