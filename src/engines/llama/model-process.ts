import { fork, type ChildProcess } from "node:child_process";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { EngineLifecycle } from "../lifecycle/engine-lifecycle.ts";
import { RestartPause } from "../lifecycle/restart-pause.ts";
import { ModelOpenError } from "./model-open-error.ts";
import type { OpenProgress } from "./options.ts";
import type { FromModel, OpenedModel, OpenModelMessage, ToModel } from "./protocol.ts";

/** The messages of an open model, which its engine handles. */
export type ModelMessage = Extract<
  FromModel,
  { readonly type: "step" | "pong" | "cache-missed" | "looked-up" | "prompts" }
>;

export interface ModelProcessListeners {
  readonly onMessage: (message: ModelMessage) => void;
  /** The process ended without being stopped. Called once, and only after `opened` was fulfilled. `how`: "exited with code 1". */
  readonly onGone: (how: string) => void;
  readonly onProgress?: (progress: OpenProgress) => void;
  readonly log: LogListener;
}

const maxLeaveMs = 10_000;

/** Of V8's young generation, which has 16 by default: with a model of 15M parameters, the process takes 10 MiB less. */
const maxSemiSpaceMiB = 1;
/**
 * Settings of glibc's allocator; other systems ignore them. It returns allocations of at least 128 KiB to the system as soon as they are freed
 * (mallopt(3)): without the variable, it raises the limit up to 32 MiB, and keeps what loading a model has used, 32 MiB with a model of 15M
 * parameters. And large allocations, the weights and the KV cache, are in huge pages where the system grants them on request ("Memory
 * Allocation Tunables" in glibc's manual): with eight streams of a 135M model, a token takes 2 % less.
 */
const ofGlibc = { MALLOC_MMAP_THRESHOLD_: "131072", GLIBC_TUNABLES: "glibc.malloc.hugetlb=1" };

/** A process that was stopped with SIGSTOP does not notice that its parent is gone, so the parent kills it. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A child process that holds a model. It protects the server from native crashes and from running out of memory. */
export class ModelProcess {
  /** Fulfilled when the model is loaded; rejected with `ModelOpenError`. */
  readonly opened: Promise<OpenedModel>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #stopped = false;
  #usesGpu = false;
  #crashed = false;
  /** Why the process was killed, for `onGone`. */
  #killedBecause: string | undefined;

