// The cost of a gateway: the same load through two small proxies in Node (one copies bytes, one parses and writes again),
// through nginx where it is installed, and through Truewire in several ways. Each gateway, the upstream and the clients are processes of
// their own. CPU is the time of all processes of a gateway. Linux only.
//
//   npm run build && npm run bench gateway -- [--quick] [--keys] [--json] [--only pass-through,default] [--loads "paced 64,whole 64"] [--rounds 5]
//   npm run bench gateway -- --against "DIST [option ...]" [--options="..."] [--rounds 24] [--json]
//   npm run bench gateway -- --many 9000   (with a limit of open files above twice that: ulimit -n)
//
// The gateways take turns in each round, or have few paced streams at the same time, and the ratio to the pass-through is the median of the
// rounds' ratios: a machine that becomes slower in between does so for all. Before the rounds of a load, each gateway has answered
// 4,000 requests of it, and each sample follows one that does not count.
//
// `--peers`: nginx and the gateways of LiteLLM and Portkey, which `npm run interop -- install litellm portkey` installs, next to the default and
// the pass-through. They have as many requests as they answer in a few seconds, since they take milliseconds for each.
//
// `--quick`: fewer ways, loads and rounds, for about a minute. `--json`: only whole answers. `--keys`: Truewire also with a key, and with a
// key that has limits, counted in memory and, where `REDIS_URL` is set, in that Redis. `--options`: for this build's `serve`.
// `--against`: another build of Truewire (its `dist` folder, and options for its `serve`) under the same load, the two in turns; the
// ratio says what this build costs compared to it. `--many N`: N streams with one event per second for 30 seconds, from three client processes.
//
// Targets, as it is started by default: bursts at most 0.8 times the pass-through at 16 to 256 streams, and as much at one; paced at most
// 1.2 times; at most 0.1 ms of CPU for a whole answer; the first byte at most 0.1 ms later than the pass-through's at one stream; ready 300 ms
// after the start; with --many 10000, less than 600 MB.
import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { freePort, type RunningProcess } from "../interop/place.ts";
import { litellm, startLitellm } from "../interop/servers/litellm.ts";
import { portkey, portkeyHeaders, startPortkey } from "../interop/servers/portkey.ts";
import { startTruewire } from "../test/support/serve.ts";
import { storesNothing } from "../test/support/stores-nothing.ts";
import type { Outcome } from "./gateway/client.ts";
import { compareBuilds, median } from "./gateway/compare.ts";
import { killProcesses, startClients, startNginx, startProcess } from "./gateway/processes.ts";
import { cpuOfAll, openFiles, peakMibOfAll, residentMib } from "./gateway/process-usage.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    loads: { type: "string" },
    json: { type: "boolean", default: false },
    keys: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    many: { type: "string" },
    against: { type: "string" },
    options: { type: "string", default: "" },
    rounds: { type: "string" },
  },
});

/** With `--many`: how many events each stream has. */
const eventsEach = 30;

/** Longer than a gateway needs to probe three models of an idle upstream (5 s of silence and 2 s of probes each), in milliseconds. */
const probesMs = 25_000;

interface Running {
  /** The API's base URL. */
  readonly url: string;
  readonly pid: number;
  stop(): unknown;
}

interface Way {
  readonly name: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A gateway of another project. */
  readonly isPeer?: boolean;
  /** Gives undefined if this machine does not have the program. */
  start(): Promise<Running | undefined>;
}

interface Load {
  readonly name: string;
  readonly model: string;
  readonly concurrency: number;
  /** Requests in one round. */
  readonly total: number;
}

const upstream = await startProcess("upstream.js");
const ownOptions = values.options.split(" ").filter((option) => option !== "");
/** Another build needs the same options: `--against "dist --workers 1 --no-inspect"`. */
const alone = ["--workers", "1", "--no-inspect"];
const key = "tw-bench-0123456789";

async function startServer(...options: string[]): Promise<Running> {
  // Its log is written, as by a server that is started, and not kept.
  const server = await startTruewire([...options, ...ownOptions, upstream.url], { stderrTo: "/dev/null" });
  return { url: `${server.url}/v1`, pid: server.process.pid ?? 0, stop: () => server.stop() };
}

