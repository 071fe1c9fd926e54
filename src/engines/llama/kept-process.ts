import type { Observe } from "../../core/observe.ts";
import type { EngineLifecycle } from "../lifecycle/engine-lifecycle.ts";
import { RestartPause } from "../lifecycle/restart-pause.ts";
import { ModelProcess, type ModelProcessListeners } from "./model-process.ts";
import type { OpenMessage } from "./protocol.ts";

/** Requests wait for a restart that is this near; for a later one they are refused with the time to retry. */
const worthWaitingMs = 2000;

export interface KeptProcessOptions {
  readonly open: OpenMessage;
  readonly loadTimeoutMs: number;
  /** Says when the process is ready, restarting, or failed until a later restart. */
  readonly lifecycle: Pick<EngineLifecycle<number>, "state" | "become">;
  readonly listeners: () => ModelProcessListeners;
  readonly log: Observe;
  /** It is ready again. */
  readonly onReady: () => void;
  /** It is started again so late that nobody should wait. */
  readonly onLate: (message: string) => void;
}

/** A model's process, started again when it crashes: at once, or later where it crashes again and again. */
export class KeptProcess {
  readonly #options: KeptProcessOptions;
  readonly #pause = new RestartPause();
  #current: ModelProcess;
  #restarts = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When it is started again, by the clock of `performance.now`. */
  #restartAt = 0;

  /** `first`: one that is ready. */
  constructor(first: ModelProcess, options: KeptProcessOptions) {
    this.#current = first;
    this.#options = options;
  }

  get current(): ModelProcess {
    return this.#current;
  }

  /** How often it was started again. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Whole seconds until it is started again, one at least. */
  get restartIn(): number {
    return Math.max(1, Math.ceil((this.#restartAt - performance.now()) / 1000));
  }

  /** It did what it is for: its next crash is the first again. */
  succeeded(): void {
    this.#pause.succeeded();
  }

  /** It crashed: it is started again. */
  restart(): void {
    const { lifecycle, log, onLate } = this.#options;
    const pause = this.#pause.next(performance.now());
    this.#restartAt = performance.now() + pause;
    this.#restarts++;
    if (pause <= worthWaitingMs) lifecycle.become("restarting", restarting);
    else {
      const message = `The model's process has failed ${this.#pause.crashes} times in a row; it is started again after ${pause / 1000} seconds.`;
      log(message, "warn");
      lifecycle.become("failed", message);
      onLate(message);
    }
    this.#timer = setTimeout(() => void this.#start(), pause);
  }

  /** It is not started again after all. */
  stopWaiting(): void {
    clearTimeout(this.#timer);
  }

  async #start(): Promise<void> {
    const { open, loadTimeoutMs, lifecycle, listeners, log, onReady } = this.#options;
    this.#current = new ModelProcess(open, loadTimeoutMs, listeners());
    lifecycle.become("restarting", restarting);
    try {
      await this.#current.opened;
    } catch (error) {
      if (lifecycle.state === "closed") return;
      log(error instanceof Error ? error.message : String(error), "warn");
      return this.restart();
    }
    lifecycle.become("ready");
    onReady();
  }
}

const restarting = "The model's process crashed and is being restarted.";
