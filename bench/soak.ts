// A server under a random mix of everything for a long time: it must use no more at the end than after its warm-up.
//
//   npm run build && npm run bench soak [-- --minutes 30] [--clients 12] [--seed 1] [--json]
//
// Clients use all APIs (chat, completions, responses with and without store and background, messages, embeddings, tokenize) with the demo
// model and an upstream that fails occasionally; a quarter of them disconnect in the middle. Meanwhile the model's process is killed every
// 40 seconds and the configuration is read again every 15 seconds. Every 10 seconds the memory, open descriptors and handles of all of the
// server's processes are noted, and its open requests (Linux). Each process collects its garbage every 10 seconds: V8 otherwise lets garbage
// grow to several times what is in use, which takes longer than the soak and looks like a leak.
//
// Exit code 1: something leaks. After a warm-up of two fifths of the time (at least one minute), a line is fitted to each series. It leaks
// where the line rises by more than the noise explains: the slope is more than 3 standard errors above 0 (with fewer independent samples
// where the noise is correlated), and the rise is more than 5 % of memory, or 4 descriptors or handles. Open requests must be 0 at the end.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startTruewire } from "../test/support/serve.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    clients: { type: "string", default: "12" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
});
const totalMs = Number(values.minutes) * 60_000;
/** Responses that are not stored are kept for ten minutes: until then, the memory in use rises. */
const warmUpMs = Math.max(60_000, totalMs * 0.4);
const sampleEveryMs = 10_000;
const killEveryMs = 40_000;
const reloadEveryMs = 15_000;
/** A request that has not ended after this time is counted as stuck, in milliseconds. */
const patienceMs = 120_000;

/** mulberry32, a generator of random numbers in [0, 1). Source: https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
let state = Number(values.seed);
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const oneOf = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

const folder = mkdtempSync(join(tmpdir(), "truewire-soak-"));
const config = join(folder, "truewire.yaml");

/** Speaks chat and embeddings, and occasionally fails, in several ways. */
const upstream = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text: string) => (body += text));
  request.on("end", () => void answer(request, body, response).catch(() => response.destroy()));
});

