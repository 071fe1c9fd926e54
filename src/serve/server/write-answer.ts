import { internalError } from "../../wire/apis/failures.ts";
import type { StreamWriter } from "../../wire/apis/port.ts";
import { Accumulator } from "../../wire/core/accumulate.ts";
import { cancellable } from "../../wire/core/cancellable.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isVisible } from "../../wire/core/events.ts";
import type { HeaderFields, HttpExchange } from "./exchange.ts";
import type { StreamLog } from "./log.ts";
import type { Reply } from "./reply.ts";
import { runGeneration } from "./run-generation.ts";
import type { GenerationRun } from "./run-generation.ts";

export interface StreamOptions {
  readonly writer: StreamWriter;
  readonly headers: HeaderFields;
  readonly holdMs: number;
  readonly keepAliveMs: number;
  readonly readerPatienceMs: number;
  /** Whether other requests wait for the slot that a slow reader occupies. */
  readonly othersWait: () => boolean;
  readonly streamLog?: StreamLog;
  /** Stores the complete answer before its end is sent. */
  readonly keep?: () => Promise<void>;
}

/**
 * Answers with a stream. Status 200 is sent with the first batch that contains output, so that an early failure keeps its status; after
 * `holdMs` without one it is sent alone, with the role chunk. From then on a comment follows every `keepAliveMs` of silence.
 */
export async function streamAnswer(reply: Reply, run: GenerationRun, options: StreamOptions): Promise<void> {
  const { writer, headers, streamLog, keepAliveMs, keep } = options;
  const { sink, record } = reply;
  /** Made at the first stall. */
  let reader: SlowReader | undefined;
  let lastWrite = 0;
  /** The headers of the source that the client receives. A `start` event brings them, often in a batch of which nothing is written yet. */
  let sourceHeaders: HeaderFields | undefined;

  /** Sends text. Returns a promise if the reader, or the disk of the stream log, is slow. */
  const send = (text: string): Promise<void> | undefined => {
    if (!reply.sent) {
      reply.open({ ...headers, ...sourceHeaders });
      clearTimeout(timer);
      timer = setTimeout(onTimer, keepAliveMs);
    }
    lastWrite = performance.now();
    const logged = streamLog?.write(reply.requestId, text);
    const sent = reply.write(text);
    if (!sent) return logged;
    reader ??= new SlowReader(options.readerPatienceMs, options.othersWait, () => {
      record.sent.cut = true;
      sink.cut();
    });
    const taken = reader.wait(sent);
    return logged ? Promise.all([taken, logged]).then(() => {}) : taken;
  };

  // One timer for both: it ends the hold, and then sends keep-alive comments.
  const onTimer = (): void => {
    // The engine may take its time to end.
    if (sink.departure.happened) return;
    if (!reply.sent) return void send(writer.open());
    const silenceMs = performance.now() - lastWrite;
    const isSilent = silenceMs >= keepAliveMs;
    if (isSilent && reader?.isStalled !== true) void send(writer.keepAlive());
    timer = setTimeout(onTimer, isSilent ? keepAliveMs : keepAliveMs - silenceMs);
  };
  let timer = setTimeout(onTimer, options.holdMs);

  const write = (events: readonly GenerationEvent[]): Promise<void> | undefined => {
    if (!reply.sent) sourceHeaders ??= events.find((event) => event.type === "start")?.source?.headers;
    const last = events.at(-1);
    if (last?.type !== "end") {
      const text = writer.write(events);
      return text === "" ? undefined : send(text);
    }
    clearTimeout(timer);
    if (!reply.sent && "failure" in last.end && !events.some(isVisible)) {
      reply.fail(new FailureError(last.end.failure));
      return undefined;
    }
    const text = writer.write(events);
    if (!reply.sent) reply.open({ ...headers, ...sourceHeaders });
    void streamLog?.write(reply.requestId, text);
    if (!keep) return void reply.end(text);
    return keep().then(() => {
      if (!sink.departure.happened) reply.end(text);
    });
  };

  try {
    await runGeneration(run, sink.departure, write, () => writer.isComplete === true);
  } catch (cause) {
    // A defect of this server: an open stream still ends as every stream of its API does.
    if (reply.sent)
      reply.end(writer.write([{ type: "end", end: { kind: "engine-error", failure: internalError(cause).failure } }]));
    throw cause;
  } finally {
    clearTimeout(timer);
    reader?.end();
  }
}

/** Multiples of the patience. */
const maxTotalWhileOthersWait = 4;
const maxStall = 20;
const maxTotal = 40;

