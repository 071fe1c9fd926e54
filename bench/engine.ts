import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeProgrammedModel } from "../test/fixtures/programmed-model.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { directWay, httpWay, naiveWay, type Way } from "./engine-ways.ts";
import { openLockstep } from "./lockstep.ts";
import { processCpuMs, wakeUpMicroseconds } from "./process-cpu.ts";

/**
 * Measures the local engine on a random model of 135 million parameters, one thread: tokens/s of 1, 4, 8 and 16 streams through HTTP,
 * through the scheduler alone, with one `evaluate()` a request ("naive"), and of the bare library with all sequences advanced together
 * ("lockstep": what batching can give on this machine, whatever is written around it); what the server's process spends a token beside
 * the decoding; and what HTTP adds to the first token. All ways run in turns on one machine. Where other work shares it, tokens per CPU
 * second of the process that decodes say more than tokens/s: with one thread they are the same on an idle machine. Linux only.
 *
 *     npm run bench engine -- [--streams 1,4,8,16] [--tokens 48] [--prompt 48] [--pairs 40]
 */
const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "1,4,8,16" },
    tokens: { type: "string", default: "48" },
    prompt: { type: "string", default: "48" },
    pairs: { type: "string", default: "40" },
  },
});
const streamCounts = values.streams.split(",").map(Number);
const tokens = Number(values.tokens);
const promptTokens = Number(values.prompt);
const slots = Math.max(...streamCounts);

const folder = resolve(".cache");
mkdirSync(folder, { recursive: true });
const model = join(folder, "random-135M.gguf");
if (!existsSync(model)) writeRandomModel(model, { size: "135M" });
const quickModel = join(folder, "programmed.gguf");
writeProgrammedModel(quickModel);

let prompts = 0;
/** One byte is one token, and no two prompts share more than a few. */
const nextPrompt = (): string => `${++prompts} `.padEnd(promptTokens, "lorem ipsum dolor ");

interface Rate {
  readonly perSecond: number;
  readonly perCpuSecond: number;
}

async function rate(pid: number, generate: () => Promise<number>): Promise<Rate> {
  const cpu = processCpuMs(pid);
  const started = performance.now();
  const count = await generate();
  return {
    perSecond: (count * 1000) / (performance.now() - started),
    perCpuSecond: (count * 1000) / (processCpuMs(pid) - cpu),
  };
}

const measure = (way: Way, streams: number): Promise<Rate> =>
  rate(way.decodingProcess, async () => {
    const results = await Promise.all(Array.from({ length: streams }, () => way.generate(nextPrompt(), tokens)));
    return results.reduce((sum, result) => sum + result.tokens, 0);
  });

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const row = (...cells: readonly (string | number)[]): void =>
  console.log(cells.map((cell) => (typeof cell === "number" ? cell.toFixed(2) : cell).padStart(11)).join(""));

const options = { model, slots, contextSize: promptTokens + tokens + 32 };
const naive = await naiveWay(options);
const lockstep = await openLockstep(options);
const direct = await directWay(options);
const http = await httpWay({ ...options, warmUp: quickModel });
const machine = `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`;
console.log(`135M Q8_0, 1 thread, prompts of ${promptTokens} tokens, ${tokens} tokens out; ${machine}`);
for (const way of [naive, direct, http])
  await Promise.all(Array.from({ length: slots }, () => way.generate(nextPrompt(), 2)));
console.log("tokens a second, and (right) tokens a CPU second of the process that decodes");
row(
  "streams",
  "naive",
  "lockstep",
  "scheduler",
  "HTTP",
  "HTTP/naive",
  "server µs",
  "| naive",
  "lockstep",
  "HTTP",
  "HTTP/naive",
);
for (const streams of streamCounts) {
  const one = await measure(naive, streams);
  const best = await rate(process.pid, async () => {
    await lockstep.generate(Array.from({ length: streams }, nextPrompt), tokens);
    return streams * tokens;
  });
  const two = await measure(direct, streams);
  const before = processCpuMs(http.serverProcess);
  const three = await measure(http, streams);
  const server = ((processCpuMs(http.serverProcess) - before) * 1000) / (streams * tokens);
  row(
    String(streams),
    one.perSecond,
    best.perSecond,
    two.perSecond,
    three.perSecond,
    three.perSecond / one.perSecond,
    server,
    one.perCpuSecond,
    best.perCpuSecond,
    three.perCpuSecond,
    three.perCpuSecond / one.perCpuSecond,
  );
}
await lockstep.close();
for (const way of [naive, direct, http]) await way.close();
console.log("Targets at 16 streams: HTTP/naive ≥ 2.5, server ≤ 60 µs CPU a token (its own process, all threads).");

// The same server on a model that costs nothing: what is left is the server, and what HTTP adds to a first token.
const quick = { model: quickModel, slots, contextSize: 2048 };
const quickDirect = await directWay(quick);
const quickHttp = await httpWay(quick);
const endless = "<|script:endless|>";
for (const streams of streamCounts) {
  const each = 1000;
  await Promise.all(Array.from({ length: streams }, () => quickHttp.generate(endless, 200)));
  const before = processCpuMs(quickHttp.serverProcess);
  await Promise.all(Array.from({ length: streams }, () => quickHttp.generate(endless, each)));
  const cpu = ((processCpuMs(quickHttp.serverProcess) - before) * 1000) / (streams * each);
  console.log(
    `${streams} streams of a model that costs nothing: ${cpu.toFixed(0)} µs CPU a token in the server's process`,
  );
}
const added: number[] = [];
for (let i = 0; i < Number(values.pairs); i++) {
  const withHttp = await quickHttp.generate(`${i} ${endless}`, 2);
  const without = await quickDirect.generate(`${i} ${endless}`, 2);
  if (i >= 5) added.push(withHttp.firstTokenMs - without.firstTokenMs);
}
await quickDirect.close();
await quickHttp.close();
console.log(
  `HTTP and wire add ${median(added).toFixed(2)} ms to a first token (median of ${added.length} pairs; target ≤ 3).`,
);
const wakeUp = wakeUpMicroseconds(spawnSync);
console.log(
  `For scale: waking up a process for nothing costs ${wakeUp} µs CPU here and now (target: ≤ 60 µs a token in all).`,
);
