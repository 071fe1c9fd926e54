import type { Dispatcher } from "undici";
import type { GenerationEnd, GenerationEvent } from "../../wire/core/events.ts";
import type { AnswerHeaders, ReceivedAnswer } from "../../wire/core/inspection.ts";
import { OpenList, type Placed } from "../../wire/core/open-list.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import type { ByteDecoder, EventReader } from "../../wire/apis/source-port.ts";
import { badAnswer } from "../../wire/apis/tolerant/read-failure.ts";
import { readResponseBody } from "../../wire/apis/tolerant/read-response.ts";
import type { UpstreamTarget } from "./targets.ts";
import { inBackground } from "./transport.ts";
import type { Decoder, ReceivedHeaders, Unpacker } from "./transport.ts";
import {
  answerTooLong,
  failureOfAnswer,
  isLost,
  passedHeaders,
  silence,
  transportFailure,
} from "./transport-failure.ts";

/** The upstream is paused when this many bytes wait for a slow client. */
const highWater = 64 * 1024;
/** The maximum number of bytes that are read of an error's body. */
const failureBodyLimit = 256 * 1024;
/**
 * How long after the finish reason the upstream may take to send [DONE], usage, the end of the answer, or text and calls that some servers
 * send late (LiteLLM #376). A client waits for this only if its server sends neither [DONE] nor the end of the answer, and it waits only
 * for the finish reason: the text has been sent. A shorter wait would lose usage that is counted after the text.
 */
const graceAfterFinishMs = 2000;

interface Hides {
  hiddenIn(text: string): string;
}

export interface AttemptOptions {
  readonly target: UpstreamTarget;
  /** The upstream's name of the model. */
  readonly model: string;
  /** What the request was adapted to. */
  readonly profile: ServerProfile;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Emptied when no further attempt can follow: a request may be large, and its answer last for minutes. */
  body: string;
  readonly stream: boolean;
  /** Use a new connection. */
  readonly fresh: boolean;
  readonly reader: EventReader;
  /** Reads the bytes of a stream; default: they are UTF-8. */
  readonly decoder: (() => ByteDecoder) | undefined;
  /** Replaces the reader's events; `end` is the last one. */
  readonly transform: ((events: GenerationEvent[]) => GenerationEvent[]) | undefined;
  /** The upstream's name, for messages. */
  readonly upstream: string;
  readonly firstEventMs: number;
  readonly idleMs: number;
  readonly answerLimit: number;
  /** What the request does not have any more, for the client. */
  readonly warnings: readonly string[];
  /** Sent with the request, and to be removed from what the upstream says of it. */
  readonly secret: Hides | undefined;
  readonly watch: Watch;
  /** Called with the headers when the request is sent; present if the request is inspected. */
  readonly inspect: ((headers: AttemptOptions["headers"]) => ReceivedAnswer) | undefined;
}

/**
 * One request to one target and its answer, as batches of events. A batch contains everything received since the previous one was taken.
 * While no batch is taken, the upstream is paused: at most `highWater` bytes, and what one read of the socket returns, are buffered.
 */
export class Attempt implements Dispatcher.DispatchHandler, HasTimeouts {
  place = -1;
  readonly #options: AttemptOptions;
  #controller: Dispatcher.DispatchController | undefined;
  #decoder: Decoder;
  #status = 0;
  #headers: ReceivedHeaders = {};
  /** A body that is read whole: an answer without a stream, or an error. */
  #body = "";
  #bodySize = 0;
  /** Received in this turn and not read yet. */
  #arrived: string | undefined;
  #pending: GenerationEvent[] = [];
  #unreadBytes = 0;
  /** Called when `#pending` is no longer empty. */
  #waiting: (() => void) | undefined;
  /** The `end` event was emitted. */
  #ended = false;
  /** The request no longer counts as outstanding. */
  #released = false;
  #abortReason: Error | undefined;
  /** Bytes were received since the last tick. */
  #receivedData = false;
  #sawEvent = false;
  /** An event carries the headers for the client. */
  #hasHeaders = false;
  /** Time without received data, without an event, and without an event after the finish reason. */
  #silentMs = 0;
  #waitedMs = 0;
  #finishedMs = 0;
  #bytesReceived = 0;
  #unpacker: Unpacker | null = null;
  #reusedConnection = false;
  readonly #inspected: ReceivedAnswer | undefined;
  /**
   * The connection had served before and was lost before the first byte of an answer: the server closed it as idle, and no application
   * received the request. Source: RFC 9112, section 9.3.1.
   */
  neverArrived = false;