/**
 * Limits how long the reader of one answer may stall. A reader that takes nothing occupies a slot of its model: while other requests wait
 * for one, it may stall for `patienceMs` at a time and four times that in total; otherwise for twenty and forty times that. Then `cut` is
 * called.
 *
 * A fast stream fills its socket a thousand times a second, so a stall only reads the clock twice: one timer serves the whole answer, from
 * its first stall until `end`.
 */
class SlowReader {
  readonly #patienceMs: number;
  readonly #othersWait: () => boolean;
  readonly #cut: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Writes that the reader has not taken; a keep-alive may wait in addition to one of the answer. */
  #waiting = 0;
  #began = 0;
  #totalMs = 0;

  constructor(patienceMs: number, othersWait: () => boolean, cut: () => void) {
    this.#patienceMs = patienceMs;
    this.#othersWait = othersWait;
    this.#cut = cut;
  }

  get isStalled(): boolean {
    return this.#waiting > 0;
  }

  /** Waits for `taken`, which resolves when the reader has taken what was sent, or has left. */
  wait(taken: Promise<void>): Promise<void> {
    if (this.#waiting++ === 0) this.#began = performance.now();
    this.#timer ??= setInterval(() => this.#check(), Math.max(10, this.#patienceMs / 10));
    return taken.then(() => {
      if (--this.#waiting === 0) this.#totalMs += performance.now() - this.#began;
    });
  }

  /** The answer has ended. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    if (this.#waiting > 0 && this.#isTooSlow(performance.now() - this.#began)) this.#cut();
  }

  #isTooSlow(stalledMs: number): boolean {
    const stall = stalledMs / this.#patienceMs;
    const total = (this.#totalMs + stalledMs) / this.#patienceMs;
    if (stall >= maxStall || total >= maxTotal) return true;
    return (stall >= 1 || total >= maxTotalWhileOthersWait) && this.#othersWait();
  }
}

/** A complete answer is held in memory until it is sent, so a source that never stops must be cut. In characters. */
const maxAnswerLength = 64 * 1024 * 1024;

/** Answers when the generation is complete. A generation that failed is answered with its error alone, even if it produced text. */
export async function wholeAnswer(
  reply: Reply,
  run: GenerationRun,
  write: (generation: Generation) => string,
  {
    keep,
    contentType = "application/json",
  }: { readonly keep?: () => Promise<void>; readonly contentType?: string } = {},
): Promise<void> {
  const { exchange, record } = reply;
  const accumulator = new Accumulator();
  const end = await runGeneration(run, exchange.departure, (events) => {
    if (record.answer.characters > maxAnswerLength) throw tooLong();
    accumulator.add(events);
    return undefined;
  });
  if ("failure" in end) throw new FailureError(end.failure);
  if (end.kind !== "done") return;
  const generation = accumulator.result();
  const body = write(generation);
  if (keep) await keep();
  if (exchange.departure.happened) return;
  reply.send(200, contentType, body, generation.source?.headers);
}

function tooLong(): FailureError {
  return new FailureError({
    message: `The answer is longer than ${maxAnswerLength} characters. Ask for it as a stream.`,
    status: 502,
    kind: "bad-answer",
    param: null,
    code: null,
  });
}

/** A stream without an event is opened after this time, in milliseconds; what fails before that is answered as an error. */
const openAfterMs = 500;

/** Sends events that do not come from an engine of this request, and `keepAlive` after each `keepAliveMs` of silence. */
export async function sendEvents(
  reply: Pick<Reply, "sent" | "open" | "write" | "end"> & { readonly exchange: Pick<HttpExchange, "departure"> },
  events: AsyncIterable<string>,
  headers: HeaderFields,
  keepAliveMs: number,
  keepAlive: string = ": keep-alive\n\n",
): Promise<void> {
  const { departure } = reply.exchange;
  // A pending step of `events` may take its time to end.
  const texts = cancellable(() => events);
  departure.signal.addEventListener("abort", () => void texts.return?.());
  const open = (): void => {
    if (!reply.sent) reply.open(headers);
  };
  const keepAlives = (): ReturnType<typeof setInterval> =>
    setInterval(() => {
      open();
      void reply.write(keepAlive);
    }, keepAliveMs);
  const opening = setTimeout(() => {
    if (!departure.happened) open();
  }, openAfterMs);
  let timer = keepAlives();
  try {
    if (departure.happened) return;
    for await (const text of texts) {
      clearInterval(timer);
      open();
      await reply.write(text);
      timer = keepAlives();
    }
    if (departure.happened) return;
    open();
    reply.end("");
  } finally {
    clearTimeout(opening);
    clearInterval(timer);
    void texts.return?.();
  }
}
