import { FailureError, loggedError } from "../core/failure.ts";
import type { DetachedAnswer, DetachedRun } from "../apis/port-state.ts";
import { beatMs } from "../apis/port-state.ts";
import { Departure } from "./exchange.ts";
import type { Log } from "./log.ts";
import { runGeneration } from "./run-generation.ts";
import type { GenerationRun } from "./run-generation.ts";

/** The maximum number of runs at a time: their clients do not wait, so nothing else limits them. */
const maxRuns = 1000;
/** The events of a run are held in memory until they are stored. In characters. */
const maxAnswerLength = 64 * 1024 * 1024;
/** The length of text that one `read` returns, unless a single chunk is longer. In characters. */
const maxReadLength = 64 * 1024;

export interface DetachedRequest {
  readonly run: GenerationRun;
  readonly answer: DetachedAnswer;
  /** The owner of the answer in the store. */
  readonly owner: string;
  /** Called once, when the generation has ended. */
  readonly onEnd?: () => void;
}

/** A run of this process. */
export interface OwnRun extends DetachedRun {
  /** Returns the text from chunk `from` on, as soon as there is any, and the next chunk to read; "": the run has ended. */
  read(from: number): Promise<ReadRun>;
}

export interface ReadRun {
  readonly text: string;
  readonly next: number;
}

/** Finds a run of another process of this server. `key`: as for `DetachedRuns.own`. */
export type FindElsewhere = (key: string) => Promise<DetachedRun | undefined>;

/** Responses that are generated in the background, without a client. */
export class DetachedRuns {
  readonly #runs = new Map<string, Run>();
  readonly #elsewhere: FindElsewhere | undefined;
  #idle: (() => void)[] = [];

  /** `elsewhere`: finds runs of other processes. */
  constructor(elsewhere?: FindElsewhere) {
    this.#elsewhere = elsewhere;
  }

  /** Resolves when the store knows that the response is in progress. */
  async start(detached: DetachedRequest, log: Log): Promise<DetachedRun> {
    if (this.#runs.size >= maxRuns) throw tooMany();
    const key = keyOf(detached.owner, detached.answer.id);
    const run = new Run(detached, log);
    this.#runs.set(key, run);
    try {
      await detached.answer.beat();
    } catch (error) {
      this.#forget(key);
      throw error;
    }
    void run.go().finally(() => this.#forget(key));
    return run;
  }

  async find(owner: string, id: string): Promise<DetachedRun | undefined> {
    const key = keyOf(owner, id);
    return this.#runs.get(key) ?? (await this.#elsewhere?.(key));
  }

  own(key: string): OwnRun | undefined {
    return this.#runs.get(key);
  }

  /** Ends all runs as failed; resolves when none is left. */
  stop(): Promise<void> {
    for (const run of this.#runs.values()) run.stop();
    if (this.#runs.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #forget(key: string): void {
    this.#runs.delete(key);
    if (this.#runs.size === 0) for (const wake of this.#idle.splice(0)) wake();
  }
}

function keyOf(owner: string, id: string): string {
  return `${owner} ${id}`;
}

class Run implements OwnRun {
  readonly #detached: DetachedRequest;
  readonly #log: Log;
  readonly #departure = new Departure();
  readonly #chunks: string[];
  #characters = 0;
  #isCancelled = false;
  #hasEnded = false;
  #waiting: (() => void)[] = [];
  #done: Promise<void> | undefined;

  constructor(detached: DetachedRequest, log: Log) {
    this.#detached = detached;
    this.#log = log;
    this.#chunks = [detached.answer.opening];
  }

  async *events(): AsyncGenerator<string> {
    for (let from = 0; ;) {
      const { text, next } = await this.read(from);
      if (text === "") return;
      yield text;
      from = next;
    }
  }

  async read(from: number): Promise<ReadRun> {
    while (from >= this.#chunks.length && !this.#hasEnded)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let text = "";
    let next = from;
    for (; next < this.#chunks.length && text.length < maxReadLength; next++) text += this.#chunks[next] ?? "";
    return { text, next };
  }

  async cancel(): Promise<void> {
    if (!this.#hasEnded) this.#isCancelled = true;
    this.stop();
    await this.#done;
  }

  stop(): void {
    this.#departure.happen();
  }

  /** Never rejects. */
  go(): Promise<void> {
    return (this.#done ??= this.#generate());
  }

  async #generate(): Promise<void> {
    const { run, answer, onEnd } = this.#detached;
    const { writer } = answer;
    // One after the other, and none after the end: it would report the answer as still in progress.
    let beating = Promise.resolve();
    const timer = setInterval(() => {
      beating = beating.then(() => this.#beat());
    }, beatMs);
    try {
      const end = await runGeneration(run, this.#departure, (events) => {
        this.#add(writer.write(events));
        if (this.#characters > maxAnswerLength) this.stop();
        return undefined;
      }).finally(() => {
        clearInterval(timer);
        onEnd?.();
      });
      await beating;
      if (end.kind === "client-gone") this.#add(writer.write([{ type: "end", end }]));
    } catch (error) {
      // A defect of the writer: the answer has no end, and is stored as failed.
      this.#log.error({ response: answer.id, cause: loggedError(error) }, "the answer could not be written");
      await beating;
    }
    try {
      await answer.end(this.#chunks.join(""), this.#isCancelled);
    } catch (error) {
      this.#log.error({ response: answer.id, cause: loggedError(error) }, "the answer could not be kept");
    }
    this.#hasEnded = true;
    this.#wake();
  }

  async #beat(): Promise<void> {
    try {
      if (!(await this.#detached.answer.beat())) return;
      this.#isCancelled = true;
      this.stop();
    } catch (error) {
      this.#log.warn({ response: this.#detached.answer.id, cause: loggedError(error) }, "the store cannot be reached");
    }
  }

  #add(text: string): void {
    if (text === "") return;
    this.#chunks.push(text);
    this.#characters += text.length;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

function tooMany(): FailureError {
  return new FailureError({
    kind: "overloaded",
    message: "Too many responses are being generated in the background. Please try again later.",
    status: 503,
    param: null,
    code: null,
    retryAfterSeconds: 5,
  });
}
