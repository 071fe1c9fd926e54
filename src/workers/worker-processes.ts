import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import type { Worker } from "node:cluster";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { RestartPause } from "../engines/lifecycle/restart-pause.ts";
import type { Log } from "../server/log.ts";
import type { Peer } from "./peer.ts";
import { peerDescriptor, socketPeer } from "./socket-peer.ts";

/** How long after its grace period a worker that does not stop is killed: it still sends its last traces. In milliseconds. */
const stopTimeoutMs = 5000;
/** The interval of heartbeats, in milliseconds, and the number of heartbeats in a row that a worker may leave unanswered. */
const heartbeatMs = 2000;
const maxUnanswered = 5;

/** A running worker. */
export interface WorkerProcess {
  /** From 1. A worker that replaces another one has the same number. */
  readonly number: number;
  readonly peer: Peer;
}

export interface WorkerOptions {
  /** The module of a worker. */
  readonly script: URL;
  readonly count: number;
  readonly log: Log;
  /** Initializes a started worker. Resolves when it serves; rejects if it cannot. */
  readonly begin: (worker: WorkerProcess) => Promise<void>;
  /** Sends a heartbeat. Resolves when the worker answers. */
  readonly isAlive: (worker: WorkerProcess) => Promise<unknown>;
}

interface Running extends WorkerProcess {
  readonly process: Worker;
  /** It serves. */
  isReady: boolean;
  /** Heartbeats since its last answer. */
  unanswered: number;
  /** Resolves to how the worker has ended. */
  readonly ended: Promise<string>;
}

/** Keeps the configured number of workers running. */
export class WorkerProcesses {
  readonly #options: WorkerOptions;
  readonly #running = new Map<number, Running>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #isStopping = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** The workers that serve. */
  get ready(): readonly WorkerProcess[] {
    return [...this.#running.values()].filter(({ isReady }) => isReady);
  }

  /** Resolves when all workers serve. If one fails to start, ends the others and rejects. */
  async start(): Promise<void> {
    cluster.setupPrimary({
      exec: fileURLToPath(this.#options.script),
      args: [],
      stdio: ["ignore", "inherit", "inherit", "ipc", "pipe"],
    });
    this.#heartbeat = setInterval(() => this.#sendHeartbeats(), heartbeatMs);
    const numbers = Array.from({ length: this.#options.count }, (_, at) => at + 1);
    try {
      await Promise.all(numbers.map((number) => this.#startFirst(number)));
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  /** Stops all workers, and resolves when they have ended. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#heartbeat);
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(
      [...this.#running.values()].map(async ({ peer, process, ended }) => {
        peer.notify("worker.stop", graceMs);
        const timer = setTimeout(() => process.process.kill("SIGKILL"), graceMs + stopTimeoutMs);
        await ended;
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
        worker.process.process.kill("SIGKILL");
        continue;
      }
      worker.unanswered++;
      this.#options.isAlive(worker).then(
        () => (worker.unanswered = 0),
        () => {},
      );
    }
  }

  async #startFirst(number: number): Promise<void> {
    const pause = new RestartPause();
    const worker = this.#fork(number);
    const how = worker.ended.then((how) => {
      throw new Error(`A worker does not serve: it ${how}.`);
    });
    await Promise.race([this.#options.begin(worker), how]);
    worker.isReady = true;
    void worker.ended.then((how) => this.#replace(worker, how, pause));
  }

  #fork(number: number): Running {
    const process = cluster.fork();
    const child = process.process;
    // If the system has no descriptors left, a process that could not be started has no socket.
    const [socket = new Socket()] = ((child.stdio as unknown[] | undefined) ?? []).slice(peerDescriptor) as Socket[];
    if (child.connected) closeLostConnections(child);
    const ended = new Promise<string>((resolve) => {
      process.once("exit", (code, signal) => resolve(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      process.once("error", (error) => {
        socket.destroy();
        resolve(`could not be started (${error.message})`);
      });
    });
    const peer = socketPeer(socket);
    const worker: Running = { number, peer, process, ended, isReady: false, unanswered: 0 };
    this.#running.set(number, worker);
    void ended.then(() => {
      if (this.#running.get(number) === worker) this.#running.delete(number);
    });
    return worker;
  }

  /** Starts another worker in place of one that has ended, after a delay if that happens repeatedly. */
  #replace({ number }: Running, how: string, pause: RestartPause): void {
    if (this.#isStopping) return;
    const { log } = this.#options;
    const waitMs = pause.next(performance.now());
    log.error({ worker: number, ...(waitMs > 0 && { waitMs }) }, `a worker ${how}; another takes its place`);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void this.#startNext(number, pause);
    }, waitMs);
    this.#timers.add(timer);
  }

  async #startNext(number: number, pause: RestartPause): Promise<void> {
    const worker = this.#fork(number);
    void worker.ended.then((how) => this.#replace(worker, how, pause));
    try {
      await this.#options.begin(worker);
      worker.isReady = true;
      this.#options.log.info({ worker: number }, "a worker has taken the place of the one that ended");
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.#isStopping) this.#options.log.error({ worker: number, error: reason }, "a worker could not start");
      worker.process.process.kill("SIGKILL");
    }
  }
}

/** An accepted connection, as node:cluster hands it to a worker. */
interface Handle {
  close(...more: unknown[]): void;
}

/**
 * Closes connections that were handed to a worker which ended before it accepted them: node:cluster keeps them open, so their clients would
 * wait forever. Source: lib/internal/cluster/round_robin_handle.js of Node 20, `handoff`.
 */
export function closeLostConnections(worker: ChildProcess): void {
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
  worker.once("exit", () => {
    for (const handle of handed) handle.close();
  });
}

function isHandle(value: unknown): value is Handle {
  return typeof value === "object" && value !== null && "close" in value && typeof value.close === "function";
}
