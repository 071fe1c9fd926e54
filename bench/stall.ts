import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { writeProgrammedModel } from "../test/fixtures/programmed-model.ts";
import { startTruewire } from "../test/support/serve.ts";
import { childOf } from "./process-cpu.ts";
import { heavyRequests } from "./stall/heavy-requests.ts";
import { LoopDelay } from "./stall/loop-delay.ts";

/**
 * How long one heavy request holds up everybody else. While it is served, three things are watched: `/health`, asked again and again;
 * an answer that another client reads; and the event loops of the server's process and of the model's. Each number is the worst of a
 * round, and the table has the median and the worst of all rounds, in milliseconds. The model is a programmed one, which costs nothing.
 * Linux only (it finds the model's process in /proc).
 *
 *     npm run build && npm run bench stall -- [--rounds 7] [--main dist/cli/main.js]
 *
 * `--main` names another build, to compare with. Target: no request holds the server's loop for more than 20 ms.
 */
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "7" }, main: { type: "string", default: "dist/cli/main.js" } },
});
const rounds = Number(values.rounds);

const folder = mkdtempSync(join(tmpdir(), "truewire-stall-"));
const model = join(folder, "programmed.gguf");
writeProgrammedModel(model, { contextLength: 65_536 });
const monitors = join(folder, "loops");
mkdirSync(monitors);
const server = await startTruewire(
  [model, "--gpu", "off", "--threads", "1", "--context-size", "65536", "--slots", "4", "--log-level", "silent"],
  {
    main: resolve(values.main),
    env: {
      NODE_OPTIONS: `--import ${resolve(".cache/tools/bench/stall/loop-monitor.js")}`,
      TRUEWIRE_LOOP_MONITOR: monitors,
    },
  },
);
const serverPid = server.process.pid ?? 0;
const serverLoop = new LoopDelay(monitors, serverPid);
const modelLoop = new LoopDelay(monitors, childOf(serverPid));
/** One connection each, so that none waits for another. */
const probing = new Pool(server.url, { connections: 1 });
const streaming = new Pool(server.url, { connections: 1 });
const asking = new Pool(server.url, { connections: 1 });

interface Round {
  readonly status: number;
  readonly requestMs: number;
  readonly healthMs: number;
  readonly streamMs: number;
  readonly serverMs: number;
  readonly modelMs: number;
}

const post = { method: "POST", headers: { "content-type": "application/json" } } as const;

/** The worst time that a probe of `/health` took until `done`. */
async function worstProbe(done: () => boolean): Promise<number> {
  let worst = 0;
  while (!done()) {
    const started = performance.now();
    const { body } = await probing.request({ path: "/health", method: "GET" });
    await body.dump();
    worst = Math.max(worst, performance.now() - started);
    await new Promise((wake) => setTimeout(wake, 1));
  }
  return worst;
}

/** Reads an answer until `done`; the longest time between two chunks of it. */
async function worstGap(done: () => boolean, begun: () => void): Promise<number> {
  const request = {
    model: "programmed",
    prompt: "<|script:endless|>",
    max_tokens: 60_000,
    temperature: 0,
    stream: true,
  };
  const sent = { ...post, path: "/v1/completions", body: JSON.stringify(request) };
  const { body, statusCode } = await streaming.request(sent);
  if (statusCode !== 200) throw new Error(`The stream was refused: ${await body.text()}`);
  let worst = 0;
  let last = Number.NaN;
  for await (const _ of body) {
    const now = performance.now();
    if (Number.isNaN(last)) begun();
    else worst = Math.max(worst, now - last);
    last = now;
    if (done()) break;
  }
  return worst;
}

async function run(request: Readonly<Record<string, unknown>>): Promise<Round> {
  const body = Buffer.from(JSON.stringify({ model: "programmed", ...request, max_tokens: 8, temperature: 0 }));
  let isOver = false;
  const done = (): boolean => isOver;
  let begun = (): void => {};
  const streams = new Promise<void>((go) => (begun = go));
  const stream = worstGap(done, begun);
  await streams;
  await serverLoop.worst();
  await modelLoop.worst();
  const probe = worstProbe(done);
  await new Promise((wake) => setTimeout(wake, 50));
  const started = performance.now();
  const answer = await asking.request({ ...post, path: "/v1/chat/completions", body });
  await answer.body.dump();
  const requestMs = performance.now() - started;
  await new Promise((wake) => setTimeout(wake, 20));
  const [serverMs, modelMs] = [await serverLoop.worst(), await modelLoop.worst()];
  isOver = true;
  return { status: answer.statusCode, requestMs, healthMs: await probe, streamMs: await stream, serverMs, modelMs };
}

const row = (name: string, ...cells: readonly string[]): void =>
  console.log(name.padEnd(26) + cells.map((cell) => cell.padStart(15)).join(""));
const spread = (numbers: readonly number[]): string => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return `${sorted[Math.floor(sorted.length / 2)]?.toFixed(1)} / ${sorted.at(-1)?.toFixed(1)}`;
};

// A server's first requests compile its code; that happens once in its life.
for (let i = 0; i < 2; i++) for (const make of Object.values(heavyRequests)) await run(make(1000 + i));

console.log(
  `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}, ${values.main}`,
);
console.log("milliseconds, median / worst of all rounds");
row("", "status", "server's loop", "/health", "model's loop", "stream's gap", "request");
for (const [name, make] of Object.entries(heavyRequests)) {
  const all: Round[] = [];
  for (let round = 0; round < rounds; round++) all.push(await run(make(round)));
  row(
    name,
    [...new Set(all.map(({ status }) => status))].join(),
    spread(all.map(({ serverMs }) => serverMs)),
    spread(all.map(({ healthMs }) => healthMs)),
    spread(all.map(({ modelMs }) => modelMs)),
    spread(all.map(({ streamMs }) => streamMs)),
    spread(all.map(({ requestMs }) => requestMs)),
  );
}
console.log("Target: the server's loop is never held for more than 20 ms.");

await Promise.all([probing.destroy(), streaming.destroy(), asking.destroy()]);
await server.stop();
rmSync(folder, { recursive: true, force: true });
