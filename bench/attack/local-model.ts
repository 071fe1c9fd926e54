import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeProgrammedModel } from "../../test/fixtures/programmed-model.ts";
import { startTruewire } from "../../test/support/serve.ts";
import type { AttackOutcome } from "./attack.ts";

/** A server that an attack may do anything to. */
export interface AttackedServer {
  readonly url: string;
  readonly pid: number;
  /** The model's name in requests. */
  readonly model: string;
}

export interface LocalAttack {
  /**
   * Attacks the server, and returns what the attacker was answered. `fail` notes what must hold and did not. The signal ends an attack that
   * does not end by itself.
   */
  readonly attack: (server: AttackedServer, fail: (sentence: string) => void, signal: AbortSignal) => Promise<string>;
  /** The other client may be refused or wait while the attack lasts, as long as it is served after it. Default false. */
  readonly occupiesSlots?: boolean;
  /** The demo model, whose tokens have several characters. Default: the programmed one, whose scripts never end. */
  readonly demo?: boolean;
}

/** An attack that has not ended after this time is a hang. */
const hangMs = 120_000;
/** Memory that V8 and the allocator may keep after a garbage collection, in MiB. */
const keptMiB = 256;

/**
 * Runs an attack on a server with a local model, while another client reads an endless stream and `/health` is asked again and again. The
 * server held if the stream continued without an error, every `/health` was answered, the model's process is still the same, and memory is
 * free again after a garbage collection.
 */
export async function attackLocalModel({
  attack,
  occupiesSlots = false,
  demo = false,
}: LocalAttack): Promise<AttackOutcome> {
  const { target, monitors } = await serverOf(demo);
  const { pid } = target;
  const failures: string[] = [];
  const fail = (sentence: string): void => void failures.push(sentence);
  const over = new AbortController();
  try {
    const stream = readStreams(target, over.signal, fail, !occupiesSlots);
    await stream.chunk();
    const health = askHealth(target, over.signal, fail);
    const restarts = await restartsOf(target);
    await collectGarbage(monitors, pid);
    const before = memoryMiB(pid);
    let worst = before;
    const watch = setInterval(() => (worst = Math.max(worst, memoryMiB(pid))), 50);

    const started = performance.now();
    const hang = AbortSignal.timeout(hangMs);
    const answered = await attack(target, fail, hang).catch((error: unknown) => {
      fail(hang.aborted ? `it had not ended after ${hangMs / 1000} s` : `the attacker got no answer: ${String(error)}`);
      return "nothing";
    });
    const tookMs = performance.now() - started;

    const chunks = stream.count;
    await stream.chunk();
    clearInterval(watch);
    over.abort();
    const probes = await health;
    if ((await restartsOf(target)) !== restarts) fail("the model's process was started again");
    const after = await memoryAfterCollection(monitors, pid, before + keptMiB);
    if (after > before + keptMiB) fail(`${(after - before).toFixed(0)} MiB of memory were not freed`);
    return {
      answered,
      others: `a stream of ${chunks} chunks${stream.broken ? ", broken" : ", still open"}; ${probes} × /health`,
      memoryMiB: [before, Math.max(worst, after), after],
      tookMs,
      failures,
    };
  } finally {
    over.abort();
    // The next attack gets the same server, unless this one has harmed it.
    if (failures.length > 0) close(demo);
  }
}

interface OpenedServer {
  readonly target: AttackedServer;
  readonly monitors: string;
  readonly close: () => void;
}

/** Whether it has the demo model → the server. */
const opened = new Map<boolean, OpenedServer>();

async function serverOf(demo: boolean): Promise<OpenedServer> {
  const known = opened.get(demo);
  if (known) return known;
  const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
  const monitors = join(folder, "loops");
  const file = demo ? resolve("models/demo/demo.gguf") : join(folder, "programmed.gguf");
  if (!demo) writeProgrammedModel(file, { contextLength: 65_536 });
  const contextSize = demo ? "8192" : "65536";
  const server = await startTruewire(
    [file, "--gpu", "off", "--threads", "1", "--context-size", contextSize, "--slots", "4", "--log-level", "silent"],
    { env: monitored(monitors) },
  );
  const target = { url: server.url, pid: server.process.pid ?? 0, model: demo ? "demo" : "programmed" };
  const close = (): void => {
    server.process.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  const made = { target, monitors, close };
  opened.set(demo, made);
  return made;
}

function close(demo: boolean): void {
  opened.get(demo)?.close();
  opened.delete(demo);
}

/** Stops the servers that attacks have left running for the next ones. */
export function closeServers(): void {
  for (const demo of opened.keys()) close(demo);
}

/** Sends a JSON request, reads the answer to its end, and returns its status and body. */
export async function ask(
  { url }: AttackedServer,
  path: string,
  body: string | Buffer,
  signal: AbortSignal,
  encoding?: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...(encoding !== undefined && { "content-encoding": encoding }) },
    body: new Blob([typeof body === "string" ? body : new Uint8Array(body)]),
    signal,
  });
  return { status: response.status, text: await response.text() };
}

export function chatRequest({ model }: AttackedServer, members: object): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }], max_tokens: 8, ...members });
}

interface WatchedStream {
  readonly count: number;
  readonly broken: boolean;
  /** Resolves with the next chunk. Rejects where none comes within `hangMs`. */
  chunk(): Promise<void>;
}

