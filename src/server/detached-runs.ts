import type { Engine } from "../core/engine.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { DetachedAnswer, DetachedRun } from "../apis/port-state.ts";
import { beatMs } from "../apis/port-state.ts";
import { Departure } from "./exchange.ts";
import type { Log } from "./log.ts";
import { runGeneration } from "./run-generation.ts";

/** So many at once: their clients do not wait, so nothing else bounds them. */
const mostRuns = 1000;
/** The events of a run are held until they are kept, in characters. */
const longestAnswer = 64 * 1024 * 1024;

export interface DetachedRequest {
  readonly engine: Pick<Engine, "generate">;
  readonly request: GenerationRequest;
  readonly answer: DetachedAnswer;
  /** Of the client whose answer it is. */
  readonly owner: string;
}

/** What is read of a run at once, in characters, or one piece that is longer. */
const mostRead = 64 * 1024;

/** A run of this process. */
export interface OwnRun extends DetachedRun {
  /** What was written from piece `from` on, as soon as there is any, and where to read on; "": that was all. */
  read(from: number): Promise<ReadRun>;
}

export interface ReadRun {
  readonly text: string;
  readonly next: number;
}

/** Finds a run of another process of this server. `key`: as `DetachedRuns.own` takes it. */
export type FindElsewhere = (key: string) => Promise<DetachedRun | undefined>;

/** The answers that are being generated without a client. */
export class DetachedRuns {
  readonly #runs = new Map<string, Run>();
  readonly #elsewhere: FindElsewhere | undefined;
  #idle: (() => void)[] = [];

  /** `elsewhere`: where other processes generate, too. */
  constructor(elsewhere?: FindElsewhere) {
    this.#elsewhere = elsewhere;
  }

  /** Resolves when the answer is kept as one that has begun. */
  async start(detached: DetachedRequest, log: Log): Promise<DetachedRun> {
    if (this.#runs.size >= mostRuns) throw tooMany();
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

  /** Ends those that still run, as failed; resolves when there is none. */
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
  readonly #pieces: string[];
  #characters = 0;
  #isCancelled = false;
  #isOver = false;
  #waiting: (() => void)[] = [];
  #done: Promise<void> | undefined;

  constructor(detached: DetachedRequest, log: Log) {
    this.#detached = detached;
    this.#log = log;
    this.#pieces = [detached.answer.opening];
  }

  async *pieces(): AsyncGenerator<string> {
    for (let from = 0; ;) {
      const { text, next } = await this.read(from);
      if (text === "") return;
      yield text;
      from = next;
    }
  }

  async read(from: number): Promise<ReadRun> {
    while (from >= this.#pieces.length && !this.#isOver)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let text = "";
    let next = from;
    for (; next < this.#pieces.length && text.length < mostRead; next++) text += this.#pieces[next] ?? "";
    return { text, next };
  }

  async cancel(): Promise<void> {
    if (!this.#isOver) this.#isCancelled = true;
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
    const { engine, request, answer } = this.#detached;
    const { writer } = answer;
    // One after the other, and none behind the end: it would tell that the answer still goes on.
    let beating = Promise.resolve();
    const timer = setInterval(() => {
      beating = beating.then(() => this.#beat());
    }, beatMs);
    try {
      const end = await runGeneration(engine, request, this.#departure, (events) => {
        this.#add(writer.write(events));
        if (this.#characters > longestAnswer) this.stop();
        return undefined;
      }).finally(() => clearInterval(timer));
      await beating;
      if (end.kind === "client-gone") this.#add(writer.write([{ type: "end", end }]));
    } catch (error) {
      // A defect of the writer: the answer has no end of its own, and is stored as failed.
      this.#log.error({ response: answer.id, cause: String(error) }, "the answer could not be written");
      await beating;
    }
    try {
      await answer.end(this.#pieces.join(""), this.#isCancelled);
    } catch (error) {
      this.#log.error({ response: answer.id, cause: String(error) }, "the answer could not be kept");
    }
    this.#isOver = true;
    this.#wake();
  }

  async #beat(): Promise<void> {
    try {
      if (!(await this.#detached.answer.beat())) return;
      this.#isCancelled = true;
      this.stop();
    } catch (error) {
      this.#log.warn({ response: this.#detached.answer.id, cause: String(error) }, "the store cannot be reached");
    }
  }

  #add(text: string): void {
    if (text === "") return;
    this.#pieces.push(text);
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