/** Returns the configuration file of two workers, which store nothing. */
function twoWorkers(): string {
  const file = join(mkdtempSync(join(tmpdir(), "truewire-bench-")), "truewire.yaml");
  writeFileSync(file, stringify({ port: 0, workers: 2, ...storesNothing }));
  return file;
}

const passThrough: Way = { name: "pass-through", start: () => startProcess("pass-through.js", upstream.url) };
const asStarted: Way = { name: "default", start: () => startServer() };
const chosenWays =
  values.only ??
  (values.peers
    ? "pass-through,nginx,default,LiteLLM,Portkey"
    : values.quick
      ? "pass-through,parse and rewrite,default,--no-inspect"
      : undefined);
const ways: readonly Way[] = [
  passThrough,
  { name: "parse and rewrite", start: () => startProcess("pass-through.js", upstream.url, "rewrite") },
  { name: "nginx", start: () => startNginx(upstream.url) },
  asStarted,
  { name: "--no-inspect", start: () => startServer(...alone) },
  { name: "exact", start: () => startServer(...alone, "--wire", "exact") },
  { name: "two workers", start: () => startServer("--config", twoWorkers()) },
  ...(values.keys ? waysWithKeys() : []),
  ...(values.peers ? peers() : []),
].filter(({ name }) => chosenWays === undefined || chosenWays.split(",").includes(name));

/** Gateways of other projects, where they are installed. */
function peers(): Way[] {
  const base = upstream.url.replace(/\/v1$/, "");
  const way = (name: string, version: string | undefined, start: (port: number) => Promise<RunningProcess>): Way => ({
    name,
    isPeer: true,
    async start() {
      if (version === undefined) return undefined;
      const port = await freePort();
      return { url: `http://127.0.0.1:${port}/v1`, ...(await start(port)) };
    },
  });
  return [
    way("LiteLLM", litellm.version(), (port) => startLitellm(port, { base, model: "*", name: "*" })),
    { ...way("Portkey", portkey.version(), startPortkey), headers: portkeyHeaders(`${base}/v1`) },
  ];
}

/** Truewire with a key, without limits and with such as are never reached. */
function waysWithKeys(): Way[] {
  const file = join(mkdtempSync(join(tmpdir(), "truewire-bench-")), "keys.json");
  const hash = `sha256:${createHash("sha256").update(key).digest("hex")}`;
  const limits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, tokensPerDay: 1e15, concurrency: 1e6 };
  writeFileSync(file, JSON.stringify([{ name: "bench", hash, ...limits }]));
  const { REDIS_URL: redis } = process.env;
  const way = (name: string, ...options: string[]): Way => ({
    name,
    key,
    start: () => startServer(...alone, ...options),
  });
  return [
    way("key", "--api-key", key),
    way("limits", "--keys-file", file),
    ...(redis === undefined ? [] : [way("limits, Redis", "--keys-file", file, "--shared-limits", redis)]),
  ];
}

const bursts = [1, 16, 64, 256].map((concurrency) => ({
  name: `burst ${concurrency}`,
  model: "burst",
  concurrency,
  total: concurrency === 1 ? 200 : 768,
}));
const whole: Load = { name: "whole 64", model: "json", concurrency: 64, total: 3000 };
const loads: readonly Load[] = (
  values.json
    ? [whole]
    : values.quick
      ? [...bursts.filter(({ concurrency }) => concurrency < 256), whole, paced("paced-20-50", 64)]
      : [...bursts, whole, paced("paced-20", 64), paced("paced-20", 512)]
).filter(({ name }) => values.loads === undefined || values.loads.split(",").includes(name));

function paced(model: string, concurrency: number): Load {
  return { name: `paced ${concurrency}`, model, concurrency, total: concurrency };
}

const load = startClients();

const clientsOfWays = new Map<number, typeof load>();
/** A client process for each way. */
function clientsOf(at: number): typeof load {
  const clients = clientsOfWays.get(at) ?? startClients();
  clientsOfWays.set(at, clients);
  return clients;
}

/** A gateway that runs. */
interface Contestant {
  readonly way: Way;
  readonly server: Running;
  /** How long a request took, of those that were measured last. */
  msOfRequest: number;
}

interface Sample {
  /** CPU microseconds for each event; of whole answers, the same as `request`. */
  readonly cpu: number;
  /** CPU microseconds for each request. */
  readonly request: number;
  readonly firstByteMs: number;
  readonly failures: number;
}

