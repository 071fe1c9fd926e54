import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeProgrammedModel } from "../test/fixtures/programmed-model.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { directWay, httpWay, naiveWay, type Way } from "./engine-ways.ts";
import { processCpuMs, wakeUpMicroseconds } from "./process-cpu.ts";

/**
 * Measures the local engine on a random model of 135 million parameters, one thread: tokens/s of 1, 4, 8 and 16 streams through HTTP,
 * through the scheduler alone, and with one `evaluate()` a request; what the server's process spends a token beside the decoding; and
 * what HTTP adds to the first token. All ways run in turns on one machine, so their ratios hold on a busy one.
 *
 *     npm run tools && node .cache/tools/bench/engine.js [--streams 1,4,8,16] [--tokens 32] [--prompt 32] [--pairs 40]
 */
const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "1,4,8,16" },
    tokens: { type: "string", default: "32" },
    prompt: { type: "string", default: "32" },
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

async function tokensPerSecond(way: Way, streams: number): Promise<number> {
  const started = performance.now();
  const counts = await Promise.all(Array.from({ length: streams }, () => way.generate(nextPrompt(), tokens)));
  return (counts.reduce((sum, { tokens }) => sum + tokens, 0) * 1000) / (performance.now() - started);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const options = { model, slots, contextSize: promptTokens + tokens + 32 };
const naive = await naiveWay(options);
const direct = await directWay(options);
const http = await httpWay(options);
const cores = `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}`;
console.log(
  `135M Q8_0, 1 thread, prompts of ${promptTokens} tokens, ${tokens} tokens out; ${cores}, Node ${process.version}\n`,
);
console.log("streams   naive  scheduler    HTTP   scheduler/naive  HTTP/naive  HTTP/scheduler  server µs CPU/token");
let atMost = 0;
for (const way of [naive, direct, http]) await way.generate(nextPrompt(), 4);
for (const streams of streamCounts) {
  const one = await tokensPerSecond(naive, streams);
  const two = await tokensPerSecond(direct, streams);
  const before = processCpuMs(http.processId);
  const three = await tokensPerSecond(http, streams);
  const cpu = ((processCpuMs(http.processId) - before) * 1000) / (streams * tokens);
  atMost = three / one;
  const cells = [
    String(streams).padStart(7),
    one.toFixed(1).padStart(8),
    two.toFixed(1).padStart(11),
    three.toFixed(1).padStart(8),
    (two / one).toFixed(2).padStart(18),
    (three / one).toFixed(2).padStart(12),
    (three / two).toFixed(2).padStart(16),
    cpu.toFixed(0).padStart(21),
  ];
  console.log(cells.join(""));
}
for (const way of [naive, direct, http]) await way.close();
console.log(`\nAt ${slots} streams HTTP is ${atMost.toFixed(2)}× the naive way (target ≥ 2.5).`);

// The same server on a model that costs nothing: what is left is the server, and what HTTP adds to a first token.
const quick = { model: quickModel, slots, contextSize: 2048 };
const quickDirect = await directWay(quick);
const quickHttp = await httpWay(quick);
const endless = "<|script:endless|>";
for (const streams of streamCounts) {
  const each = 1000;
  await Promise.all(Array.from({ length: streams }, () => quickHttp.generate(endless, 200)));
  const before = processCpuMs(quickHttp.processId);
  await Promise.all(Array.from({ length: streams }, () => quickHttp.generate(endless, each)));
  const cpu = ((processCpuMs(quickHttp.processId) - before) * 1000) / (streams * each);
  console.log(
    `${String(streams).padStart(2)} streams of a model that costs nothing: ${cpu.toFixed(0)} µs CPU/token in the server's process`,
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
  `HTTP and wire add ${median(added).toFixed(2)} ms to the first token (median of ${added.length} pairs; target ≤ 3).`,
);
console.log(
  `For scale: waking up a process that has nothing to do costs ${wakeUpMicroseconds(spawnSync)} µs CPU on this machine now (target ≤ 60 a token).`,
);