/** Reads one endless answer after another. */
function readStreams(
  { url, model }: AttackedServer,
  over: AbortSignal,
  fail: (sentence: string) => void,
  mustGoOn: boolean,
): WatchedStream {
  const state = { count: 0, broken: false };
  let waiting: (() => void)[] = [];
  const read = async (): Promise<void> => {
    const prompt = model === "demo" ? "Once upon a time" : "<|script:endless|>";
    const body = JSON.stringify({ model, prompt, max_tokens: 8000, temperature: 0, stream: true, ignore_eos: true });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}/v1/completions`, { method: "POST", headers, body, signal: over });
    if (response.status !== 200) throw new Error(`${response.status}: ${(await response.text()).slice(0, 200)}`);
    for await (const chunk of response.body ?? []) {
      const text = Buffer.from(chunk).toString();
      if (text.includes('"error":{')) throw new Error(text.slice(0, 200));
      state.count++;
      for (const wake of waiting) wake();
      waiting = [];
    }
  };
  const readOn = async (): Promise<void> => {
    while (!over.aborted)
      try {
        await read();
      } catch (error) {
        if (over.aborted) return;
        if (mustGoOn && !state.broken) fail(`another client's stream broke: ${String(error)}`);
        state.broken = true;
        await new Promise((resume) => setTimeout(resume, 100));
      }
  };
  void readOn();
  return {
    get count() {
      return state.count;
    },
    get broken() {
      return state.broken;
    },
    chunk: () =>
      new Promise((settle, reject) => {
        const timer = setTimeout(() => reject(new Error("another client's stream has stopped")), hangMs);
        waiting.push(() => {
          clearTimeout(timer);
          settle();
        });
      }),
  };
}

/** Asks `/health` until it is over; returns how often it was answered. */
async function askHealth(
  { url }: AttackedServer,
  over: AbortSignal,
  fail: (sentence: string) => void,
): Promise<number> {
  let answered = 0;
  while (!over.aborted) {
    try {
      const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(hangMs) });
      await response.text();
      if (response.status === 200) answered++;
      else fail(`/health answered ${response.status}`);
    } catch (error) {
      fail(`/health was not answered: ${String(error)}`);
      return answered;
    }
    await new Promise((resume) => setTimeout(resume, 20));
  }
  return answered;
}

async function restartsOf({ url }: AttackedServer): Promise<number | undefined> {
  const health = (await (await fetch(`${url}/health`)).json()) as {
    readonly engines: readonly { readonly counters?: { readonly restarts?: number } }[];
  };
  return health.engines[0]?.counters?.restarts;
}

/** Resident memory of a process and of those that it started, in MiB. */
export function memoryMiB(pid: number): number {
  return [pid, ...childrenOf(pid)].map(residentMiB).reduce((sum, mebibytes) => sum + mebibytes, 0);
}

export function residentMiB(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    // It has ended.
    return 0;
  }
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return text === "" ? [] : text.split(" ").map(Number);
  } catch {
    return [];
  }
}

/**
 * Collects the garbage of a process and of those that it started, for at most 10 seconds or until they use at most `limitMiB`: V8 returns
 * freed pages to the system in the background, some time after a collection. Resolves with their resident memory in MiB.
 */
async function memoryAfterCollection(monitors: string, pid: number, limitMiB: number): Promise<number> {
  await collectGarbage(monitors, pid);
  for (let tries = 0; tries < 20 && memoryMiB(pid) > limitMiB; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await collectGarbage(monitors, pid);
  }
  return memoryMiB(pid);
}

/**
 * Collects the garbage of a process for at most 10 seconds or until it refers to at most `limitMiB`. Resolves with the size of its heap
 * and its buffers in MiB. Unlike resident memory, it does not contain what the allocator keeps of freed buffers of many MiB.
 */
export async function memoryInUse(monitors: string, pid: number, limitMiB = Infinity): Promise<number> {
  let used = Infinity;
  for (let tries = 0; tries < 20 && (tries === 0 || used > limitMiB); tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 500));
    await collectGarbage(monitors, pid);
    const [, , heap, , external] = readFileSync(join(monitors, String(pid)), "utf8")
      .split(" ")
      .map(Number);
    used = ((heap ?? 0) + (external ?? 0)) / 1024 ** 2;
  }
  return used;
}

/** The environment in which `memoryInUse` can collect a server's garbage. `monitors` is a folder. */
export function monitored(monitors: string, env: Readonly<Record<string, string>> = {}): Record<string, string> {
  mkdirSync(monitors, { recursive: true });
  const load = `--import ${resolve(".cache/tools/bench/stall/loop-monitor.js")}`;
  return { ...env, NODE_OPTIONS: `${env.NODE_OPTIONS ?? ""} ${load}`.trim(), TRUEWIRE_LOOP_MONITOR: monitors };
}

/** Collects the garbage of a process and of those that it started, with the help of `loop-monitor.ts`. */
async function collectGarbage(monitors: string, pid: number): Promise<void> {
  for (const one of [pid, ...childrenOf(pid)]) {
    const file = join(monitors, String(one));
    const read = (): string => {
      try {
        return readFileSync(file, "utf8").split(" ")[0] ?? "";
      } catch {
        return "";
      }
    };
    const last = read();
    writeFileSync(`${file}.collect`, "");
    try {
      process.kill(one, "SIGUSR2");
    } catch {
      continue;
    }
    // A process that has just been started may not listen to the signal yet.
    for (let tries = 0; tries < 1000 && read() === last; tries++) await new Promise((resume) => setTimeout(resume, 10));
  }
}
