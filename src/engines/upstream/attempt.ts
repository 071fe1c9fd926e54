import type { Dispatcher } from "undici";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../core/events.ts";
import type { ReceivedAnswer } from "../../core/inspection.ts";
import type { EventReader } from "../../apis/source-port.ts";
import { badAnswer, failureOfText, readFailure } from "../../apis/tolerant/read-failure.ts";
import { readResponseBody } from "../../apis/tolerant/read-response.ts";
import { parseTolerantly } from "../../apis/tolerant/tolerant-json.ts";
import { passedHeaders, retryAfterSeconds } from "./answer-headers.ts";
import type { ReceivedHeaders } from "./answer-headers.ts";
import type { Target } from "./target.ts";
import type { Decoder, Unpacker } from "./transport.ts";
import { answerTooLong, isLost, silence, transportFailure, withoutEvents } from "./transport-failure.ts";
import type { Watch, Watched } from "./watch.ts";

/** So much may wait here for a slow reader before the upstream is held back. In bytes. */
const highWater = 64 * 1024;
/** An error's body is read so far. In bytes. */
const failureBodyLimit = 256 * 1024;
/** What waits for it runs when this turn's code has run. Cheaper than `queueMicrotask`, which makes an AsyncResource each time. */
const endOfTurn = Promise.resolve();
/**
 * After the finish reason: how long [DONE], usage, the end of the answer, or text and calls that a server sends late (LiteLLM
 * #376) may still take. Only a server that neither says [DONE] nor ends costs its client this wait, and only for the finish: the text is
 * out already. Cutting sooner would lose usage that is counted after the text.
 */
const farewellMs = 2000;

export interface AttemptOptions {
  readonly target: Target;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly stream: boolean;
  /** On a connection of its own. */
  readonly fresh: boolean;
  readonly reader: EventReader;
  /** Changes what the reader tells before it goes on; sees `end` as the last event. */
  readonly transform: ((events: GenerationEvent[]) => GenerationEvent[]) | undefined;
  readonly upstream: string;
  readonly firstEventMs: number;
  readonly idleMs: number;
  readonly answerLimit: number;
  readonly watch: Watch;
  /** Called with the headers when the request goes out, where the request is inspected. */
  readonly inspect: ((headers: AttemptOptions["headers"]) => ReceivedAnswer) | undefined;
}

/**
 * One request to one target and its answer, as batches of events: all that arrived since the last batch was taken. While nobody takes
 * them, the upstream is held back; nothing is ever buffered beyond `highWater` and what one read brings.
 */
export class Attempt implements Dispatcher.DispatchHandler, Watched {
  readonly #options: AttemptOptions;
  #controller: Dispatcher.DispatchController | undefined;
  readonly #decoder: Decoder;
  #status = 0;
  #headers: ReceivedHeaders = {};
  /** The pieces of a body that is read whole: an answer without a stream, or an error. */
  #body: string[] = [];
  #bodySize = 0;
  /** What arrived within this turn and is not read yet. */
  #arrived: Uint8Array[] = [];
  #pending: GenerationEvent[] = [];
  #unreadBytes = 0;
  #waiting: ((batch: GenerationEvent[] | null) => void) | undefined;
  /** `end` was told. */
  #ended = false;
  /** The connection is done with this request. */
  #released = false;
  #abortReason: Error | undefined;
  #heard = false;
  #sawEvent = false;
  /** The headers for the client are part of an event. */
  #hasHeaders = false;
  /** For how long nothing has arrived, no event has come, or only noise has come since the finish. */
  #silentMs = 0;
  #waitedMs = 0;
  #farewellMs = 0;
  #bytesReceived = 0;
  #unpacker: Unpacker | null = null;
  #reusedConnection = false;
  readonly #inspected: ReceivedAnswer | undefined;
  /**
   * The connection had served before and broke before a byte of an answer came: the server has closed it as idle, and no application
   * has seen the request. Source: RFC 9112, section 9.3.1.
   */
  neverArrived = false;

