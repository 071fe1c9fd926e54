import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import type { Worker } from "node:cluster";
import { fileURLToPath } from "node:url";
import { RestartPause } from "../../engines/lifecycle/restart-pause.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";
import type { Log } from "../server/log.ts";
import { v8Options } from "./tune-v8.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

/** How long after its grace period a worker that does not stop is killed: it still sends its last traces. In milliseconds. */
const stopTimeoutMs = 5000;
/** The interval of heartbeats, in milliseconds, and the number of heartbeats in a row that a worker may leave unanswered. */
const heartbeatMs = 2000;
const maxUnanswered = 5;
/** How long a worker that stops may take to accept a connection that was handed to it, in milliseconds. */
const lostMs = 1000;
/** How long a worker may take to report its metrics, in milliseconds. */
const metricsMs = 2000;

/** What a worker serves. */
export interface Served {
  readonly url: string;
  readonly models: readonly ModelInfo[];
}

export interface WorkerOptions {
  /** The module of a worker. */
  readonly script: URL;
  readonly count: number;
  readonly log: Log;
  /** Called when a worker has started: makes it serve. Rejects if it cannot. */
  readonly begin: (worker: WorkerProcess) => Promise<unknown>;
  /** Returns the metrics of all workers. */
  readonly allMetrics: () => Promise<string>;
}

