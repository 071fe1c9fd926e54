import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { httpWay, llamaServerWay, type HttpWay } from "./engine-ways.ts";
import { cpuLibraryOf } from "./llama-server.ts";
import { MemoryWatch, processCpuMs } from "./process-cpu.ts";

/**
 * Four agents with the same system prompt and tools, whose prompts grow by a tool result with each turn, on two slots: one grows to the
 * longest prompt, one sends some turns again with another end, one clears an early tool result, and one pauses for most of the time. Truewire
 * and llama.cpp's server (`TRUEWIRE_LLAMA_SERVER`) answer the same prompts with the same limit of their prompt caches: first one request after
 * another, each to both servers; then those of all agents concurrently, to both servers at the same time. Prints the prompt tokens that were
 * processed, next to those that a cache of unlimited size would leave; CPU time; the time to the first token; the peak of the memory, and how
 * much of it is not pages of files; and the largest prompt cache, which llama.cpp's server does not report. Linux only.
 *
 * The model has 15 million random parameters, 4.2 million of them in three layers with one KV head of 64, so that prompts of 40,000 tokens
 * take minutes on two cores. It counts: its answers are known, and part of the next prompt. A run takes about eight minutes with one thread,
 * `--quick` one. `--against FOLDER/dist/cli/main.js` compares with another build in place of llama-server.
 *
 *     npm run bench agents -- [--quick] [--only turns|concurrent] [--threads 1] [--slots 2] [--cache-memory 512] [--details] [--against …]
 */
const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    threads: { type: "string", default: "1" },
    slots: { type: "string", default: "2" },
    /** Of each server, in MiB. */
    "cache-memory": { type: "string", default: "512" },
    details: { type: "boolean", default: false },
    against: { type: "string" },
  },
});
const threads = Number(values.threads);
const slots = Number(values.slots);
const cacheMiB = Number(values["cache-memory"]);
/** All lengths below are multiplied by this. */
const scale = values.quick ? 0.15 : 1;

/** A message. Results of tools are user messages, as some agents send them, so that no template writes calls in its own way. */
interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** A request of an agent. */
interface Turn {
  readonly agent: string;
  readonly messages: readonly Message[];
}

/** What follows ">" in the order of the vocabulary, which the model generates. */
const continuation = "?@ABCDEFGHIJKLMN";
const chatTemplate =
  "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n>{% endif %}";
/** The prompt of messages, in which each character is one token. */
const promptOf = (messages: readonly Message[]): string =>
  `${messages.map(({ role, content }) => `\u0001${role}\n${content}\u0002\n`).join("")}\u0001assistant\n>`;

/** Text of a length, each with another start. */
function text(name: string, length: number): string {
  const line = (number: number): string => `${name} ${number}: ${(number * 7919) % 1009} lorem ipsum dolor sit amet\n`;
  let all = "";
  for (let number = 0; all.length < length * scale; number++) all += line(number);
  return all.slice(0, Math.round(length * scale));
}

const rounds = 10;
const system: Message = { role: "system", content: text("instruction or tool", 8000) };
/** Lengths of tool results, in shares of their mean. */
const resultLengths = [0.3, 1.8, 0.5, 2.6, 0.2, 1.4, 0.7, 1.1, 0.4];
/** Tokens by which a prompt grows to its longest length. */
const growth = { growing: 28_000, retrying: 16_000, clearing: 16_000, pausing: 6000 } as const;
type Name = keyof typeof growth;

/** The requests of an agent in each round. */
function turnsOf(agent: Name): Turn[][] {
  const mean = growth[agent] / (rounds - 1);
  const result = (number: number, name: string): Message => ({
    role: "user",
    content: text(`${agent} ${name} ${number}`, mean * (resultLengths[number] ?? 1)),
  });
  let messages: readonly Message[] = [system, { role: "user", content: text(`task of ${agent}`, 4000) }];
  return Array.from({ length: rounds }, (_, round) => {
    if (agent === "pausing" && round > 2 && round < rounds - 2) return [];
    const asked: Turn[] = [{ agent, messages }];
    if (agent === "retrying" && (round === 3 || round === 6)) {
      messages = [...messages.slice(0, -1), result(round - 1, "again")];
      asked.push({ agent, messages });
    }
    messages = [...messages, { role: "assistant", content: `>${continuation}` }, result(round, "result")];
    if (agent === "clearing" && round === 5)
      messages = messages.map((message, at) => (at === 5 ? { ...message, content: "[cleared]" } : message));
    return asked;
  });
}