  constructor(options: AttemptOptions) {
    this.#options = options;
    const { target, path, headers, body, fresh, watch, inspect } = options;
    this.#inspected = inspect?.(headers);
    this.#decoder = target.transport.decoder();
    target.outstanding++;
    watch.add(this);
    const onReusedConnection = (): void => {
      this.#reusedConnection = true;
    };
    target.transport.dispatch({ method: "POST", path, headers, body, fresh, onReusedConnection }, this);
  }

  /** What arrived since the last call; waits for something. null: `end` was told before. */
  next(): Promise<GenerationEvent[] | null> {
    if (this.#pending.length > 0) return Promise.resolve(this.#take());
    if (this.#ended) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Stops the request, wherever it is. `end`: what a waiting reader is told. */
  abort(end: GenerationEnd): void {
    if (!this.#ended) this.#add(this.#options.reader.abandon(end));
    if ("failure" in end) this.#inspected?.failed(end.failure.message);
    this.#stop();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortReason) controller.abort(this.#abortReason);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ReceivedHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#inspected?.answered(status, headers);
    const encoding = headers["content-encoding"];
    if (typeof encoding === "string") this.#unpack(encoding);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#heard = true;
    if (this.#ended) return;
    if (!this.#unpacker) this.#receive(chunk);
    else if (!this.#unpacker.write(chunk)) controller.pause();
  }

  /** Bytes of the answer as it was before anybody packed it. */
  #receive(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#bytesReceived += chunk.length;
    if (!this.#options.stream || this.#status !== 200) {
      this.#keep(chunk);
      return;
    }
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes >= highWater) {
      this.#controller?.pause();
      this.#unpacker?.pause();
    }
    // One read of the socket may bring many pieces, all within this turn. They are read together and become one batch.
    this.#arrived.push(chunk);
    if (this.#arrived.length === 1) void endOfTurn.then(this.#readArrived);
  }

  onResponseEnd(): void {
    this.#release();
    if (this.#unpacker) this.#unpacker.end();
    else this.#finish();
  }

  #finish(): void {
    this.#readArrived();
    if (this.#ended) return;
    const { reader, stream } = this.#options;
    if (this.#status !== 200) this.#add(reader.abandon(this.#refused()));
    else if (stream) {
      const rest = this.#decoder.end();
      this.#add(rest === "" ? [] : reader.push(rest));
      this.#add(reader.end());
    } else this.#add(readResponseBody(this.#body.join("") + this.#decoder.end(), reader));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.neverArrived = this.#reusedConnection && this.#status === 0 && isLost(error);
    this.#break(error);
  }

  /** The answer broke off, or could not be unpacked. */
  #break(error: Error): void {
    this.#release();
    this.#readArrived();
    this.#inspected?.failed(error.message);
    if (this.#ended) return;
    const { reader, stream, upstream } = this.#options;
    if (stream && this.#status === 200 && this.#bytesReceived > 0) this.#add(reader.end(error));
    else this.#add(reader.abandon({ kind: "upstream-error", failure: transportFailure(error, upstream) }));
  }

  tick(tickMs: number): void {
    const { reader, upstream, firstEventMs, idleMs } = this.#options;
    // A source that is held back is not silent.
    const isHeldBack = this.#controller?.paused === true;
    this.#silentMs = this.#heard || isHeldBack ? 0 : this.#silentMs + tickMs;
    this.#heard = false;
    this.#waitedMs = isHeldBack ? 0 : this.#waitedMs + tickMs;
    // Pings are signs of life, but not after the finish.
    if (this.#ended || (reader.finished && this.#pending.length === 0)) this.#farewellMs += tickMs;
    if (this.#farewellMs >= farewellMs) this.abort({ kind: "done" });
    else if (!this.#sawEvent && this.#waitedMs >= firstEventMs) this.abort(silence(upstream, firstEventMs / 1000));
    else if (this.#sawEvent && this.#silentMs >= idleMs) this.abort(silence(upstream, idleMs / 1000));
    // Comments and blank lines keep an answer alive, but not for ever: a prompt may take as long to read as before the first event.
    else if (this.#waitedMs >= Math.max(firstEventMs, idleMs))
      this.abort(withoutEvents(upstream, Math.max(firstEventMs, idleMs) / 1000));
  }

  readonly #readArrived = (): void => {
    const { length } = this.#arrived;
    if (length === 0 || this.#ended) return;
    let text = "";
    for (const bytes of this.#arrived) text += this.#decoder.write(bytes);
    this.#arrived = [];
    if (this.#inspected && text !== "") this.#inspected.received(text);
    if (text !== "") this.#add(this.#options.reader.push(text));
    // Nothing was read from it, so it does not hold back the upstream.
    if (this.#pending.length === 0) this.#resume();
  };

  #unpack(encoding: string): void {
    try {
      this.#unpacker = this.#options.target.transport.unpacker(encoding, {
        data: (bytes) => this.#receive(bytes),
        end: () => this.#finish(),
        error: (error) => this.#unreadable(error),
        drain: () => this.#resume(),
      });
    } catch (error) {
      this.#unreadable(error);
    }
  }

  #unreadable(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.abort({
      kind: "upstream-error",
      failure: badAnswer(`The answer of the upstream ${this.#options.upstream} cannot be read: ${why}.`, error),
    });
  }

  #keep(chunk: Uint8Array): void {
    const isAnswer = this.#status === 200;
    this.#bodySize += chunk.length;
    if (isAnswer && this.#bodySize > this.#options.answerLimit) this.abort(answerTooLong(this.#options.answerLimit));
    else if (isAnswer || this.#bodySize <= failureBodyLimit) this.#keepText(this.#decoder.write(chunk));
    else this.abort(this.#refused());
  }

  #keepText(text: string): void {
    this.#body.push(text);
    this.#inspected?.received(text);
  }

  /** The end that an answer with another status than 200 is. */
  #refused(): GenerationEnd {
    const { reader, upstream } = this.#options;
    const body = this.#body.join("");
    const status = this.#status;
    const told = readFailure(parseTolerantly(body, reader.repairs), status) ?? failureOfText(body, status);
    const retryAfter = retryAfterSeconds(this.#headers, Date.now());
    const failure: GenerationFailure = {
      ...told,
      ...(status < 400 && { message: `The upstream ${upstream} answered with status ${status}.` }),
      ...(retryAfter !== undefined && { retryAfterSeconds: retryAfter }),
      headers: passedHeaders(this.#headers),
    };
    return { kind: "upstream-error", failure };
  }

  #add(events: GenerationEvent[]): void {
    if (events.length === 0) return;
    this.#farewellMs = 0;
    this.#waitedMs = 0;
    const { transform } = this.#options;
    const told = transform ? transform(events) : events;
    this.#sawEvent = true;
    if (!this.#hasHeaders) this.#addHeaders(told);
    if (told.length === 0) return;
    const last = told.at(-1);
    if (last?.type === "end") {
      this.#ended = true;
      // What follows [DONE] is awaited for a moment, to keep the connection. What follows a failure is of no use.
      if (last.end.kind !== "done") this.#stop();
    }
    if (this.#pending.length === 0) this.#pending = told;
    else for (const event of told) this.#pending.push(event);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(this.#take());
  }

  /** Adds the headers that clients should see to the first choice's start. Other events may come before it, as Azure's filter results. */
  #addHeaders(events: GenerationEvent[]): void {
    const at = events.findIndex(({ type }) => type === "start");
    const start = events[at];
    if (start?.type !== "start") return;
    this.#hasHeaders = true;
    const headers = passedHeaders(this.#headers);
    if (Object.keys(headers).length === 0) return;
    events[at] = { ...start, source: { ...start.source, headers } };
  }

  #take(): GenerationEvent[] {
    const batch = this.#pending;
    this.#pending = [];
    this.#resume();
    return batch;
  }

  #resume(): void {
    this.#unreadBytes = 0;
    this.#unpacker?.resume();
    if (this.#controller?.paused === true) this.#controller.resume();
  }

  #stop(): void {
    this.#unpacker?.destroy();
    if (this.#released) return;
    this.#abortReason = new Error("The request was cancelled.");
    this.#controller?.abort(this.#abortReason);
    this.#release();
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#options.target.outstanding--;
    this.#options.watch.remove(this);
  }
}