/** Keeps the configured number of workers running. */
export class WorkerProcesses {
  readonly #options: WorkerOptions;
  readonly #running = new Map<number, WorkerProcess>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** All workers have served: one that ends is replaced. */
  #isComplete = false;
  #isStopping = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** The workers that have a configuration, or are about to serve it. */
  get begun(): readonly WorkerProcess[] {
    return [...this.#running.values()].filter(({ hasBegun }) => hasBegun);
  }

  /** Resolves when all workers serve. If one cannot, ends the others and rejects. */
  async start(): Promise<void> {
    cluster.setupPrimary({
      exec: fileURLToPath(this.#options.script),
      args: [],
      execArgv: [...process.execArgv, ...v8Options],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#heartbeat = setInterval(() => this.#sendHeartbeats(), heartbeatMs);
    const numbers = Array.from({ length: this.#options.count }, (_, at) => at + 1);
    try {
      await Promise.all(numbers.map((number) => this.#fork(number, new RestartPause())));
    } catch (error) {
      await this.stop(0);
      throw error;
    }
    this.#isComplete = true;
  }

  /** Stops all workers, and resolves when they have ended. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#heartbeat);
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(
      [...this.#running.values()].map(async (worker) => {
        worker.send({ kind: "stop", graceMs });
        const lost = setTimeout(() => worker.closeLostConnections(), lostMs);
        const timer = setTimeout(() => worker.kill(), graceMs + stopTimeoutMs);
        await worker.ended;
        clearTimeout(lost);
        clearTimeout(timer);
      }),
    );
  }

  /**
   * Sends heartbeats, and kills workers that no longer answer: a worker that is stopped (SIGSTOP) or hangs would keep its connections.
   * Counts heartbeats, not time, so that no worker is killed when the machine wakes from sleep.
   */
  #sendHeartbeats(): void {
    for (const worker of this.#running.values()) {
      if (!worker.isReady) continue;
      if (worker.unanswered >= maxUnanswered) {
        const silentMs = worker.unanswered * heartbeatMs;
        this.#options.log.error({ worker: worker.number, silentMs }, "a worker does not answer and is ended");
        worker.kill();
        continue;
      }
      worker.unanswered++;
      worker.send({ kind: "ping" });
    }
  }

  /** Resolves when the worker serves; rejects if it cannot. */
  async #fork(number: number, pause: RestartPause): Promise<void> {
    const { begin, allMetrics } = this.#options;
    const worker = new WorkerProcess(number, cluster.fork());
    this.#running.set(number, worker);
    void worker.ended.then((how) => {
      if (this.#running.get(number) === worker) this.#running.delete(number);
      this.#replace(number, how, pause);
    });
    await new Promise<void>((resolve, reject) => {
      void worker.ended.then((how) => reject(new Error(`A worker does not serve: it ${how}.`)));
      worker.listen((message) => {
        if (message.kind === "started") begin(worker).then(() => resolve(), reject);
        else if (message.kind === "all-metrics")
          void allMetrics().then((text) => worker.send({ kind: "all-metrics", text }));
      });
    });
    worker.isReady = true;
  }

  /** Starts another worker in place of one that has ended, after a delay if that happens repeatedly. */
  #replace(number: number, how: string, pause: RestartPause): void {
    if (this.#isStopping || !this.#isComplete) return;
    const { log } = this.#options;
    const waitMs = pause.next(performance.now());
    log.error({ worker: number, ...(waitMs > 0 && { waitMs }) }, `a worker ${how}; another takes its place`);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#fork(number, pause).then(
        () => log.info({ worker: number }, "a worker has taken the place of the one that ended"),
        (error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error);
          if (!this.#isStopping) log.error({ worker: number, error: reason }, "a worker could not start");
        },
      );
    }, waitMs);
    this.#timers.add(timer);
  }
}

/** A running worker. */
export class WorkerProcess {
  /** From 1. A worker that replaces another one has the same number. */
  readonly number: number;
  /** Resolves to how the worker has ended. */
  readonly ended: Promise<string>;
  /** It serves. */
  isReady = false;
  /** A configuration was sent to it. */
  hasBegun = false;
  /** Heartbeats since its last answer. */
  unanswered = 0;
  readonly #worker: Worker;
  /** Connections that the worker has not accepted yet. */
  readonly #handed: ReadonlySet<Handle> = new Set();
  /** Of the `serve` messages that the worker has not answered. */
  readonly #serving: { readonly resolve: (served: Served) => void; readonly reject: (error: Error) => void }[] = [];
  /** Present while the worker is asked for its metrics. */
  #metrics: Promise<string> | undefined;
  #onMetrics: ((text: string) => void) | undefined;

  constructor(number: number, worker: Worker) {
    this.number = number;
    this.#worker = worker;
    // A process that could not be started, because the system has no descriptor left, is not connected.
    if (worker.process.connected) this.#handed = handedConnections(worker.process);
    this.ended = new Promise((resolve) => {
      worker.once("exit", (code, signal) => resolve(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      worker.once("error", (error) => resolve(`could not be started (${error.message})`));
    });
    void this.ended.then((how) => {
      this.closeLostConnections();
      for (const { reject } of this.#serving.splice(0)) reject(new Error(`A worker does not serve: it ${how}.`));
    });
  }

  /** Calls `heard` with each message that is not answered here. */
  listen(heard: (message: FromWorker) => void): void {
    this.#worker.on("message", (message: FromWorker) => {
      if (message.kind === "ready") this.#serving.shift()?.resolve(message);
      else if (message.kind === "failed") this.#serving.shift()?.reject(errorOf(message));
      else if (message.kind === "alive") this.unanswered = 0;
      else if (message.kind === "metrics") this.#onMetrics?.(message.text);
      else heard(message);
    });
  }

  /** Resolves when the worker serves the configuration; rejects if it cannot, or ends. */
  serve(message: Extract<ToWorker, { kind: "serve" }>): Promise<Served> {
    this.hasBegun = true;
    return new Promise((resolve, reject) => {
      this.#serving.push({ resolve, reject });
      this.send(message);
    });
  }

  /** Resolves with the metrics of the worker; "" if it does not report them in time. Requests at the same time get the same answer. */
  metrics(): Promise<string> {
    return (this.#metrics ??= new Promise<string>((resolve) => {
      this.#onMetrics = resolve;
      setTimeout(resolve, metricsMs, "").unref();
      void this.ended.then(() => resolve(""));
      this.send({ kind: "metrics" });
    }).finally(() => (this.#metrics = undefined)));
  }

  /** A message to a worker that has ended is lost. */
  send(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.process.send(message, () => {});
  }

  /**
   * Closes connections that were handed to a worker which has ended, or stops, and which it has not accepted: node:cluster keeps them open,
   * so their clients would wait forever. Source: lib/internal/cluster/round_robin_handle.js of Node 20, `handoff` and `remove`.
   */
  closeLostConnections(): void {
    for (const handle of this.#handed) handle.close();
  }

  kill(): void {
    this.#worker.process.kill("SIGKILL");
  }
}

function errorOf({ message, code, syscall }: Extract<FromWorker, { kind: "failed" }>): Error {
  return Object.assign(new Error(message), code !== undefined && { code }, syscall !== undefined && { syscall });
}

/** An accepted connection, as node:cluster hands it to a worker. */
interface Handle {
  close(...more: unknown[]): void;
}

/** Returns the connections that node:cluster hands to a worker from now on, each until it is accepted or closed. */
function handedConnections(worker: ChildProcess): ReadonlySet<Handle> {
  const handed = new Set<Handle>();
  const send = worker.send.bind(worker) as (...sent: unknown[]) => boolean;
  worker.send = (message: unknown, handle?: unknown, ...more: unknown[]): boolean => {
    if (isHandle(handle) && !handed.has(handle)) {
      handed.add(handle);
      // Called when a worker has accepted it.
      const { close } = handle;
      handle.close = (...args) => {
        handed.delete(handle);
        handle.close = close;
        close.apply(handle, args);
      };
    }
    return send(message, handle, ...more);
  };
  return handed;
}

function isHandle(value: unknown): value is Handle {
  return typeof value === "object" && value !== null && "close" in value && typeof value.close === "function";
}
