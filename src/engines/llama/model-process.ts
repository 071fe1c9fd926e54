import { fork, type ChildProcess } from "node:child_process";
import { HangWatch } from "./hang-watch.ts";
import type { InspectedPrompt } from "../../core/inspection.ts";
import { ModelOpenError } from "./model-open-error.ts";
import type { CacheMiss } from "../../core/cache-miss.ts";
import type { Observe } from "../../core/observe.ts";
import type { OpenProgress } from "./options.ts";
import type { Answer, FromModel, OpenedModel, OpenMessage, StepMessage, ToModel } from "./protocol.ts";

export interface ModelProcessListeners {
  readonly onStep: (message: StepMessage) => void;
  readonly onProgress: (progress: OpenProgress) => void;
  /** The answer to a ping. */
  readonly onPong: (turn: number | null) => void;
  readonly onCacheMissed: (id: number, miss: CacheMiss) => void;
  /** The answer to a look-up. */
  readonly onLookedUp: (id: number, answer: Answer) => void;
  /** The prompts of a request that somebody wants to see. */
  readonly onPrompts: (id: number, prompts: readonly InspectedPrompt[]) => void;
  readonly log: Observe;
  /** The process is gone, though it was not stopped; once, and only after `opened` was fulfilled. */
  readonly onGone: (how: string) => void;
}

const longestLeaveMs = 10_000;

/** A process that was stopped (SIGSTOP) does not notice that its parent is gone: whoever leaves, ends it. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** One life of the process that holds a model: it protects the server from native crashes and from running out of memory. */
export class ModelProcess {
  /** Fulfilled when the model is loaded; rejected with ModelOpenError. */
  readonly opened: Promise<OpenedModel>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #stopped = false;
  /** Why it was ended, where that was not asked for. */
  #ended: string | undefined;

  /** `loadTimeoutMs`: a load that makes no progress for so long is ended; that rejects `opened`. */
  constructor(open: OpenMessage, loadTimeoutMs: number, listeners: ModelProcessListeners) {
    // The compiled module, next to this one. No flags are handed down: a debugger's or a test runner's are not for it.
    this.#child = fork(new URL("./process/main.js", import.meta.url), {
      execArgv: [],
      // Where a debugger is installed, a llama.cpp that gives up would let it look at the process first: clients wait for that, for seconds.
      env: { GGML_NO_BACKTRACE: "1", ...process.env },
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
      let signs = 0;
      const watch = new HangWatch(loadTimeoutMs, {
        isBusy: () => !isOpen && !this.#stopped,
        // What it tells of its progress is its sign of life.
        ask: () => {},
        onHung: () => {
          this.#child.kill("SIGKILL");
          // A process that hangs in the system, on a disk that does not answer, does not go.
          gone(`made no progress for ${loadTimeoutMs / 1000} seconds and was ended`);
        },
      });
      watch.start();
      this.#child.on("message", (message: FromModel) => {
        if (!isOpen) watch.sign(signs++);
        switch (message.type) {
          case "step":
            listeners.onStep(message);
            break;
          case "pong":
            listeners.onPong(message.turn);
            break;
          case "cache-missed":
            listeners.onCacheMissed(message.id, message.miss);
            break;
          case "looked-up":
            listeners.onLookedUp(message.id, message.answer);
            break;
          case "prompts":
            listeners.onPrompts(message.id, message.prompts);
            break;
          case "progress":
            listeners.onProgress(message.progress);
            break;
          case "log":
            listeners.log(message.line, message.level);
            break;
          case "ready":
            isOpen = true;
            watch.stop();
            resolve(message.opened);
            break;
          case "left":
            void this.stop();
            break;
          case "failed":
            if (isOpen) return this.end(`failed (${message.message})`);
            reject(new ModelOpenError(message.reason, message.message));
            void this.stop();
        }
      });
      const gone = (way: string, cause?: unknown): void => {
        const how = this.#ended ?? way;
        const expected = this.#stopped;
        this.#stopped = true;
        watch.stop();
        if (!isOpen)
          reject(new ModelOpenError("load-failed", `${open.model} could not be loaded: its process ${how}.`, cause));
        else if (!expected) listeners.onGone(how);
      };
      this.#child.once("exit", (code, signal) => gone(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      this.#child.once("error", (error) => gone("could not be started", error));
    });
    // Whoever made this awaits `opened`; a rejection before that must not end the server.
    this.opened.catch(() => {});
    this.send(open);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: ToModel): void {
    // A message to a process that has just died is lost with it: `onGone` tells.
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /**
   * Sends a long text as pieces, which the message that is made of the last one follows; others have their turn between them. Stops where
   * `isWanted` says so. Rejects with what `pieces` throws.
   */
  async sendInPieces(
    id: number,
    pieces: Iterator<string, void, undefined>,
    isWanted: () => boolean,
    last: (text: string) => ToModel,
  ): Promise<void> {
    let text = "";
    for (let step = pieces.next(); step.done !== true; step = pieces.next()) {
      if (text !== "") this.send({ type: "piece", id, text });
      text = step.value;
      await new Promise((resolve) => setImmediate(resolve));
      if (!isWanted()) return;
    }
    this.send(last(text));
  }

  /** Ends the process since something is wrong with it: `onGone` is told `how`. */
  end(how: string): void {
    this.#ended = how;
    this.#child.kill("SIGKILL");
  }

  /** Lets the process write what is to outlast it, then ends it: after ten seconds in any case. Resolves when it is gone. */
  async leave(): Promise<void> {
    this.#stopped = true;
    this.send({ type: "leave" });
    const timer = setTimeout(() => void this.stop(), longestLeaveMs);
    await this.#exited;
    clearTimeout(timer);
  }

  /** Ends the process now; it holds nothing that would have to be saved. Resolves when it is gone. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#child.kill("SIGKILL");
    return this.#exited;
  }
}
