import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openLlamaEngine } from "../src/engines/llama/llama-engine.ts";
import type { Engine } from "../src/wire/core/engine.ts";
import type { GenerationRequest } from "../src/wire/core/request.ts";
import { programmedTemplate } from "../test/fixtures/programmed-template.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";

/**
 * Measures how long a local model is at a request whose client has left: until its slot is free (or it waits no more), until the model's
 * process rests, and the CPU time that it spends till then, which another load on the machine does not change. On a random model of 135
 * million parameters, with one thread. Where others have work too, the process does not rest: there CPU time says nothing. Linux only.
 *
 *     npm run bench cancel -- [--rounds 20] [--only NAME]
 */
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, only: { type: "string", default: "" } },
});
const rounds = Number(values.rounds);
const slots = 16;

const folder = resolve(".cache");
mkdirSync(folder, { recursive: true });
const model = join(folder, "random-135M-chat.gguf");
if (!existsSync(model)) writeRandomModel(model, { size: "135M", chatTemplate: programmedTemplate([]) });
const engine = await openLlamaEngine({ model, slots, contextSize: 8192, threads: 1, gpu: "off" });
const { processId } = engine as unknown as { readonly processId: number };

let requests = 0;
function request(over: Partial<GenerationRequest>): GenerationRequest {
  return {
    id: `bench_${++requests}`,
    model: "bench",
    prompt: { kind: "text", prompts: [`${requests} `] },
    sampling: { temperature: 0 },
    limits: { maxTokens: 4000, cachePrompt: false, ignoreEos: true },
    wantsUsage: true,
    stream: true,
    extra: {},
    ...over,
  };
}

type Generation = ReturnType<Engine["generate"]>;

/** Reads an answer until it is left. */
function read(generation: Generation): { readonly leave: () => void } {
  const batches = generation[Symbol.asyncIterator]();
  void (async () => {
    for (let batch = await batches.next(); batch.done !== true; batch = await batches.next());
  })();
  return { leave: () => void batches.return?.() };
}

/** What is left, and what else the model has to do meanwhile. */
interface Case {
  readonly name: string;
  readonly asked: () => Partial<GenerationRequest>;
  readonly others: () => readonly Partial<GenerationRequest>[];
  /** When the client leaves, in milliseconds after it has asked. */
  readonly after: readonly [from: number, to: number];
}

const prompt = (text: string): Pick<GenerationRequest, "prompt"> => ({ prompt: { kind: "text", prompts: [text] } });
/** One byte is one token, and no two prompts begin alike. */
const longPrompt = (): Pick<GenerationRequest, "prompt"> =>
  prompt(`${Math.random()} `.padEnd(6000, "lorem ipsum dolor "));
const megabyte = "The quick brown fox jumps over the lazy dog. ".repeat(23_000).slice(0, 2 ** 20);
const none = (): readonly Partial<GenerationRequest>[] => [];
const answers = (count: number) => () => Array.from({ length: count }, () => ({}));
const ways: GenerationRequest["output"] = { type: "regex", pattern: "(\\s|.)*x", path: "guided_regex" };
const values20k = Array.from({ length: 20_000 }, (_, at) => `value number ${at}`);
const options: GenerationRequest["output"] = { type: "choice", options: values20k, path: "guided_choice" };

const allCases: readonly Case[] = [
  { name: "prompt, alone", asked: longPrompt, others: none, after: [300, 1500] },
  { name: "prompt next to 4 answers", asked: longPrompt, others: answers(4), after: [300, 1500] },
  { name: "prompt next to a prompt", asked: longPrompt, others: () => [longPrompt()], after: [300, 1500] },
  { name: "answer, alone", asked: () => ({}), others: none, after: [100, 500] },
  { name: "answer next to 15", asked: () => ({}), others: answers(15), after: [300, 600] },
  { name: "grammar", asked: () => ({ output: ways }), others: none, after: [300, 600] },
  { name: "grammar next to 4", asked: () => ({ output: ways }), others: answers(4), after: [300, 600] },
  { name: "20,000 choices, made", asked: () => ({ output: options }), others: none, after: [20, 400] },
  { name: "chat of 1 MB", asked: () => chat(megabyte), others: none, after: [5, 60] },
  { name: "text of 1 MB", asked: () => prompt(megabyte), others: none, after: [20, 120] },
  { name: "waiting", asked: () => ({}), others: answers(slots), after: [100, 300] },
];
const cases = allCases.filter(({ name }) => name.includes(values.only));

function chat(content: string): Partial<GenerationRequest> {
  return { prompt: { kind: "chat", messages: [{ role: "user", content }], template: {} } };
}

/** CPU time of all threads of the model's process, in milliseconds. */
function cpuMs(): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${processId}/task`)) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${processId}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      // It has just ended.
    }
  }
  return nanoseconds / 1e6;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** Requests that the model's process has: in its slots, which it is asked for, and before them. */
async function work(): Promise<number> {
  const { signal } = new AbortController();
  const state = (await engine.ask?.({ kind: "slots", request: null }, signal)) ?? [];
  return state.filter(({ busy }) => busy).length + (engine.health().queued ?? 0);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(2);
}

/** Milliseconds until the slot is free, and until the process rests; and what of its CPU time they took. */
interface Left {
  readonly free: readonly [ms: number, cpuMs: number];
  readonly rest: readonly [ms: number, cpuMs: number];
}

async function leave({ asked, others, after: [from, to] }: Case): Promise<Left> {
  await until(async () => (await work()) === 0);
  const running = others().map((each) => read(engine.generate(request(each))));
  if (running.length > 0) {
    await until(async () => (await work()) === running.length);
    await sleep(300);
  }
  const one = read(engine.generate(request(asked())));
  await sleep(from + Math.random() * (to - from));
  const left = performance.now();
  const before = cpuMs();
  one.leave();
  let free: Left["free"] | undefined;
  let [seen, rested] = [before, left];
  // It rests when it has done next to nothing for 100 ms.
  for (let now = left; !free || (running.length === 0 && now - rested < 100); now = performance.now()) {
    if (!free && (await work()) <= running.length) free = [performance.now() - left, cpuMs() - before];
    const cpu = cpuMs();
    if (cpu - seen > 0.5) [seen, rested] = [cpu, now];
    await sleep(2);
  }
  for (const other of running) other.leave();
  return { free, rest: [rested - left, seen - before] };
}

const row = (name: string, cells: readonly string[]): void =>
  console.log(name.padEnd(26) + cells.map((cell) => cell.padStart(10)).join(""));
const summary = (numbers: readonly number[]): string[] => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted.at(-1) ?? 0].map((ms) => ms.toFixed(0));
};

const machine = `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`;
console.log(`135M Q8_0, 1 thread, ${slots} slots; median and worst of ${rounds}, in milliseconds; ${machine}`);
row("", ["free", "worst", "its CPU", "worst", "at rest", "worst", "its CPU", "worst"]);
for (const each of cases) {
  const seen: Left[] = [];
  for (let round = 0; round < rounds; round++) seen.push(await leave(each));
  const cells = (of: "free" | "rest"): string[] =>
    [0, 1].flatMap((at) => summary(seen.map((left) => left[of][at] ?? 0)));
  row(each.name, [...cells("free"), ...(each.others().length === 0 ? cells("rest") : [])]);
}
await engine.close(0);
console.log("Target: 100 ms, on a machine that does nothing else.");