async function measure(one: Contestant, each: Omit<Load, "name">, clients = load): Promise<Sample> {
  const { way, server } = one;
  const stream = each.model !== "json";
  const before = cpuOfAll(server.pid);
  const outcome = await clients({
    ...each,
    url: server.url,
    stream,
    ...(way.key !== undefined && { key: way.key }),
    ...(way.headers && { headers: way.headers }),
  });
  const { answers, events, failures, seconds, firstByteMs } = outcome;
  const cpu = cpuOfAll(server.pid) - before;
  one.msOfRequest = (seconds * 1000) / (answers + failures);
  return { cpu: cpu / (stream ? events : answers), request: cpu / answers, firstByteMs: median(firstByteMs), failures };
}

/** How long the requests of a gateway of another project take in a sample, in milliseconds, if they are fewer than those of the others. */
const peerMs = values.quick ? 1500 : 3000;

/** Returns the requests of a part of a load, for a gateway. */
function requestsOf({ way, msOfRequest }: Contestant, total: number, part: number): number {
  const all = Math.ceil(total * part);
  return way.isPeer === true ? Math.min(all, Math.ceil((peerMs * part) / msOfRequest)) : all;
}

/**
 * Answers requests, so that V8 optimizes what they need. The gateways take turns: after half a minute without a request, the V8 of Node 20
 * discards optimized code.
 */
async function warmUp(running: readonly Contestant[], each: Omit<Load, "name">): Promise<void> {
  const turns = 8;
  for (let turn = 0; turn < turns; turn++) {
    for (const one of running) await measure(one, { ...each, total: requestsOf(one, each.total, 1 / turns) });
  }
}

/** Measures all ways under all loads. Prints a table for each load when it is done. */
async function printTables(): Promise<void> {
  const rounds = Number(values.rounds ?? (values.quick ? 2 : values.peers ? 3 : 5));
  const running: Contestant[] = [];
  for (const way of ways) {
    const server = await way.start();
    if (server) running.push({ way, server, msOfRequest: 0 });
    else console.log(`skipped: ${way.name} (not installed)`);
  }
  // After the first answer of a model, a gateway probes its upstream, as soon as that is idle. A probe passes objects of other types through
  // functions that V8 has optimized for answers, and V8 discards the optimized code. Probes that come later would do so within a sample.
  for (const model of new Set(loads.map((each) => each.model))) {
    const single = { model, concurrency: 1, total: 1 };
    await Promise.all(running.map((one, at) => measure(one, single, clientsOf(at))));
  }
  if (!values.quick) await sleep(probesMs);
  // The CPU time of an event falls until about 7,000 bursts have been answered; with several at a time, V8 makes better code than with one.
  for (const model of ["burst", "json"])
    await warmUp(running, { model, concurrency: 16, total: values.quick ? 1600 : 12_000 });
  for (const each of loads) print(each.name, columns, await rowsOf(each, running, rounds));
  print(
    "Memory of all processes, peak MiB",
    [""],
    running.map(({ way, server }) => [way.name, peakMibOfAll(server.pid).toFixed(0)]),
  );
  await Promise.all(running.map(({ server }) => server.stop()));
  if (!values.json) await printStarts(values.quick ? 3 : 10);
}

const columns = ["CPU µs/event", "ratio", "CPU µs/request", "first byte ms", "requests", "failed"];

