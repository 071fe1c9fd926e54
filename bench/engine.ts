import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeProgrammedModel } from "../test/fixtures/programmed-model.ts";
import { programmedTemplate } from "../test/fixtures/programmed-template.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { measureLongPrompts } from "./engine-long.ts";
import { directWay, httpWay, newPrompt, peers, type Way } from "./engine-ways.ts";
import { llamaBench } from "./llama-bench.ts";
import { cpuLibraryOf } from "./llama-server.ts";
import { processCpuMs, wakeUpMicroseconds } from "./process-cpu.ts";

/**
 * Measures the local engine through HTTP on a random model of 135 million parameters, or on the model of a file, next to other servers:
 * decoding with several streams, prompts, and what is asked of the sampler. All answer in turns; a figure is the median of its rounds. Where
 * other work shares the machine, CPU time a token says more than tokens a second: it counts all processes of a server. The servers are
 * llama.cpp's own, which `TRUEWIRE_LLAMA_SERVER` names and which runs with Truewire's CPU libraries, and those that `npm run interop --
 * install ollama llama-cpp-python` installs, with their own. `llama-bench`, from the folder of llama-server, says what llama.cpp alone can
 * do: both servers' share of it, and its tokens a second; decoding without the prompt. Then what the server itself costs, on a model that costs nothing. Linux only.
 *
 *     TRUEWIRE_LLAMA_SERVER=llama.cpp/build/bin/llama-server npm run bench engine -- [--threads 1,2] [--streams 1,4,8,16] [--prompts 500,2000] [--rounds 5]
 *       [--model 15M|135M|FILE] [--beside llama-server,ollama,llama-cpp-python]
 *
 * `--only long` measures long prompts instead (`engine-long.ts`): alone, next to running answers, and conversations that grow. A round
 * takes an hour with one thread, with `--model 15M` five minutes. `--against FOLDER/dist/cli/main.js` compares with another build in place of
 * other servers, there and in all other cases.
 *
 *     npm run bench engine -- --only long --rounds 1 --threads 1 [--long 4000,16000] [--answers 0,1,4] [--model 15M] [--against …]
 */
const { values } = parseArgs({
  options: {
    threads: { type: "string", default: "1,2" },
    streams: { type: "string", default: "1,4,8,16" },
    tokens: { type: "string", default: "48" },
    prompt: { type: "string", default: "48" },
    prompts: { type: "string", default: "1000" },
    rounds: { type: "string", default: "5" },
    pairs: { type: "string", default: "40" },
    only: { type: "string", default: "" },
    long: { type: "string", default: "4000,16000" },
    answers: { type: "string", default: "0,1,4" },
    against: { type: "string" },
    model: { type: "string", default: "135M" },
    beside: { type: "string", default: "llama-server" },
  },
});
const streamCounts = values.streams.split(",").map(Number);
const tokens = Number(values.tokens);
const promptTokens = Number(values.prompt);
const rounds = Number(values.rounds);
const promptLengths = values.prompts.split(",").map(Number);
const slots = Math.max(...streamCounts);

const folder = resolve(".cache");
mkdirSync(folder, { recursive: true });
const isLong = values.only === "long";
const model = modelFile(values.model);
const quickModel = join(folder, "programmed.gguf");
writeProgrammedModel(quickModel);

/** Returns the file of a random model of this size, or the file that is named. */
function modelFile(name: string): string {
  if (name !== "135M" && name !== "15M") return resolve(name);
  const file = join(folder, `random-${name}-${isLong ? "long" : "chat"}.gguf`);
  if (!existsSync(file))
    // llama-server does not exceed the context size that a model was trained for.
    writeRandomModel(file, { size: name, chatTemplate: programmedTemplate([]), contextLength: isLong ? 65_536 : 8192 });
  return file;
}

/** What is measured: `requests` simultaneous requests, of each of which `tokens` tokens count. */
interface Case {
  readonly name: string;
  readonly streams: number;
  readonly ask: (way: Way) => Promise<number>;
}