async function answer({ url = "" }: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
  const send = (value: object, status = 200): unknown =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (url.endsWith("/models")) return void send({ object: "list", data: [{ id: "up", object: "model" }] });
  const luck = random();
  if (luck < 0.03) return void response.destroy();
  if (luck < 0.06) return void send({ error: { message: "Overloaded." } }, 503);
  if (luck < 0.08) return void send({ error: { message: "It broke." } }, 500);
  if (url.endsWith("/embeddings")) {
    const data = [{ object: "embedding", index: 0, embedding: Array.from({ length: 64 }, random) }];
    return void send({ object: "list", data, model: "up", usage: { prompt_tokens: 3, total_tokens: 3 } });
  }
  const words = Array.from({ length: 1 + Math.floor(random() * 30) }, (_, at) => `word${at} `);
  const usage = { prompt_tokens: 5, completion_tokens: words.length, total_tokens: 5 + words.length };
  const shared = { id: "chatcmpl-1", created: 1_800_000_000, model: "up" };
  if (!body.includes('"stream":true')) {
    const message = { role: "assistant", content: words.join("") };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return void send({ ...shared, object: "chat.completion", choices, usage });
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const event = (delta: object, finish: string | null): string =>
    `data: ${JSON.stringify({ ...shared, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  for (const content of words) {
    if (response.destroyed) return;
    response.write(event({ content }, null));
    await pause(random() * 10);
    if (random() < 0.002) return void response.destroy();
  }
  response.end(`${event({}, "stop")}data: ${JSON.stringify({ ...shared, choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

upstream.listen(0, "127.0.0.1");
await new Promise((done) => upstream.once("listening", done));
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;

/** The same configuration, with another alias each time. */
function writeConfig(round: number): void {
  // What fills up with use is small, so that it is full when the warm-up ends.
  writeFileSync(
    config,
    `port: 0
inspect: false
metrics: open
logLevel: error
store: { at: memory, maxCount: 200, maxSize: 4MiB }
models:
  - { kind: local, name: local, aliases: [alias-${round % 7}], path: ${JSON.stringify(resolve("models/demo/demo.gguf"))} }
  - { kind: upstream, url: ${JSON.stringify(upstreamUrl)}, models: { up: up } }
`,
  );
}
writeConfig(0);

/**
 * Each process of the server collects garbage, and writes into a file of its own the memory that is then in use (V8's heap and buffers, in
 * bytes), and how many handles and requests keep it running.
 */
const noteHandles = `import { writeFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
let used = 0;
setInterval(() => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  used = heapUsed + external;
}, ${sampleEveryMs}).unref();
setInterval(() => writeFileSync(process.env.SOAK_NOTES + "/note." + process.pid, used + " " + process.getActiveResourcesInfo().length), 2000).unref();`;
const server = await startTruewire(["--config", config], {
  env: {
    SOAK_NOTES: folder,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(noteHandles)}`,
  },
  stderrTo: join(folder, "stderr"),
});

interface ServerProcess {
  readonly pid: number;
  readonly command: string;
}

/** The server's process, and all that it has started. */
function processes(): ServerProcess[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readProc(`${name}/stat`) : "";
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    if (stat !== "") parents.set(Number(name), parent);
  }
  const found = [server.process.pid ?? 0];
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child);
  return found.map((pid) => ({ pid, command: readProc(`${pid}/cmdline`).replaceAll("\0", " ") }));
}

/** "" where the process has ended meanwhile. */
function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, "latin1");
  } catch {
    return "";
  }
}

const isModel = ({ command }: ServerProcess): boolean => command.includes("engines/llama/process");

interface Sample {
  readonly second: number;
  readonly serverMiB: number;
  /** In use in the server's processes after a collection. */
  readonly usedMiB: number;
  readonly modelMiB: number;
  readonly descriptors: number;
  readonly handles: number;
  readonly openRequests: number;
}

async function sample(second: number): Promise<Sample> {
  // After a kill, the next process takes a while to load the model: a sample without it does not show leaks.
  for (let tries = 0; tries < 100 && !(await isLoaded()); tries++) await pause(100);
  const all = processes();
  const sum = (some: readonly ServerProcess[], of: (process: ServerProcess) => number): number =>
    some.reduce((total, process) => total + of(process), 0);
  const mebibytes = ({ pid }: ServerProcess): number =>
    (Number(readProc(`${pid}/statm`).split(" ")[1] ?? 0) * 4096) / 1024 ** 2;
  const descriptors = ({ pid }: ServerProcess): number => {
    try {
      return readdirSync(`/proc/${pid}/fd`).length;
    } catch {
      return 0;
    }
  };
  const note = ({ pid }: ServerProcess, at: 0 | 1): number => {
    try {
      return Number(readFileSync(join(folder, `note.${pid}`), "utf8").split(" ")[at]);
    } catch {
      return 0;
    }
  };
  const isServer = (process: ServerProcess): boolean => !isModel(process);
  return {
    second,
    serverMiB: sum(all.filter(isServer), mebibytes),
    usedMiB: sum(all.filter(isServer), (process) => note(process, 0) / 1024 ** 2),
    modelMiB: sum(all.filter(isModel), mebibytes),
    descriptors: sum(all, descriptors),
    handles: sum(all, (process) => note(process, 1)),
    openRequests: await openRequests(),
  };
}

interface Health {
  readonly requests: { readonly open: number };
  readonly engines: readonly { readonly state: string }[];
}

async function health(): Promise<Health> {
  return (await (await fetch(`${server.url}/health`)).json()) as Health;
}

/** Without this request itself. */
async function openRequests(): Promise<number> {
  return (await health()).requests.open - 1;
}

async function isLoaded(): Promise<boolean> {
  return processes().some(isModel) && (await health()).engines.every(({ state }) => state === "ready");
}

const outcomes = new Map<string, number>();
const count = (what: string): unknown => outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
const topic = "Write a few words about the sea. ".repeat(3);
let lastResponse: string | undefined;

/** One request of a random API: its name, path and body. */
function anyRequest(): readonly [name: string, path: string, body?: object, method?: string] {
  const model = oneOf(["local", "up"]);
  const stream = random() < 0.6;
  const content = `${topic}${Math.floor(random() * 1000)}`;
  const limit = 1 + Math.floor(random() * 40);
  const messages = [{ role: "user", content }];
  switch (Math.floor(random() * 10)) {
    case 0:
    case 1:
      return ["chat", "/v1/chat/completions", { model, stream, messages, max_tokens: limit }];
    case 2:
      return ["completions", "/v1/completions", { model, stream, prompt: content, max_tokens: limit }];
    case 3:
      return ["messages", "/v1/messages", { model, stream, messages, max_tokens: limit }];
    case 4:
      return ["embeddings", "/v1/embeddings", { model: "up", input: content }];
    case 5:
      return ["tokenize", "/tokenize", { model: "local", content }];
    case 6: {
      const previous = lastResponse !== undefined && random() < 0.7 && { previous_response_id: lastResponse };
      return ["responses", "/v1/responses", { model, stream, input: content, max_output_tokens: limit, ...previous }];
    }
    case 7:
      return [
        "background",
        "/v1/responses",
        { model, stream, background: true, store: random() < 0.5, input: content, max_output_tokens: limit },
      ];
    case 8:
      return lastResponse === undefined || random() < 0.5
        ? [
            "responses, not stored",
            "/v1/responses",
            { model, stream, input: content, store: false, max_output_tokens: limit },
          ]
        : ["cancel", `/v1/responses/${lastResponse}/cancel`, {}];
    default:
      return lastResponse === undefined
        ? ["models", "/v1/models"]
        : oneOf([
            ["show", `/v1/responses/${lastResponse}`],
            ["follow", `/v1/responses/${lastResponse}?stream=true`],
            ["input items", `/v1/responses/${lastResponse}/input_items`],
            ["delete", `/v1/responses/${lastResponse}`, undefined, "DELETE"],
          ] as const);
  }
}

async function request(): Promise<void> {
  const [name, path, body, method = body ? "POST" : "GET"] = anyRequest();
  const leaving = new AbortController();
  const leavesAfter = random() < 0.25 ? random() * 400 : undefined;
  const timer = setTimeout(() => leaving.abort(), leavesAfter ?? patienceMs);
  try {
    const response = await fetch(`${server.url}${path}`, {
      method,
      signal: leaving.signal,
      headers: { "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (path === "/v1/responses") lastResponse = /"id": ?"(resp_\w+)"/.exec(text)?.[1] ?? lastResponse;
    count(`${name} ${response.status}`);
  } catch {
    count(!leaving.signal.aborted ? `${name} cut off` : leavesAfter === undefined ? `${name} stuck` : `${name} left`);
  } finally {
    clearTimeout(timer);
  }
}

const endsAt = performance.now() + totalMs;
const goesOn = (): boolean => performance.now() < endsAt && server.process.exitCode === null;
async function every(ms: number, act: () => unknown): Promise<void> {
  for (let next = performance.now() + ms; next < endsAt && goesOn(); next += ms) {
    await pause(Math.max(0, next - performance.now()));
    await act();
  }
}

const samples: Sample[] = [];
let reloads = 0;
let kills = 0;
const begun = performance.now();
await Promise.all([
  ...Array.from({ length: Number(values.clients) }, async () => {
    while (goesOn()) {
      await request();
      await pause(random() * 100);
    }
  }),
  every(sampleEveryMs, async () => {
    const taken = await sample(Math.round((performance.now() - begun) / 1000));
    samples.push(taken);
    if (!values.json) console.log(line(taken));
  }),
  every(killEveryMs, () => {
    const model = processes().find(isModel);
    // The process is another one's where it has ended in this moment: it is the server's child, so its id is not given away yet.
    if (model) process.kill(model.pid, "SIGKILL");
    kills++;
  }),
  every(reloadEveryMs, () => {
    writeConfig(++reloads);
    server.process.kill("SIGHUP");
  }),
]);
let open = await openRequests().catch(() => NaN);
for (let tries = 0; tries < 60 && open > 0; tries++) {
  await pause(1000);
  open = await openRequests().catch(() => NaN);
}

interface Fit {
  readonly series: string;
  readonly mean: number;
  /** By how much the line rises from the end of the warm-up to the end. */
  readonly rise: number;
  /** The slope in standard errors. */
  readonly errors: number;
  readonly leaks: boolean;
}

/** Least squares; the standard error accounts for noise in which each value resembles the one before it. */
function fit(
  series: "serverMiB" | "usedMiB" | "modelMiB" | "descriptors" | "handles",
  leastRise: (mean: number) => number,
): Fit {
  const points = samples.filter(({ second }) => second * 1000 >= warmUpMs);
  const n = points.length;
  const mean = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0) / n;
  const [x, y] = [points.map(({ second }) => second), points.map((point) => point[series])];
  const [meanX, meanY] = [mean(x), mean(y)];
  const spread = x.reduce((sum, value) => sum + (value - meanX) ** 2, 0);
  const slope = x.reduce((sum, value, at) => sum + (value - meanX) * ((y[at] ?? 0) - meanY), 0) / spread;
  const noise = y.map((value, at) => value - meanY - slope * ((x[at] ?? 0) - meanX));
  const squares = noise.reduce((sum, value) => sum + value ** 2, 0);
  const products = noise.slice(1).reduce((sum, value, at) => sum + value * (noise[at] ?? 0), 0);
  const resemblance = squares === 0 ? 0 : Math.min(0.95, Math.max(0, products / squares));
  const independent = (n * (1 - resemblance)) / (1 + resemblance);
  const error = Math.sqrt(squares / Math.max(1, independent - 2) / spread);
  const rise = slope * ((x.at(-1) ?? 0) - (x[0] ?? 0));
  const errors = slope === 0 ? 0 : slope / error;
  return { series, mean: meanY, rise, errors, leaks: errors > 3 && rise > leastRise(meanY) };
}

const memoryRise = (mean: number): number => mean * 0.05;
const fits = [
  fit("serverMiB", memoryRise),
  fit("usedMiB", memoryRise),
  fit("modelMiB", memoryRise),
  fit("descriptors", () => 4),
  fit("handles", () => 4),
];
const failures = [
  ...(samples.filter(({ second }) => second * 1000 >= warmUpMs).length < 12 ? ["There are too few samples."] : []),
  ...fits.filter(({ leaks }) => leaks).map(({ series }) => `${series} rises.`),
  ...(open === 0 ? [] : [`${open} requests are open at the end.`]),
  ...[...outcomes].filter(([what]) => what.endsWith(" stuck")).map(([what, times]) => `${what} ×${times}.`),
  ...(server.process.exitCode === null && server.process.signalCode === null ? [] : ["The server has ended."]),
];
await server.stop("SIGKILL");
upstream.closeAllConnections();
upstream.close();

const summary = [...outcomes].toSorted(([one], [other]) => one.localeCompare(other));
const requests = summary.reduce((sum, [, times]) => sum + times, 0);
if (values.json) {
  console.log(
    JSON.stringify({ requests, kills, reloads, samples, fits, outcomes: Object.fromEntries(summary), failures }),
  );
} else {
  console.log(`${requests} requests, ${kills} kills, ${reloads} reloads; after the warm-up:`);
  console.table(
    fits.map(({ mean, rise, errors, ...rest }) => ({
      ...rest,
      mean: round(mean),
      rise: round(rise),
      errors: round(errors),
    })),
  );
  console.log(summary.map(([what, times]) => `${what} ×${times}`).join(", "));
  console.log(failures.length === 0 ? "Nothing leaks." : failures.join("\n"));
}
if (failures.length > 0) console.log(`The server's log: ${join(folder, "stderr")}`);
else rmSync(folder, { recursive: true, force: true });
process.exitCode = failures.length === 0 ? 0 : 1;

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function line({ second, serverMiB, usedMiB, modelMiB, descriptors, handles, openRequests }: Sample): string {
  return `${second} s: server ${Math.round(serverMiB)} MiB (${Math.round(usedMiB)} in use), model ${Math.round(modelMiB)} MiB, ${descriptors} descriptors, ${handles} handles, ${openRequests} open`;
}
