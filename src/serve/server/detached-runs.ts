import { FailureError, loggedError } from "../../wire/core/failure.ts";
import type { DetachedAnswer } from "../../wire/apis/port-state.ts";
import { beatMs } from "../../wire/apis/port-state.ts";
import { Departure } from "./exchange.ts";
import type { Log } from "./log.ts";
import { runGeneration } from "./run-generation.ts";
import type { GenerationRun } from "./run-generation.ts";
import type { ResumableStream } from "./resumable-stream.ts";
import { WrittenText } from "./written-text.ts";
import type { FoundRun, RunState } from "./written-text.ts";

/** The maximum number of runs at a time: their clients do not wait, so nothing else limits them. */
const maxRuns = 1000;
/** The events of a run are held in memory until they are stored. In characters. */
const maxAnswerLength = 64 * 1024 * 1024;
/** What all resumable streams keep together in a process, in characters. */
const maxKept = 64 * 1024 * 1024;

export interface DetachedRequest {
  readonly run: GenerationRun;
  readonly answer: DetachedAnswer;
  /** The owner of the answer in the store. */
  readonly owner: string;
  /** Called once, when the generation has ended. */
  readonly onEnd?: () => void;
}

/** Answers that are generated without a client: responses in the background, and streams that a client may resume. */
export class DetachedRuns {
  readonly #runs = new Map<string, BackgroundRun | ResumableStream>();
  /** In the order in which they began. */
  readonly #streams = new Set<ResumableStream>();
  /** The streams that had ended or were without a client at their last change. */
  readonly #droppable = new Set<ResumableStream>();
  /** The size of all streams, in characters. */
  #kept = 0;
  /** The number of streams that continue without a client. */
  #lost = 0;
  #isClosing = false;
  #idle: (() => void)[] = [];

  /** Resolves when the store knows that the response is in progress. */
  async start(detached: DetachedRequest, log: Log): Promise<FoundRun> {
    if (this.#runs.size - this.#streams.size >= maxRuns) throw tooMany();
    const key = keyOf(detached.owner, detached.answer.id);
    const run = new BackgroundRun(detached, log);
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

  /** Finds a run of this process. */
  find(owner: string, id: string): FoundRun | undefined {
    return this.#runs.get(keyOf(owner, id));
  }

  /** Lets clients of the owner resume a stream by the id of its request, until it is forgotten. */
  addStream(owner: string, id: string, stream: ResumableStream): void {
    const key = keyOf(owner, id);
    this.#runs.set(key, stream);
    this.#streams.add(stream);
    let [size, wasLost] = [0, false];
    const measure = (): void => {
      this.#kept += stream.size - size;
      size = stream.size;
    };
    stream.onChange = () => {
      measure();
      const { isLost } = stream;
      const isNewlyLost = isLost && !wasLost;
      if (isLost !== wasLost) this.#lost += isLost ? 1 : -1;
      wasLost = isLost;
      if (isLost || stream.hasEnded) this.#droppable.add(stream);
      if (stream.isForgotten) {
        this.#streams.delete(stream);
        this.#droppable.delete(stream);
        this.#forget(key);
      } else if (isNewlyLost && (this.#isClosing || this.#lost > maxRuns)) stream.stop();
      // A stream that has just ended is not dropped before its reader has had a turn.
      else if (this.#kept > maxKept && !(stream.hasEnded && stream.hasReaders)) {
        this.#stopOldest();
        if (this.#kept > maxKept) stream.dropRead();
        measure();
      }
    };
  }

  /** Drops streams until little enough is kept, the oldest first: those that have ended and are not read, those without a client, all ended. */
  #stopOldest(): void {
    // A write to one of thousands of streams, of which none can be dropped, must not look at all of them.
    if (this.#droppable.size === 0) return;
    const all = [...this.#streams].filter((stream) => this.#droppable.has(stream));
    for (const stream of all) if (!stream.isLost && !stream.hasEnded) this.#droppable.delete(stream);
    const dropped = [
      ...all.filter(({ hasEnded, hasReaders }) => hasEnded && !hasReaders),
      ...all.filter(({ isLost }) => isLost),
      ...all.filter(({ hasEnded, hasReaders }) => hasEnded && hasReaders),
    ];
    for (const stream of dropped) if (this.#kept > maxKept) stream.stop();
  }

  /** The server closes: clients cannot come back, so streams without one end. */
  close(): void {
    this.#isClosing = true;
    for (const stream of this.#streams) if (stream.isLost) stream.stop();
  }

  /** Resolves when the clients that opened the streams have received them, or have left. */
  async delivered(): Promise<void> {
    await Promise.all([...this.#streams].map(({ delivered }) => delivered));
  }

  /** Ends all runs as failed; resolves when none is left. */
  stop(): Promise<void> {
    this.#isClosing = true;
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

class BackgroundRun implements FoundRun {
  readonly #detached: DetachedRequest;
  readonly #log: Log;
  readonly #departure = new Departure();
  readonly #text = new WrittenText();
  #isCancelled = false;
  #done: Promise<void> | undefined;

  constructor(detached: DetachedRequest, log: Log) {
    this.#detached = detached;
    this.#log = log;
    this.#text.add(detached.answer.opening);
  }

  get state(): RunState {
    return this.#text.state;
  }

  events(from?: number): AsyncIterableIterator<string> {
    return this.#text.events(from);
  }

  async cancel(): Promise<void> {
    if (!this.#text.hasEnded) this.#isCancelled = true;
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
        this.#text.add(writer.write(events));
        if (this.#text.size > maxAnswerLength) this.stop();
        return undefined;
      }).finally(() => {
        clearInterval(timer);
        onEnd?.();
      });
      await beating;
      if (end.kind === "client-gone") this.#text.add(writer.write([{ type: "end", end }]));
    } catch (error) {
      // A defect of the writer: the answer has no end, and is stored as failed.
      this.#log.error({ response: answer.id, cause: loggedError(error) }, "the answer could not be written");
      await beating;
    }
    try {
      await answer.end(this.#text.whole(), this.#isCancelled);
    } catch (error) {
      this.#log.error({ response: answer.id, cause: loggedError(error) }, "the answer could not be kept");
    }
    this.#text.end();
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