const person = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 20 },
    age: { type: "integer" },
    tags: { type: "array", items: { type: "string", maxLength: 8 }, maxItems: 3 },
  },
  required: ["name", "age", "tags"],
  additionalProperties: false,
};
const schema = {
  response_format: { type: "json_schema", json_schema: { name: "person", schema: person, strict: true } },
};
const tool = {
  tools: [{ type: "function", function: { name: "save", parameters: person } }],
  tool_choice: "required",
};
const chat = { messages: [{ role: "user", content: "Who?" }] };

const decode =
  (more: object = {}) =>
  async (way: Way) =>
    (await way.generate(newPrompt(promptTokens), tokens, more)).tokens;
const read = (length: number) => async (way: Way) => (await way.generate(newPrompt(length), 1)).promptTokens;
const cases: readonly Case[] = [
  ...streamCounts.map((streams) => ({ name: "decode", streams, ask: decode() })),
  ...promptLengths.map((length) => ({ name: `prompt of ${length}`, streams: 1, ask: read(length) })),
  { name: "prompts of 500", streams: 4, ask: read(500) },
  ...streamCounts.map((streams) => ({ name: "temperature 1", streams, ask: decode({ temperature: 1 }) })),
  ...streamCounts.map((streams) => ({ name: "logprobs 5", streams, ask: decode({ logprobs: 5 }) })),
  ...[1, 8].flatMap((streams) => [
    { name: "ignore_eos, bias", streams, ask: decode({ ignore_eos: true, logit_bias: { 65: -5 } }) },
    { name: "JSON schema", streams, ask: decode({ ...chat, ...schema, temperature: 0.8, seed: 1 }) },
    { name: "required call", streams, ask: decode({ ...chat, ...tool, temperature: 0.8, seed: 1 }) },
  ]),
].filter(({ name }) => values.only.split(",").some((only) => name.includes(only)));

interface NamedWay {
  readonly name: string;
  readonly way: Way;
}

interface Rate {
  readonly perSecond: number;
  readonly cpuMs: number;
}

