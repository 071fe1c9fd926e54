import { internalError } from "../apis/failures.ts";
import type { StreamWriter } from "../apis/port.ts";
import { Accumulator } from "../core/accumulate.ts";
import type { Generation } from "../core/accumulate.ts";
import type { Engine } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationRequest } from "../core/request.ts";
import { shows } from "../core/shows.ts";
import type { HeaderFields } from "./exchange.ts";
import type { StreamLog } from "./log.ts";
import type { Reply } from "./reply.ts";
import { runGeneration } from "./run-generation.ts";

export interface StreamAnswer {
  readonly engine: Pick<Engine, "generate">;
  readonly request: GenerationRequest;
  readonly writer: StreamWriter;
  readonly headers: HeaderFields;
  readonly holdMs: number;
  readonly keepAliveMs: number;
  readonly readerPatienceMs: number;
  /** Whether others wait for what a slow reader holds. */
  readonly othersWait: () => boolean;
  readonly streamLog?: StreamLog;
  /** Keeps the answer when it was written; its end waits for that. */
  readonly keep?: () => Promise<void>;
}

/**
 * Answers with a stream. Its 200 goes out with the first batch that shows anything, so that an early failure keeps its status; after
 * `holdMs` without one it goes out alone, with the role chunk. From then on a comment follows every `keepAliveMs` of silence.
 */
export async function streamAnswer(reply: Reply, answer: StreamAnswer): Promise<void> {
  const { engine, request, writer, headers, streamLog } = answer;
  const { exchange, record } = reply;
  const reader = new SlowReader(answer.readerPatienceMs, answer.othersWait, () => {
    record.cut = true;
    exchange.cut();
  });
  let lastWrite = 0;

  /**
   * The source's headers that the client should see. A `start` event brings them, often in a batch of which nothing is written yet.
   */
  let sourceHeaders: HeaderFields | undefined;

  /** Sends one piece; a promise when the reader, or the log's disk, must be waited for. */
  const send = (text: string): Promise<void> | undefined => {
    if (!reply.sent) {
      reply.open({ ...headers, ...sourceHeaders });
      clearTimeout(timer);
      timer = setTimeout(beat, answer.keepAliveMs);
    }
    lastWrite = performance.now();
    const logged = streamLog?.write(reply.requestId, text);
    const sent = exchange.write(text);
    if (!sent) return logged;
    const taken = reader.wait(sent);
    return logged ? Promise.all([taken, logged]).then(() => {}) : taken;
  };

  // One timer for both: it ends the hold; once the answer is open, it looks for silence.
  const beat = (): void => {
    const silence = performance.now() - lastWrite;
    if (!reply.sent) return void send(writer.open());
    const silent = silence >= answer.keepAliveMs;
    if (silent && !reader.stalls) void send(writer.keepAlive());
    timer = setTimeout(beat, silent ? answer.keepAliveMs : answer.keepAliveMs - silence);
  };
  let timer = setTimeout(beat, answer.holdMs);

  const take = (events: readonly GenerationEvent[]): Promise<void> | undefined => {
    record.see(events);
    if (!reply.sent) sourceHeaders ??= events.find((event) => event.type === "start")?.source?.headers;
    const last = events.at(-1);
    if (last?.type !== "end") {
      const text = writer.write(events);
      return text === "" ? undefined : send(text);
    }
    clearTimeout(timer);
    if (!reply.sent && "failure" in last.end && !events.some(shows)) {
      reply.fail(new FailureError(last.end.failure));
      return undefined;
    }
    const text = writer.write(events);
    if (!reply.sent) reply.open({ ...headers, ...sourceHeaders });
    void streamLog?.write(reply.requestId, text);
    if (!answer.keep) return void exchange.end(text);
    return answer.keep().then(() => exchange.end(text));
  };

  try {
    await runGeneration(engine, request, exchange.departure, take);
  } catch (cause) {
    // A bug of ours: an open stream still ends as every stream of its API does.
    if (reply.sent)
      exchange.end(
        writer.write([{ type: "end", end: { kind: "engine-error", failure: internalError(cause).failure } }]),
      );
    throw cause;
  } finally {
    clearTimeout(timer);
    reader.end();
  }
}

/** Multiples of the patience. */
const totalWhileOthersWait = 4;
const longestStall = 20;
const longestTotal = 40;

