import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { writeProgrammedModel } from "../test/fixtures/programmed-model.ts";
import { bodyBombs } from "../test/support/body-bombs.ts";
import { grammarBombs } from "../test/support/grammar-bombs.ts";
import { loseConnections } from "../test/support/rough-clients.ts";
import { startTruewire } from "../test/support/serve.ts";
import { childOf } from "./process-cpu.ts";
import { LoopDelay } from "./stall/loop-delay.ts";

/**
 * What one client can do to everybody else. Each attack is sent to a default server, bounded in time, while `/health` is asked again and
 * again and another client reads an answer; the table has what the attacker was told, how long the attack took, the worst delay of the
 * server's event loop, the longest work of the server's loop and of the model's at a time (processor time of that thread: what counts
 * where the machine has other work), the worst `/health`, the longest gap in the stream (milliseconds), and the server's memory after it
 * (MiB). Linux only.
 *
 *     npm run build && npm run bench attack -- [--only bodies|connections|readers|grammars] [--row "18,000 calls"] [--seconds 20]
 *         [--disconnects 2000]
 *
 * After the lost connections, a line says what they left: open requests, file descriptors, and memory (MiB) after a garbage collection.
 *
 * Target: the server's loop is never held for more than 100 ms, nothing stays open, and memory goes back.
 */
const { values } = parseArgs({
  options: {
    only: { type: "string" },
    row: { type: "string", default: "" },
    seconds: { type: "string", default: "20" },
    disconnects: { type: "string", default: "2000" },
  },
});
const disconnects = Number(values.disconnects);
const nothing = "nothing";
const limitMs = Number(values.seconds) * 1000;

const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
const model = join(folder, "programmed.gguf");
writeProgrammedModel(model, { contextLength: 65_536 });
const monitors = join(folder, "loops");
mkdirSync(monitors);
const server = await startTruewire(
  [model, "--gpu", "off", "--threads", "1", "--context-size", "65536", "--slots", "4", "--log-level", "silent"],
  {
    env: {
      NODE_OPTIONS: `--import ${resolve(".cache/tools/bench/stall/loop-monitor.js")}`,
      TRUEWIRE_LOOP_MONITOR: monitors,
    },
  },
);
const pid = server.process.pid ?? 0;
const loop = new LoopDelay(monitors, pid);
let modelPid = childOf(pid);
let modelLoop = new LoopDelay(monitors, modelPid);
const probing = new Pool(server.url, { connections: 1 });
const streaming = new Pool(server.url, { connections: 1 });
const post = { method: "POST", headers: { "content-type": "application/json" } } as const;

function memory(): string {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kib) / 1024).toFixed(0);
}

async function health(): Promise<{ queued: number; requests: { open: number } }> {
  const { body } = await probing.request({ path: "/health", method: "GET" });
  return (await body.json()) as { queued: number; requests: { open: number } };
}

async function worstProbe(over: AbortSignal): Promise<number> {
  let worst = 0;
  while (!over.aborted) {
    const started = performance.now();
    await health();
    worst = Math.max(worst, performance.now() - started);
    await new Promise((wake) => setTimeout(wake, 2));
  }
  return worst;
}

/** The longest gap of a normal answer; what became of it, where it broke. */
async function stream(over: AbortSignal, begun: () => void): Promise<string> {
  const asked = { model: "programmed", prompt: "<|script:endless|>", max_tokens: 60_000, temperature: 0, stream: true };
  let worst = 0;
  let last = Number.NaN;
  try {
    const { body, statusCode } = await streaming.request({
      ...post,
      path: "/v1/completions",
      body: JSON.stringify(asked),
      signal: over,
    });
    if (statusCode !== 200) return `refused: ${statusCode}`;
    for await (const piece of body) {
      const now = performance.now();
      if (Number.isNaN(last)) begun();
      else worst = Math.max(worst, now - last);
      last = now;
      if (String(piece).includes('"error"')) return `broken after ${worst.toFixed(0)}`;
    }
    return worst.toFixed(0);
  } catch (error) {
    if (!over.aborted) return String(error);
  } finally {
    begun();
  }
  return Number.isNaN(last) ? "did not begin" : Math.max(worst, performance.now() - last).toFixed(0);
}

/** The longest work of the model's loop since the last call. It may have been started again: then since that. */
async function modelWork(): Promise<number> {
  const now = childOf(pid);
  if (now !== modelPid) [modelPid, modelLoop] = [now, new LoopDelay(monitors, now)];
  await modelLoop.worst();
  return modelLoop.work;
}