async function measure(way: Way, { streams, ask }: Case): Promise<Rate> {
  const cpu = (): number => way.processes.reduce((sum, pid) => sum + processCpuMs(pid), 0);
  const before = cpu();
  const started = performance.now();
  const counts = await Promise.all(Array.from({ length: streams }, () => ask(way)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  return { perSecond: (total * 1000) / (performance.now() - started), cpuMs: (cpu() - before) / total };
}

/**
 * Tokens a second of decoding alone, as llama-bench measures it: an answer of many tokens less one of a few, which processes a prompt of the same
 * length.
 */
async function decodeAlone(way: Way): Promise<number> {
  const timed = async (length: number): Promise<number> => {
    const started = performance.now();
    await way.generate(newPrompt(promptTokens), length, { ignore_eos: true });
    return performance.now() - started;
  };
  const few = await timed(4);
  return (tokens * 1000) / ((await timed(4 + tokens)) - few);
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const row = (name: string, ...cells: readonly (string | number)[]): void =>
  console.log(
    name.padEnd(20) + cells.map((cell) => (typeof cell === "number" ? cell.toFixed(2) : cell).padStart(12)).join(""),
  );

/** Prints a row for each case: tokens a second of all servers and the ratios to Truewire's, then CPU time a token. `ways`: ours first. */
async function compare(threads: number, ways: readonly NamedWay[]): Promise<void> {
  const machine = `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`;
  console.log(`\n${values.model}, ${threads} thread${threads > 1 ? "s" : ""}, median of ${rounds}; ${machine}`);
  for (const { way } of ways) await way.generate(newPrompt(promptTokens), 8);
  for (const { name, way } of ways) console.log(`CPU library of ${name}: ${cpuLibraryOf(way.processes.at(-1) ?? 0)}`);
  const others = ways.slice(1).flatMap(({ name }) => [name.slice(0, 11), "ratio"]);
  row("", "streams", "tokens/s", ...others, "CPU ms/token", ...others);
  const limits = await llamaBench({ model, threads, prompts: promptLengths, tokens, rounds });
  for (const each of cases) {
    const rates: Rate[][] = ways.map(() => []);
    for (let round = 0; round < rounds; round++)
      for (const [at, { way }] of ways.entries()) rates[at]?.push(await measure(way, each));
    const [perSecond, cpuMs] = [
      rates.map((all) => median(all.map((rate) => rate.perSecond))),
      rates.map((all) => median(all.map((rate) => rate.cpuMs))),
    ];
    const [ours = 0, ...theirs] = perSecond;
    const [ourCpu = 0, ...theirCpu] = cpuMs;
    row(
      each.name,
      String(each.streams),
      ours,
      ...theirs.flatMap((rate) => [rate, ours / rate]),
      ourCpu,
      ...theirCpu.flatMap((cpu) => [cpu, cpu / ourCpu]),
    );
    if (!limits) continue;
    const length = promptLengths.find((one) => each.name === `prompt of ${one}`);
    if (length !== undefined) rowOfLimit(ways, perSecond, limits.prompts.get(length) ?? 0);
    if (each.name !== "decode" || each.streams !== 1) continue;
    // The others do not know `ignore_eos`.
    const exact = ways.filter(({ name }) => name === "Truewire" || name === "llama-server");
    const alone: number[][] = exact.map(() => []);
    for (let round = 0; round < rounds; round++)
      for (const [at, { way }] of exact.entries()) alone[at]?.push(await decodeAlone(way));
    rowOfLimit(exact, alone.map(median), limits.decode);
  }
}

/** Prints what share of llama-bench's tokens a second each server reaches; for decoding, all without the prompt. */
function rowOfLimit(ways: readonly NamedWay[], perSecond: readonly number[], limit: number): void {
  const shares = ways.map(({ name }, at) => `${name} ${((perSecond[at] ?? 0) / limit).toFixed(2)}`);
  console.log(`  of llama-bench's ${limit.toFixed(1)} tokens/s: ${shares.join(", ")}`);
}

for (const threads of values.threads.split(",").map(Number)) {
  if (isLong) {
    const numbers = (list: string): readonly number[] => (list === "" ? [] : list.split(",").map(Number));
    const [lengths, answerCounts] = [numbers(values.long), numbers(values.answers)];
    await measureLongPrompts({ model, threads, rounds, lengths, answerCounts, against: values.against });
    continue;
  }
  // The model was trained for 8192 tokens.
  const options = { model, slots, contextSize: Math.min(8192, Math.max(1000, ...promptLengths) + 280), threads };
  const ways: NamedWay[] = [];
  try {
    ways.push({ name: "Truewire", way: await httpWay(options) });
    if (values.against !== undefined) ways.push({ name: "other build", way: await httpWay(options, values.against) });
    else
      for (const name of values.beside.split(",").filter((one) => one !== "")) {
        const way = await peers[name]?.(options);
        if (way) ways.push({ name, way });
        else if (!(name in peers))
          throw new Error(`--beside is a list of ${Object.keys(peers).join(", ")}, not ${name}.`);
        else
          console.log(
            `skipped: ${name} is not installed (${name === "llama-server" ? "TRUEWIRE_LLAMA_SERVER names it" : `npm run interop -- install ${name}`})`,
          );
      }
    await compare(threads, ways);
  } finally {
    for (const { way } of ways) await way.close();
  }
}
console.log("Targets: all ratios to llama-server ≥ 1.");

// The same server on a model that costs nothing: what is left is the server, and what HTTP adds to a first token.
if (values.only === "") {
  const quick = { model: quickModel, slots, contextSize: 2048, threads: 1 };
  const quickDirect = await directWay(quick);
  const quickHttp = await httpWay(quick);
  const endless = "<|script:endless|>";
  const [serverProcess = 0] = quickHttp.processes;
  for (const streams of streamCounts) {
    const each = 1000;
    await Promise.all(Array.from({ length: streams }, () => quickHttp.generate(endless, 200)));
    const before = processCpuMs(serverProcess);
    await Promise.all(Array.from({ length: streams }, () => quickHttp.generate(endless, each)));
    const cpu = ((processCpuMs(serverProcess) - before) * 1000) / (streams * each);
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
}