  /** `loadTimeoutMs`: a load that makes no progress for this long is killed, and `opened` is rejected. */
  constructor(open: OpenModelMessage, loadTimeoutMs: number, listeners: ModelProcessListeners) {
    // The compiled module, next to this one. The flags of a debugger or test runner are not passed on.
    this.#child = fork(new URL("./process/main.js", import.meta.url), {
      execArgv: [`--max-semi-space-size=${maxSemiSpaceMiB}`],
      // Where a debugger is installed, an aborting llama.cpp would print a backtrace first, which keeps clients waiting for seconds.
      env: { GGML_NO_BACKTRACE: "1", ...ofGlibc, ...process.env },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n")) if (line.trim() !== "") listeners.log(line, "info");
    });
    running.add(this.#child);
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", () => {
        running.delete(this.#child);
        resolve();
      });
      this.#child.once("error", () => resolve());
    });
    this.opened = new Promise((resolve, reject) => {
      let isOpen = false;
      let messages = 0;
      const gone = (way: string, cause?: unknown): void => {
        const how = this.#killedBecause ?? way;
        const isExpected = this.#stopped;
        this.#crashed = !isExpected;
        this.#stopped = true;
        watch.stop();
        if (!isOpen)
          reject(new ModelOpenError("load-failed", `${open.model} could not be loaded: its process ${how}.`, cause));
        else if (!isExpected) listeners.onGone(how);
      };
      const watch = new HangWatch(loadTimeoutMs, {
        isBusy: () => !isOpen && !this.#stopped,
        // Every message while the model is loaded shows progress.
        ping: () => {},
        onHung: () => {
          this.#child.kill("SIGKILL");
          // A process that hangs in the kernel, on a disk that does not answer, does not exit.
          gone(`made no progress for ${loadTimeoutMs / 1000} seconds and was ended`);
        },
      });
      watch.start();
      this.#child.on("message", (message: FromModel) => {
        if (!isOpen) watch.sign(messages++);
        switch (message.type) {
          case "progress":
            listeners.onProgress?.(message.progress);
            break;
          case "log":
            listeners.log(message.line, message.level);
            break;
          case "uses-gpu":
            this.#usesGpu = true;
            break;
          case "ready":
            isOpen = true;
            this.#usesGpu = message.opened.device.gpu;
            watch.stop();
            resolve(message.opened);
            break;
          case "left":
            void this.stop();
            break;
          case "failed":
            if (isOpen) return this.kill(`failed (${message.message})`);
            reject(new ModelOpenError(message.reason, message.message));
            void this.stop();
            break;
          default:
            listeners.onMessage(message);
        }
      });
      this.#child.once("exit", (code, signal) => gone(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      this.#child.once("error", (error) => gone("could not be started", error));
    });
    // The caller awaits `opened`; a rejection before that must not end the server.
    this.opened.catch(() => {});
    this.send(open);
  }

  /** The process has ended by itself. */
  get crashed(): boolean {
    return this.#crashed;
  }

  /** The model is on a GPU, or was being loaded for one. */
  get usesGpu(): boolean {
    return this.#usesGpu;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: ToModel): void {
    // A message to a process that has just died is lost; `onGone` follows.
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /**
   * Sends a long text in chunks, the last one in the message that `last` makes, and yields to the event loop between them. Stops when
   * `isWanted` returns false. Rejects with the error of `chunks`.
   */
  async sendChunks(
    id: number,
    chunks: Iterator<string, void, undefined>,
    isWanted: () => boolean,
    last: (text: string) => ToModel,
  ): Promise<void> {
    let text = "";
    for (let step = chunks.next(); step.done !== true; step = chunks.next()) {
      if (text !== "") this.send({ type: "piece", id, text });
      text = step.value;
      await new Promise((resolve) => setImmediate(resolve));
      if (!isWanted()) return;
    }
    this.send(last(text));
  }

  /** Kills a faulty process. `how` is passed to `onGone`. */
  kill(how: string): void {
    this.#killedBecause = how;
    this.#child.kill("SIGKILL");
  }

  /** Lets the process persist its prompt cache, for at most ten seconds, and ends it. Resolves when the process has exited. */
  async leave(): Promise<void> {
    this.#stopped = true;
    this.send({ type: "leave" });
    const timer = setTimeout(() => void this.stop(), maxLeaveMs);
    await this.#exited;
    clearTimeout(timer);
  }

  /** Ends the process immediately. Resolves when it has exited. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#child.kill("SIGKILL");
    return this.#exited;
  }
}

/** Requests wait for a restart that is at most this far away; otherwise they are rejected with `Retry-After`. */
const maxWaitMs = 2000;

export interface RestartingProcessOptions {
  readonly open: OpenModelMessage;
  readonly loadTimeoutMs: number;
  /** Set to ready, restarting, or failed until a later restart. */
  readonly lifecycle: Pick<EngineLifecycle<number>, "state" | "setState">;
  readonly listeners: ModelProcessListeners;
  /** The process is ready again. */
  readonly onReady: (opened: OpenedModel) => void;
  /** The next restart is too far away for requests to wait. */
  readonly onLate: (message: string) => void;
}

/** A model's process that is started again when it crashes: immediately, or after a pause if it crashes repeatedly. */
export class RestartingProcess {
  readonly #options: RestartingProcessOptions;
  readonly #pause = new RestartPause();
  #current: ModelProcess;
  #open: OpenModelMessage;
  #restarts = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Time of the next restart, by `performance.now`. */
  #restartAt = 0;

  /** `first`: a process that is ready. */
  constructor(first: ModelProcess, options: RestartingProcessOptions) {
    this.#current = first;
    this.#options = options;
    this.#open = options.open;
  }

  get current(): ModelProcess {
    return this.#current;
  }

  /** Number of restarts. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Seconds until the next restart, at least 1. */
  get restartIn(): number {
    return Math.max(1, Math.ceil((this.#restartAt - performance.now()) / 1000));
  }

  /** An answer is complete: the next crash counts as the first one. */
  succeeded(): void {
    this.#pause.succeeded();
  }

  /** Restarts the process after a crash. */
  restart(): void {
    const { lifecycle, listeners, onLate } = this.#options;
    const pause = this.#pause.next(performance.now());
    this.#restartAt = performance.now() + pause;
    this.#restarts++;
    if (this.#pause.crashes > 1) this.#open = withoutGpu(this.#open, this.#current, listeners.log);
    if (pause <= maxWaitMs) lifecycle.setState("restarting", restarting);
    else {
      const message = `The model's process has failed ${this.#pause.crashes} times in a row; it is started again after ${pause / 1000} seconds.`;
      listeners.log(message, "warn");
      lifecycle.setState("failed", message);
      onLate(message);
    }
    this.#timer = setTimeout(() => void this.#start(), pause);
  }

  /** Cancels a pending restart. */
  cancelRestart(): void {
    clearTimeout(this.#timer);
  }

  async #start(): Promise<void> {
    const { loadTimeoutMs, lifecycle, listeners, onReady } = this.#options;
    this.#current = new ModelProcess(this.#open, loadTimeoutMs, listeners);
    lifecycle.setState("restarting", restarting);
    let opened: OpenedModel;
    try {
      opened = await this.#current.opened;
    } catch (error) {
      if (lifecycle.state === "closed") return;
      listeners.log(error instanceof Error ? error.message : String(error), "warn");
      return this.restart();
    }
    lifecycle.setState("ready");
    onReady(opened);
  }
}

/**
 * How to open a model whose process has crashed: on the processor if it was on a GPU, which may be lost (a driver that was reset, a laptop that
 * slept), unless its layers were configured. Loading the model again tries the GPU again.
 */
export function withoutGpu(open: OpenModelMessage, { usesGpu }: ModelProcess, log: LogListener): OpenModelMessage {
  if (!usesGpu || open.gpu !== "auto") return open;
  log(`${open.model} is loaded for the processor now, since its process crashes on the GPU.`, "warn");
  return { ...open, gpu: "off", noGpu: "its process crashed on the GPU; to try again, unload the model and load it" };
}

const restarting = "The model's process crashed and is being restarted.";

/** A process hangs after this many checks without a sign of progress. */
const maxChecks = 4;

export interface WatchedProcess {
  /** The process has work. */
  readonly isBusy: () => boolean;
  /** Requests a sign of progress: `sign` is to be called with the response. */
  readonly ping: () => void;
  readonly onHung: () => void;
}

/**
 * Detects a process that has work and makes no progress: it does not respond, or its turn number does not change. Time is counted in
 * checks, so that a pause of the server itself (a debugger, a suspended machine) is not mistaken for a hang.
 */
export class HangWatch {
  readonly #watched: WatchedProcess;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;
  #silentChecks = 0;
  /** The turn of the last sign, and how many signs since had the same turn. */
  #turn: number | null = null;
  #sameTurns = 0;

  constructor(timeoutMs: number, watched: WatchedProcess) {
    this.#watched = watched;
    this.#intervalMs = timeoutMs / maxChecks;
  }

  /** Starts watching, for as long as the process is busy. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#silentChecks = 0;
    this.#sameTurns = 0;
    this.#turn = null;
    this.#watched.ping();
    this.#timer = setInterval(() => this.#check(), this.#intervalMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** The process responded. `turn`: number of its current turn; null if it has no work. */
  sign(turn: number | null): void {
    this.#silentChecks = 0;
    if (turn === null || turn !== this.#turn) this.#sameTurns = 0;
    else this.#sameTurns++;
    this.#turn = turn;
  }

  #check(): void {
    if (!this.#watched.isBusy()) return this.stop();
    this.#silentChecks++;
    if (this.#silentChecks >= maxChecks || this.#sameTurns >= maxChecks) {
      this.stop();
      this.#watched.onHung();
    } else this.#watched.ping();
  }
}