/**
 * How long one answer's reader is waited for. A reader that takes nothing holds a slot of its model: while others wait for one, it may
 * stall for `patienceMs` at a time and four times that in all; while nobody waits, twenty and forty times that. Then `cut` is called.
 *
 * A fast stream fills its socket a thousand times a second, so a stall costs two readings of the clock: one timer serves the whole
 * answer, from its first stall on until `end`.
 */
export class SlowReader {
  readonly #patienceMs: number;
  readonly #othersWait: () => boolean;
  readonly #cut: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Pieces not taken yet; a keep-alive may wait beside one of the answer. */
  #waiting = 0;
  #began = 0;
  #totalMs = 0;

  constructor(patienceMs: number, othersWait: () => boolean, cut: () => void) {
    this.#patienceMs = patienceMs;
    this.#othersWait = othersWait;
    this.#cut = cut;
  }

  get stalls(): boolean {
    return this.#waiting > 0;
  }

  /** Waits for `taken`: what was sent has been taken, or the reader is gone. */
  wait(taken: Promise<void>): Promise<void> {
    if (this.#waiting++ === 0) this.#began = performance.now();
    this.#timer ??= setInterval(() => this.#look(), Math.max(10, this.#patienceMs / 10));
    return taken.then(() => {
      if (--this.#waiting === 0) this.#totalMs += performance.now() - this.#began;
    });
  }

  /** The answer is over. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    if (this.#waiting > 0 && this.#isOver(performance.now() - this.#began)) this.#cut();
  }

  #isOver(stalledMs: number): boolean {
    const stalls = stalledMs / this.#patienceMs;
    const all = (this.#totalMs + stalledMs) / this.#patienceMs;
    if (stalls >= longestStall || all >= longestTotal) return true;
    return (stalls >= 1 || all >= totalWhileOthersWait) && this.#othersWait();
  }
}

/** A whole answer is held in memory until it is complete, so a source that never stops must be cut. In characters. */
const longestAnswer = 64 * 1024 * 1024;

/** Answers when the generation is complete. One that failed is answered with its error alone, whatever text it had. */
export async function wholeAnswer(
  reply: Reply,
  engine: Pick<Engine, "generate">,
  request: GenerationRequest,
  write: (generation: Generation) => string,
  keep?: () => Promise<void>,
): Promise<void> {
  const { exchange, record } = reply;
  const accumulator = new Accumulator();
  const end = await runGeneration(engine, request, exchange.departure, (events) => {
    record.see(events);
    if (record.characters > longestAnswer) throw tooLong();
    accumulator.add(events);
    return undefined;
  });
  if ("failure" in end) throw new FailureError(end.failure);
  if (end.kind !== "done") return;
  const generation = accumulator.result();
  const body = write(generation);
  if (keep) await keep();
  reply.send(200, "application/json", body, generation.source?.headers);
}

function tooLong(): FailureError {
  return new FailureError({
    message: `The answer is longer than ${longestAnswer} characters. Ask for it as a stream.`,
    status: 502,
    kind: "bad-answer",
    param: null,
    code: null,
  });
}

/** A stream without an event is opened after this time, in milliseconds; what fails before that is answered as an error. */
const openAfterMs = 500;

/** Sends events that come from elsewhere than this request's engine, and a comment after each `keepAliveMs` of silence. */
export async function tellEvents(
  reply: Reply,
  events: AsyncIterable<string>,
  headers: HeaderFields,
  keepAliveMs: number,
): Promise<void> {
  const { exchange } = reply;
  const { signal } = exchange.departure;
  const iterator = events[Symbol.asyncIterator]();
  const left = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  let timer: ReturnType<typeof setInterval> | undefined;
  const opening = setTimeout(() => {
    if (!reply.sent && !signal.aborted) reply.open(headers);
  }, openAfterMs);
  try {
    while (!signal.aborted) {
      timer = setInterval(() => {
        if (!reply.sent) reply.open(headers);
        void exchange.write(": keep-alive\n\n");
      }, keepAliveMs);
      const step = await Promise.race([iterator.next(), left]);
      clearInterval(timer);
      if (step === undefined || step.done === true) break;
      if (!reply.sent) reply.open(headers);
      await exchange.write(step.value);
    }
    if (!reply.sent) reply.open(headers);
    exchange.end("");
  } finally {
    clearTimeout(opening);
    clearInterval(timer);
    void iterator.return?.();
  }
}
