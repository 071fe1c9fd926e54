import { once } from "node:events";
import { request } from "undici";
import { httpWay, llamaServerWay, newPrompt, type HttpWay, type WayOptions } from "./engine-ways.ts";
import { processCpuMs } from "./process-cpu.ts";

/*
 * Long prompts: alone, next to running answers, and in conversations that grow. Two servers answer the same prompts alternately.
 */

export interface LongOptions {
  readonly model: string;
  readonly threads: number;
  readonly rounds: number;
  /** Lengths of the prompts, in tokens. */
  readonly lengths: readonly number[];
  /** Numbers of answers that run while a prompt is processed. */
  readonly answerCounts: readonly number[];
  /** `main.js` of another build of Truewire, to compare with; absent: llama-server, where there is one. */
  readonly against: string | undefined;
}

interface Measured {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** The longest time between two tokens of an answer, or from a request to its first token. Milliseconds. */
  readonly waitMs: number;
}

const conversations = { count: 4, turns: 6, first: 900, growth: 300, tokens: 8 };

/** Prints a row for each length and number of answers, and one for growing conversations. */
export async function measureLongPrompts(wanted: LongOptions): Promise<void> {
  const { model, threads, rounds, lengths, answerCounts, against } = wanted;
  const other = against ?? "llama-server";
  console.log(`\nLong prompts, ${threads} thread${threads > 1 ? "s" : ""}, median of ${rounds}, next to ${other}`);
  print("", "answers", "tokens/s", "other", "CPU s", "other", "gap ms", "other");
  for (const length of lengths) {
    for (const answers of answerCounts) {
      const slots = Math.max(4, answers + 1);
      const options = { model, threads, slots, contextSize: length + 1280 };
      const [ours, theirs] = await compare(options, against, rounds, (way) => promptNextTo(way, length, answers));
      const rate = (measured?: Measured): number | string => (measured ? length / measured.seconds : "-");
      const gap = (measured?: Measured): number | string => (measured && answers > 0 ? measured.waitMs : "-");
      const cells = [rate(ours), rate(theirs), ours.cpuSeconds, theirs?.cpuSeconds ?? "-", gap(ours), gap(theirs)];
      print(`prompt of ${length}`, String(answers), ...cells);
    }
  }
  const { count, turns, first, growth } = conversations;
  const longest = first + (turns - 1) * growth;
  print("", "", "s", "other", "CPU s", "other", "first token", "other");
  // The same limit for both: by default, Truewire's cache is as large as the slots, and llama-server's has 8 GiB.
  const options = { model, threads, slots: 2, contextSize: longest + 100, cacheMiB: 512 };
  const [ours, theirs] = await compare(options, against, rounds, growingConversations);
  const cells = [ours.seconds, theirs?.seconds ?? "-", ours.cpuSeconds, theirs?.cpuSeconds ?? "-"];
  print(`${count} growing to ${longest}`, "", ...cells, ours.waitMs, theirs?.waitMs ?? "-");
}

/** Measures both servers alternately. Returns the round with the median CPU time of each. */
async function compare(
  { cacheMiB, ...options }: WayOptions & { readonly cacheMiB?: number },
  against: string | undefined,
  rounds: number,
  measure: (way: HttpWay) => Promise<Measured>,
): Promise<readonly [Measured, Measured | undefined]> {
  const ways: (HttpWay | null)[] = [];
  const more = cacheMiB === undefined ? [] : ["--cache-memory", `${cacheMiB}MiB`];
  const ofOther = cacheMiB === undefined ? [] : ["--cache-ram", String(cacheMiB)];
  try {
    ways.push(await httpWay(options, undefined, more));
    ways.push(
      against === undefined
        ? await llamaServerWay({ ...options, more: ofOther })
        : await httpWay(options, against, more),
    );
    const results: Measured[][] = [[], []];
    for (const way of ways) await way?.generate(newPrompt(100), 8);
    for (let round = 0; round < rounds; round++)
      for (const [at, way] of ways.entries()) if (way) results[at]?.push(await withCpu(way, measure));
    const [ours, theirs] = results.map(
      (each) => each.toSorted((one, two) => one.cpuSeconds - two.cpuSeconds)[Math.floor(each.length / 2)],
    );
    if (!ours) throw new Error("Nothing was measured.");
    return [ours, theirs];
  } finally {
    for (const way of ways) await way?.close();
  }
}

async function withCpu(way: HttpWay, measure: (way: HttpWay) => Promise<Measured>): Promise<Measured> {
  const cpu = (): number => way.processes.reduce((sum, pid) => sum + processCpuMs(pid), 0);
  const before = cpu();
  const measured = await measure(way);
  return { ...measured, cpuSeconds: (cpu() - before) / 1000 };
}

/** The prefill of a prompt while answers run. */
async function promptNextTo(way: HttpWay, length: number, answers: number): Promise<Measured> {
  const leaving = new AbortController();
  const running = Array.from({ length: answers }, () => new RunningAnswer(way.url, leaving.signal));
  await Promise.all(running.map(({ started }) => started));
  for (const answer of running) answer.longestGapMs = 0;
  const started = performance.now();
  await way.generate(newPrompt(length), 1);
  const seconds = (performance.now() - started) / 1000;
  leaving.abort();
  await Promise.all(running.map(({ ended }) => ended));
  return { seconds, cpuSeconds: 0, waitMs: Math.max(0, ...running.map(({ longestGapMs }) => longestGapMs)) };
}

/** An answer without end, until its client leaves. */
class RunningAnswer {
  longestGapMs = 0;
  readonly started: Promise<unknown>;
  readonly ended: Promise<void>;

  constructor(url: string, signal: AbortSignal) {
    const first = new EventTarget();
    this.started = once(first, "token");
    this.ended = this.#read(url, signal, () => first.dispatchEvent(new Event("token"))).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  async #read(url: string, signal: AbortSignal, onToken: () => void): Promise<void> {
    const body = { model: "bench", prompt: newPrompt(40), max_tokens: 1200, ignore_eos: true, temperature: 0 };
    const answer = await request(`${url}/v1/completions`, {
      method: "POST",
      signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...body, stream: true }),
    });
    let last = performance.now();
    for await (const _ of answer.body) {
      const now = performance.now();
      this.longestGapMs = Math.max(this.longestGapMs, now - last);
      last = now;
      onToken();
    }
  }
}

/** Conversations that take turns and grow with each one. */
async function growingConversations(way: HttpWay): Promise<Measured> {
  const { count, turns, first, growth, tokens } = conversations;
  let texts = Array.from({ length: count }, () => newPrompt(first));
  const firstTokens: number[] = [];
  const started = performance.now();
  for (let turn = 0; turn < turns; turn++) {
    for (const text of texts) firstTokens.push((await way.generate(text, tokens)).firstTokenMs);
    texts = texts.map((text) => text.padEnd(text.length + growth, "27182818284590"));
  }
  const seconds = (performance.now() - started) / 1000;
  const median = firstTokens.toSorted((one, two) => one - two)[Math.floor(firstTokens.length / 2)] ?? Number.NaN;
  return { seconds, cpuSeconds: 0, waitMs: median };
}

function print(name: string, ...cells: readonly (string | number)[]): void {
  const columns = cells.map((cell) => (typeof cell === "number" ? cell.toFixed(1) : cell).padStart(12));
  console.log(name.padEnd(20) + columns.join(""));
}
