import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import type { Worker } from "node:cluster";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { RestartPause } from "../engines/lifecycle/restart-pause.ts";
import type { Log } from "../server/log.ts";
import type { Peer } from "./peer.ts";
import { peerDescriptor, socketPeer } from "./socket-peer.ts";

/**
 * A worker that was told to stop is ended when it has not, so long after its answers had to end. Its last traces take their time. In
 * milliseconds.
 */
const patienceMs = 5000;
/** How often a worker is asked whether it is alive, in milliseconds, and how many questions in a row it may leave unanswered. */
const heartbeatMs = 2000;
const longestSilence = 5;

/** A running worker. */
export interface WorkerProcess {
  /** From 1 on; the one that replaces it has the same. */
  readonly number: number;
  readonly peer: Peer;
}

export interface WorkerOptions {
  /** The module that a worker runs. */
  readonly script: URL;
  readonly count: number;
  readonly log: Log;
  /** Talks to a worker that has just been started. Resolves when it serves; rejects with why it cannot. One that ends is heard of here. */
  readonly begin: (worker: WorkerProcess) => Promise<void>;
  /** Asks a worker that serves whether it is alive. Resolves when it answers. */
  readonly isAlive: (worker: WorkerProcess) => Promise<unknown>;
}

interface Running extends WorkerProcess {
  readonly process: Worker;
  /** It serves. */
  isReady: boolean;
  /** How many questions it has not answered since its last answer. */
  unanswered: number;
  /** How it ended, when it has. */
  readonly ended: Promise<string>;
}

/** The workers of a server: as many as were asked for, whatever happens to one of them. */
export class WorkerProcesses {
  readonly #options: WorkerOptions;
  readonly #running = new Map<number, Running>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #isStopping = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** Those that serve. */
  get ready(): readonly WorkerProcess[] {
    return [...this.#running.values()].filter(({ isReady }) => isReady);
  }

  /** Resolves when all serve. Rejects with the first failure, and then there is none. */
  async start(): Promise<void> {
    cluster.setupPrimary({
      exec: fileURLToPath(this.#options.script),
      args: [],
      stdio: ["ignore", "inherit", "inherit", "ipc", "pipe"],
    });
    this.#heartbeat = setInterval(() => this.#askAll(), heartbeatMs);
    const numbers = Array.from({ length: this.#options.count }, (_, at) => at + 1);
    try {
      await Promise.all(numbers.map((number) => this.#startFirst(number)));
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  /** Tells all to stop, and resolves when they have ended. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#heartbeat);
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(
      [...this.#running.values()].map(async ({ peer, process, ended }) => {
        peer.tell("worker.stop", graceMs);
        const timer = setTimeout(() => process.process.kill("SIGKILL"), graceMs + patienceMs);
        await ended;
        clearTimeout(timer);
      }),
    );
  }

  /**
   * Asks all workers whether they are alive, and ends those that do not answer any more: a worker that is stopped (SIGSTOP) or hangs keeps
   * the connections that it was given. Counts questions, not time, so that a machine that wakes from sleep ends none.
   */
  #askAll(): void {
    for (const worker of this.#running.values()) {
      if (!worker.isReady) continue;
      if (worker.unanswered >= longestSilence) {
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
    // Where the system has no descriptors left, a process that could not be started has none of these.
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

  /** A worker is gone: another one takes its place, after a pause where that happens again and again. */
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

/** A connection that was accepted, as node:cluster hands it to a worker. */
interface Handle {
  close(...more: unknown[]): void;
}

/**
 * node:cluster keeps a connection open until the worker that it was handed to has taken it, and forgets it where that worker ends before:
 * its client would wait for ever. This closes such connections. Source: lib/internal/cluster/round_robin_handle.js of Node 20, `handoff`.
 */
export function closeLostConnections(worker: ChildProcess): void {
  const handed = new Set<Handle>();
  const send = worker.send.bind(worker) as (...sent: unknown[]) => boolean;
  worker.send = (message: unknown, handle?: unknown, ...more: unknown[]): boolean => {
    if (isHandle(handle) && !handed.has(handle)) {
      handed.add(handle);
      // A worker has taken it.
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