  constructor(options: AttemptOptions) {
    this.#options = options;
    const { target, path, headers, body, fresh, watch, inspect } = options;
    this.#inspected = inspect?.(headers);
    this.#decoder = target.transport.decoder();
    target.outstanding++;
    watch.add(this);
    const onReusedConnection = (): void => void (this.#reusedConnection = true);
    target.transport.dispatch({ method: "POST", path, headers, body, fresh, onReusedConnection }, this);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The events received since the last call, or the next ones. */
  next(): Promise<IteratorResult<GenerationEvent[], undefined>> {
    if (this.#pending.length > 0) return Promise.resolve({ done: false, value: this.#take() });
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#waiting = () => resolve({ done: false, value: this.#take() });
    });
  }

  return(): Promise<IteratorResult<GenerationEvent[], undefined>> {
    // After its end, the rest of the answer is read for a moment.
    if (!this.#ended) this.abort({ kind: "client-gone" });
    return Promise.resolve({ done: true, value: undefined });
  }

  /** See `GenerationIterator`. */
  follow(take: (batch: readonly GenerationEvent[]) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const deliver = (): void => {
        try {
          while (this.#pending.length > 0) if (!take(this.#take())) return resolve();
        } catch (error) {
          return reject(error as Error);
        }
        if (this.#ended) resolve();
        else this.#waiting = deliver;
      };
      deliver();
    });
  }

  /** Stops the request in any state. A waiting `next` gets `end`. */
  abort(end: GenerationEnd): void {
    this.#inspected?.abandoned(end);
    if (!this.#ended) this.#add(this.#options.reader.abandon(end));
    this.#stop();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortReason) controller.abort(this.#abortReason);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ReceivedHeaders): void {
    if (status < 200) return;
    // undici keeps a Buffer for each name and value, a kilobyte in all, for as long as the answer lasts.
    controller.rawHeaders = null;
    this.#status = status;
    this.#headers = headers;
    this.#options.target.keyState?.received(headers, performance.now());
    this.#inspected?.answered(status, headers);
    const { decoder } = this.#options;
    if (status === 200 && decoder) this.#decoder = decoder();
    const encoding = headers["content-encoding"];
    if (typeof encoding === "string") this.#unpack(encoding);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#receivedData = true;
    if (this.#ended) return;
    if (!this.#unpacker) this.#receive(chunk);
    // The unpacker reads it later.
    else if (!this.#unpacker.write(new Uint8Array(chunk))) controller.pause();
  }

  /** Decompressed bytes of the answer. */
  #receive(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#bytesReceived += chunk.length;
    if (!this.#options.stream || this.#status !== 200) {
      this.#buffer(chunk);
      return;
    }
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes >= highWater) {
      this.#controller?.pause();
      this.#unpacker?.pause();
    }
    // One read of the socket may bring many chunks, all in this turn. They are read together and become one batch.
    const text = this.#decoder.write(chunk);
    if (this.#arrived !== undefined) this.#arrived += text;
    else {
      this.#arrived = text;
      this.#options.target.transport.afterReads(this.#readArrived);
    }
  }

  onResponseEnd(): void {
    this.#release();
    if (this.#unpacker) this.#unpacker.end();
    else this.#finish();
  }

  #finish(): void {
    this.#readArrived();
    this.#inspected?.ended();
    if (this.#ended) return;
    const { reader, stream } = this.#options;
    if (this.#status !== 200) this.#add(reader.abandon(this.#refused()));
    else if (stream) {
      const rest = this.#decoder.end();
      this.#add(rest === "" ? [] : reader.push(rest));
      this.#add(reader.end());
    } else this.#add(readResponseBody(this.#body + this.#decoder.end(), reader));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.neverArrived = this.#reusedConnection && this.#status === 0 && isLost(error);
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
    // A paused source is not silent.
    const isPaused = this.#controller?.paused === true;
    this.#silentMs = this.#receivedData || isPaused ? 0 : this.#silentMs + tickMs;
    this.#receivedData = false;
    this.#waitedMs = isPaused ? 0 : this.#waitedMs + tickMs;
    // Pings keep an answer open before the finish, but not after it.
    if (this.#ended || (reader.finished && this.#pending.length === 0)) this.#finishedMs += tickMs;
    if (this.#finishedMs >= graceAfterFinishMs) this.abort({ kind: "done" });
    else if (!this.#sawEvent && this.#waitedMs >= firstEventMs) this.abort(silence(upstream, firstEventMs, "nothing"));
    else if (this.#sawEvent && this.#silentMs >= idleMs) this.abort(silence(upstream, idleMs, "nothing"));
    // Comments and blank lines keep an answer open for as long as the processing of a prompt may take.
    else if (this.#waitedMs >= Math.max(firstEventMs, idleMs))
      this.abort(silence(upstream, Math.max(firstEventMs, idleMs), "no event"));
  }

  readonly #readArrived = (): void => {
    const text = this.#arrived;
    if (text === undefined || this.#ended) return;
    this.#arrived = undefined;
    if (this.#inspected && text !== "") this.#inspected.received(this.#hidden(text));
    if (text !== "") this.#add(this.#options.reader.push(text));
    // Bytes without an event do not count against the buffer.
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
      failure: {
        ...badAnswer(`The answer of the upstream ${this.#options.upstream} cannot be read: ${why}.`, error),
        isForeign: true,
      },
    });
  }

  #buffer(chunk: Uint8Array): void {
    const isAnswer = this.#status === 200;
    this.#bodySize += chunk.length;
    if (isAnswer && this.#bodySize > this.#options.answerLimit) this.abort(answerTooLong(this.#options.answerLimit));
    else if (!isAnswer && this.#bodySize > failureBodyLimit) this.abort(this.#refused());
    else {
      const text = this.#decoder.write(chunk);
      this.#body += text;
      // An error is shown when it is whole: it may quote the key.
      if (isAnswer) this.#inspected?.received(text);
    }
  }

  /** The end of an answer with another status than 200. */
  #refused(): GenerationEnd {
    const { reader, upstream } = this.#options;
    const status = this.#status;
    const body = this.#hidden(this.#body);
    this.#inspected?.received(body);
    const failure = failureOfAnswer(status, this.#headers, body, reader.repairs);
    const message = status < 400 ? `The upstream ${upstream} answered with status ${status}.` : failure.message;
    return { kind: "upstream-error", failure: { ...failure, message } };
  }

  #hidden(text: string): string {
    return this.#options.secret?.hiddenIn(text) ?? text;
  }

  #add(events: GenerationEvent[]): void {
    if (events.length === 0) return;
    this.#finishedMs = 0;
    this.#waitedMs = 0;
    const { transform } = this.#options;
    const added = transform ? transform(events) : events;
    this.#sawEvent = true;
    if (!this.#hasHeaders) this.#hasHeaders = addHeaders(added, this.#headers, this.#options.warnings);
    if (added.length === 0) return;
    const last = added.at(-1);
    if (last?.type === "end") {
      const { secret } = this.#options;
      if (secret) added[added.length - 1] = { type: "end", end: withoutSecret(last.end, secret) };
      this.#ended = true;
      // After [DONE] the rest of the answer is read for a moment, to keep the connection. After a failure it is of no use.
      if (last.end.kind !== "done") this.#stop();
    }
    if (this.#pending.length === 0) this.#pending = added;
    else for (const event of added) this.#pending.push(event);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
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

function withoutSecret(end: GenerationEnd, secret: Hides): GenerationEnd {
  if (!("failure" in end)) return end;
  return { ...end, failure: { ...end.failure, message: secret.hiddenIn(end.failure.message) } };
}

/**
 * The header that names a request to a server: its id as a UUID. llama-cpp-python's server, and others with starlette-context, answer any
 * other value with status 400 and an empty body. Ids in Anthropic's form are not UUIDs, so they are not sent.
 */
export function requestIdHeader(id: string): Readonly<Record<string, string>> {
  return id.length === 36 && id.startsWith("req_") ? { "x-request-id": id.slice("req_".length) } : {};
}

/**
 * Adds an answer's headers for the client to the first `start` event, and warnings about its request; other events may precede it, such as
 * Azure's filter results. Returns whether there is one.
 */
export function addHeaders(
  events: GenerationEvent[],
  received: AnswerHeaders,
  warnings: readonly string[] = [],
): boolean {
  const at = events.findIndex(({ type }) => type === "start");
  const start = events[at];
  if (start?.type !== "start") return false;
  const headers = { ...passedHeaders(received), ...warningHeaders(warnings) };
  if (Object.keys(headers).length > 0)
    events[at] = { ...start, source: { ...start.source, headers: { ...headers, ...start.source?.headers } } };
  return true;
}

/** In characters: proxies refuse answers with long headers. */
const maxWarnings = 1000;

/** The header with warnings for the client; none without any. Characters that a header must not contain are replaced. */
export function warningHeaders(warnings: readonly string[]): Readonly<Record<string, string>> {
  if (warnings.length === 0) return {};
  const text = warnings.join("; ").replace(/[^ -~]+/g, "?");
  return { "x-truewire-warning": text.slice(0, maxWarnings) };
}

/** Has time-outs for silence. */
export interface HasTimeouts extends Placed {
  /** Called every `tickMs`. */
  tick(tickMs: number): void;
}

/** One timer for all open answers. A timer for each answer would have to be restarted with every event. */
export class Watch {
  readonly #tickMs: number;
  readonly #watched = new OpenList<HasTimeouts>();
  #timer: NodeJS.Timeout | undefined;

  /** `minTimeoutMs`: the shortest time-out to detect; it is detected with a precision of a quarter. */
  constructor(minTimeoutMs: number) {
    this.#tickMs = Math.max(10, Math.min(1000, Math.floor(minTimeoutMs / 4)));
  }

  add(watched: HasTimeouts): void {
    this.#watched.add(watched);
    this.#timer ??= inBackground(setInterval(() => this.#tick(), this.#tickMs));
  }

  remove(watched: HasTimeouts): void {
    this.#watched.delete(watched);
  }

  #tick(): void {
    for (const each of this.#watched) each.tick(this.#tickMs);
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