/** Measures the gateways under a load. Returns a row for each: medians of the rounds, and the median of the ratios to the pass-through. */
async function rowsOf(each: Load, running: readonly Contestant[], rounds: number): Promise<string[][]> {
  const samples = new Map<Contestant, Sample[]>(running.map((one) => [one, []]));
  const totals = new Map<Contestant, number>();
  const isPaced = each.model.startsWith("paced");
  await warmUp(running, {
    model: isPaced ? "burst" : each.model,
    concurrency: each.concurrency,
    total: values.quick ? 800 : 4000,
  });
  const take = async (one: Contestant, clients = load): Promise<void> => {
    const total = isPaced ? each.total : Math.max(each.concurrency, requestsOf(one, each.total, 1));
    // A sample that does not count: while the others ran, V8 may have collected garbage, and discarded optimized code with it.
    if (one.way.isPeer !== true)
      await measure(one, { ...each, total: isPaced ? total : Math.ceil(total / 2) }, clients);
    totals.set(one, total);
    samples.get(one)?.push(await measure(one, { ...each, total }, clients));
  };
  // Few paced streams leave most of the CPU idle: gateways have them at the same time, so that a machine whose speed changes does so for all.
  // A peer would take it.
  const isTogether = (one: Contestant): boolean => isPaced && each.concurrency <= 64 && one.way.isPeer !== true;
  // A peer that does not answer as many requests as are open in its time has one sample.
  const slow = new Set(running.filter((one) => requestsOf(one, each.total, 1) < each.concurrency));
  for (let round = 0; round < (isPaced && each.concurrency > 64 ? Math.ceil(rounds / 3) : rounds); round++) {
    const turn = running.filter((one) => round === 0 || !slow.has(one));
    await Promise.all(turn.map((one, at) => (isTogether(one) ? take(one, clientsOf(at)) : undefined)));
    for (const one of turn) if (!isTogether(one)) await take(one);
  }
  const base = running[0]?.way === passThrough ? samples.get(running[0]) : undefined;
  return [...samples].map(([one, ofWay]) => {
    const ratios = ofWay.map(({ cpu }, round) => cpu / (base?.[round]?.cpu ?? Number.NaN));
    const middle = (value: (sample: Sample) => number): number => median(ofWay.map(value));
    return [
      one.way.name,
      each.model === "json" ? "" : middle(({ cpu }) => cpu).toFixed(1),
      base ? `${median(ratios).toFixed(2)}×` : "",
      middle(({ request }) => request).toFixed(0),
      middle(({ firstByteMs }) => firstByteMs).toFixed(2),
      String(totals.get(one)),
      String(ofWay.reduce((sum, { failures }) => sum + failures, 0)),
    ];
  });
}

/** Prints the time from the start of a process until it says where it listens. */
async function printStarts(count: number): Promise<void> {
  const times = new Map<Way, number[]>(
    [passThrough, asStarted, ...ways.filter(({ isPeer }) => isPeer)].map((way) => [way, []]),
  );
  for (let at = 0; at < count; at++) {
    for (const [way, ofWay] of times) {
      if (way.isPeer === true && at >= 3) continue;
      const begun = performance.now();
      const server = await way.start();
      ofWay.push(performance.now() - begun);
      await server?.stop();
    }
  }
  const rows = [...times].map(([{ name }, all]) => [
    name,
    median(all).toFixed(0),
    Math.min(...all).toFixed(0),
    String(all.length),
  ]);
  print("Start to ready, ms", ["median", "least", "starts"], rows);
}

function print(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = ([name = "", ...cells]: readonly string[]): string =>
    `${name.padEnd(18)}${cells.map((cell) => cell.padStart(16)).join("")}`;
  console.log([`\n${title}`, line(["", ...columns]), ...rows.map(line)].join("\n"));
}

async function many(count: number, name: string, ...serverOptions: string[]): Promise<void> {
  const gateway = await startServer(...serverOptions);
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
    `${name}, ${count} streams: ${sum(({ answers }) => answers)} whole, ${sum(({ failures }) => failures)} failed, ` +
      `${events} of ${count * eventsEach} events in ${((performance.now() - started) / 1000).toFixed(0)} s, ` +
      `at most ${peak.toFixed(0)} MiB and ${files} open files`,
  );
  await gateway.stop();
}

/** This build and another one. */
async function compare(against: string): Promise<void> {
  const [dist = "", ...options] = against.split(" ");
  const main = resolve(join(dist, "cli/main.js"));
  const own = await startServer(...alone);
  const other = await startTruewire([...options, upstream.url], { main, stderrTo: "/dev/null" });
  const builds = [
    { name: ["this build", ...ownOptions].join(" "), ...own },
    { name: against, url: `${other.url}/v1`, pid: other.process.pid ?? 0 },
  ] as const;
  try {
    await compareBuilds(builds, load, Number(values.rounds ?? 24), values.json);
  } finally {
    await Promise.all([own.stop(), other.stop()]);
  }
}

try {
  if (values.against !== undefined) await compare(values.against);
  else if (values.many !== undefined) {
    await many(Number(values.many), "default");
    await many(Number(values.many), "--no-inspect", ...alone);
  } else await printTables();
} finally {
  killProcesses();
}