async function run(name: string, attack: (signal: AbortSignal) => Promise<string>): Promise<void> {
  if (name !== nothing && !name.includes(values.row)) return;
  const over = new AbortController();
  let begun = (): void => {};
  const streams = new Promise<void>((go) => (begun = go));
  const gap = stream(over.signal, begun);
  // The model may still be held by the attack before.
  await Promise.race([streams, new Promise((wake) => setTimeout(wake, limitMs))]);
  await loop.worst();
  await modelWork();
  const probe = worstProbe(over.signal);
  const started = performance.now();
  const told = await attack(AbortSignal.timeout(limitMs)).catch((error: unknown) => String(error).slice(0, 30));
  const took = performance.now() - started;
  await new Promise((wake) => setTimeout(wake, 50));
  const held = await loop.worst();
  over.abort();
  const work = [loop.work, await modelWork()].map((ms) => ms.toFixed(0));
  row(name, told, took.toFixed(0), held.toFixed(0), ...work, (await probe).toFixed(0), await gap, memory());
}

function row(name: string, ...cells: readonly string[]): void {
  console.log(name.slice(0, 48).padEnd(50) + cells.map((cell) => cell.padStart(14)).join(""));
}

async function ask(
  bytes: string | Buffer,
  encoding: string | undefined,
  signal: AbortSignal,
  path = "/v1/chat/completions",
): Promise<string> {
  const headers = { ...post.headers, ...(encoding !== undefined && { "content-encoding": encoding }) };
  const response = await fetch(server.url + path, {
    method: "POST",
    headers,
    body: new Blob([typeof bytes === "string" ? bytes : new Uint8Array(bytes)]),
    signal,
  });
  await response.text();
  return String(response.status);
}

const user = (content: string): object => ({ model: "programmed", messages: [{ role: "user", content }] });

async function bodies(): Promise<void> {
  for (const { name, make, path } of bodyBombs) {
    const { bytes, encoding } = make("programmed");
    await run(name, (signal) => ask(bytes, encoding, signal, path));
  }
}

async function connections(): Promise<void> {
  const before = await left();
  let queued = 0;
  await run(`${disconnects} connections lost in every way`, async () => {
    const counting = setInterval(() => {
      void health().then((told) => (queued = Math.max(queued, told.queued)));
    }, 100);
    await loseConnections(server.url, disconnects, { ...user("#endless"), max_tokens: 200 });
    clearInterval(counting);
    return "";
  });
  await new Promise((wake) => setTimeout(wake, 2000));
  console.log(`at most ${queued} waited for a slot; before: ${before}; after: ${await left()}`);
}

async function left(): Promise<string> {
  const { requests } = await health();
  const heap = ((await loop.collect()) / 2 ** 20).toFixed(1);
  const files = readdirSync(`/proc/${pid}/fd`).length;
  return `${requests.open - 1} requests open, ${files} file descriptors, ${heap} MiB of heap, ${memory()} MiB in all`;
}

/** Readers that take nothing of an endless answer hold the slots; a fifth client asks. */
async function readers(): Promise<void> {
  const body = JSON.stringify({ model: "programmed", prompt: "<|script:endless|>", max_tokens: 60_000, stream: true });
  await run("4 clients that do not read", async (signal) => {
    const { hostname, port } = new URL(server.url);
    const sockets = Array.from({ length: 4 }, () => {
      const socket = connect(Number(port), hostname).pause();
      socket.on("error", () => {});
      socket.write(`POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      return socket;
    });
    try {
      return await ask(JSON.stringify({ ...user("Hi"), max_tokens: 4 }), undefined, signal);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
}

async function grammars(): Promise<void> {
  for (const { name, make } of grammarBombs) {
    const body = JSON.stringify({ ...user("Hi"), max_tokens: 8, ...make() });
    await run(name, (signal) => ask(body, undefined, signal));
  }
}

const parts: Readonly<Record<string, () => Promise<void>>> = { bodies, connections, readers, grammars };
console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
row("", "told", "took", "server's loop", "its work", "model's work", "/health", "stream's gap", "memory");
await run(nothing, (signal) => ask(JSON.stringify({ ...user("Hi"), max_tokens: 4 }), undefined, signal));
for (const [name, part] of Object.entries(parts)) if (values.only === undefined || values.only === name) await part();
await new Promise((wake) => setTimeout(wake, 2000));
const { requests } = await health();
console.log(`at the end: ${requests.open - 1} requests open, ${memory()} MiB`);
console.log("Target: the server's loop is never held for more than 100 ms, nothing stays open, and memory goes back.");

await Promise.all([probing.destroy(), streaming.destroy()]);
await server.stop();
rmSync(folder, { recursive: true, force: true });