const agents = Object.keys(growth).map((name) => turnsOf(name as Name));
const inTurn = Array.from({ length: rounds }, (_, round) => agents.flatMap((turns) => turns[round] ?? [])).flat();
const lengths = inTurn.map(({ messages }) => promptOf(messages).length);
const contextSize = Math.max(...lengths) + 64;

/** The number of tokens of each prompt that no earlier prompt with its answer begins with. The last one is processed in any case. */
function leastProcessed(turns: readonly Turn[]): number[] {
  const known: string[] = [];
  return turns.map(({ messages }) => {
    const prompt = promptOf(messages);
    const cached = Math.max(0, ...known.map((other) => commonLength(prompt, other)));
    // The last token of an answer is not decoded.
    known.push(prompt + continuation.slice(0, -1));
    return prompt.length - Math.min(cached, prompt.length - 1);
  });
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

interface Answered {
  readonly firstTokenMs: number;
  readonly processed: number;
}

// llama-server closes idle connections after five seconds, and sometimes earlier.
const dispatcher = new Agent({ connections: 64, headersTimeout: 0, bodyTimeout: 0, keepAliveMaxTimeout: 500 });

/** Throws an Error if the answer or the number of the prompt's tokens is another one than expected. */
async function ask(way: HttpWay, { messages, agent }: Turn): Promise<Answered> {
  const started = performance.now();
  const { body, statusCode } = await request(`${way.url}/v1/chat/completions`, {
    method: "POST",
    dispatcher,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "bench",
      messages,
      max_tokens: continuation.length,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  let firstTokenMs = Number.NaN;
  let all = "";
  for await (const chunk of body) {
    all += String(chunk);
    if (Number.isNaN(firstTokenMs) && /"content":"[^"]/.test(all)) firstTokenMs = performance.now() - started;
  }
  const chunks = all.split("\n").filter((line) => line.startsWith("data: {"));
  const read = chunks.map(
    (line) =>
      JSON.parse(line.slice(6)) as {
        readonly choices?: readonly { readonly delta: { readonly content?: string | null } }[];
        readonly usage?: {
          readonly prompt_tokens: number;
          readonly prompt_tokens_details?: { readonly cached_tokens?: number };
        } | null;
      },
  );
  const said = read.map(({ choices }) => choices?.[0]?.delta.content ?? "").join("");
  const usage = read.findLast((each) => each.usage)?.usage;
  const expected = promptOf(messages).length;
  if (statusCode !== 200 || said !== continuation || usage?.prompt_tokens !== expected)
    throw new Error(
      `${way.url} answered ${agent} ${statusCode} with ${JSON.stringify(said)} after ${usage?.prompt_tokens} tokens; expected ` +
        `${JSON.stringify(continuation)} after ${expected}. ${all.slice(-1000)}`,
    );
  return { firstTokenMs, processed: expected - (usage.prompt_tokens_details?.cached_tokens ?? 0) };
}

interface Server {
  readonly name: string;
  readonly way: HttpWay;
  readonly answers: Answered[];
  readonly cpuBefore: number;
  readonly memory: MemoryWatch;
  /** The largest size of the prompt cache after an answer, in bytes. */
  cacheBytes: number;
}

/** The size of Truewire's prompt cache in bytes; NaN for llama.cpp's server. */
async function cacheBytesOf({ url }: HttpWay): Promise<number> {
  const { body } = await request(`${url}/health`, { dispatcher });
  const { engines = [] } = (await body.json()) as {
    readonly engines?: readonly { readonly counters?: { readonly promptCacheBytes?: number } }[];
  };
  return engines[0]?.counters?.promptCacheBytes ?? Number.NaN;
}

async function answer(server: Server, turn: Turn): Promise<Answered> {
  const answered = await ask(server.way, turn);
  server.answers.push(answered);
  server.memory.sample();
  const bytes = await cacheBytesOf(server.way);
  server.cacheBytes = Math.max(server.cacheBytes, bytes);
  return answered;
}

const cpuMs = (way: HttpWay): number => way.processes.reduce((sum, pid) => sum + processCpuMs(pid), 0);

async function startServers(model: string): Promise<Server[]> {
  const options = { model, slots, contextSize, threads };
  const ours = ["--cache-memory", `${cacheMiB}MiB`];
  const started: [string, HttpWay | null][] = [["Truewire", await httpWay(options, undefined, ours)]];
  const { against } = values;
  started.push(
    against === undefined
      ? ["llama-server", await llamaServerWay({ ...options, more: ["--cache-ram", String(cacheMiB)] })]
      : ["other build", await httpWay(options, against, ours)],
  );
  const servers: Server[] = [];
  for (const [name, way] of started) {
    if (!way) continue;
    await way.generate("warm up", 4);
    const memory = new MemoryWatch(way.processes);
    servers.push({ name, way, answers: [], cpuBefore: cpuMs(way), memory, cacheBytes: 0 });
  }
  return servers;
}

async function measure(
  title: string,
  model: string,
  run: (servers: readonly Server[]) => Promise<void>,
): Promise<void> {
  const servers = await startServers(model);
  try {
    const started = performance.now();
    await run(servers);
    const least = leastProcessed(inTurn).reduce((sum, count) => sum + count, 0);
    const [shortest, longest] = [Math.min(...lengths), Math.max(...lengths)].map((length) =>
      length.toLocaleString("en"),
    );
    const load = `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}`;
    console.log(
      `\n${title}: ${lengths.length} prompts of ${shortest} to ${longest} tokens, ${slots} slots, ${threads} threads`,
    );
    const pid = servers.map(({ way }) => way.processes.at(-1) ?? 0);
    console.log(`${load}, ${((performance.now() - started) / 1000).toFixed(0)} s; ${pid.map(cpuLibraryOf).join(", ")}`);
    print("", ["perfect cache", ...servers.map(({ name }) => name), "ratio"]);
    const row = (name: string, digits: number, perfect: number | undefined, of: (server: Server) => number): void => {
      const numbers = servers.map(of);
      const ratio = numbers.length > 1 ? ((numbers[0] ?? 0) / (numbers[1] ?? 0)).toFixed(2) : "";
      print(name, [perfect?.toString() ?? "", ...numbers.map((number) => number.toFixed(digits)), ratio]);
    };
    row("prompt tokens processed", 0, least, ({ answers }) =>
      answers.reduce((sum, { processed }) => sum + processed, 0),
    );
    row("CPU s", 1, undefined, ({ way, cpuBefore }) => (cpuMs(way) - cpuBefore) / 1000);
    row("first token ms p50", 0, undefined, ({ answers }) => percentile(answers, 0.5));
    row("first token ms p99", 0, undefined, ({ answers }) => percentile(answers, 0.99));
    row("peak memory MiB", 0, undefined, ({ memory }) => memory.peakMiB);
    row("  without files", 0, undefined, ({ memory }) => memory.peakAnonymousMiB);
    row("prompt cache MiB", 0, undefined, ({ cacheBytes }) => cacheBytes / 2 ** 20);
  } finally {
    for (const { memory } of servers) memory.stop();
    for (const { way } of servers) await way.close();
  }
}

function percentile(answers: readonly Answered[], share: number): number {
  const sorted = answers.map(({ firstTokenMs }) => firstTokenMs).toSorted((one, other) => one - other);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}

function print(name: string, cells: readonly string[]): void {
  console.log(name.padEnd(26) + cells.map((cell) => cell.padStart(14)).join(""));
}

/** One request after another, each to all servers, which begin alternately. */
async function oneAfterAnother(servers: readonly Server[]): Promise<void> {
  const least = leastProcessed(inTurn);
  for (const [at, turn] of inTurn.entries()) {
    for (const server of at % 2 === 0 ? servers : servers.toReversed()) await answer(server, turn);
    if (!values.details) continue;
    const cells = servers
      .map(({ answers }) => answers.at(-1))
      .map((last) => `${last?.processed} ${last?.firstTokenMs.toFixed(0)} ms`);
    print(`${turn.agent} ${lengths[at]}`, [String(least[at]), ...cells]);
  }
}

/** All agents at the same time, on both servers at the same time, so that other load is the same for both. */
async function concurrently(servers: readonly Server[]): Promise<void> {
  const work = servers.flatMap((server) =>
    agents.map(async (turns) => {
      for (const turn of turns.flat()) {
        const { processed, firstTokenMs } = await answer(server, turn);
        if (values.details)
          print(`${turn.agent} ${promptOf(turn.messages).length}`, [
            server.name,
            `${processed} ${firstTokenMs.toFixed(0)} ms`,
          ]);
      }
    }),
  );
  await Promise.all(work);
}

const folder = resolve(".cache");
mkdirSync(folder, { recursive: true });
const model = join(folder, "counting-15M-chat.gguf");
if (!existsSync(model)) writeRandomModel(model, { size: "15M", contextLength: 65_536, counts: true, chatTemplate });
if (values.only !== "concurrent") await measure("One request after another", model, oneAfterAnother);
if (values.only !== "turns") await measure("All agents concurrently", model, concurrently);
await dispatcher.close();
