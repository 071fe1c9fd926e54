import type { ReadRequest } from "../../wire/apis/port.ts";
import type { StorableRequest, ServedPort } from "../../wire/apis/port-state.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { storeOwnerOf } from "./client-stores.ts";
import { resumeHeader } from "./exchange.ts";
import type { AnswerSink, Departure, HeaderFields, HttpExchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";
import { notKept, Run } from "./run.ts";
import type { Service } from "./service.ts";
import { sendEvents } from "./write-answer.ts";

/**
 * Returns how long the client asks its stream to continue without it, in milliseconds; 0: not at all. Throws `FailureError` 400 for a value
 * that is not a time.
 */
export function resumeTimeOf(exchange: Pick<HttpExchange, "header">): number {
  const value = exchange.header(resumeHeader);
  if (value === undefined) return 0;
  const [, number, unit = "s"] = /^\s*(\d{1,9})\s*(ms|s|m|h)?\s*$/.exec(value) ?? [];
  if (number === undefined) {
    throw invalidRequest(
      `Invalid header '${resumeHeader}': expected a time such as 30s or 2m, for which the answer continues without a connection, but got '${value.slice(0, 100)}'.`,
      null,
      "invalid_value",
    );
  }
  return Number(number) * (unitMs[unit] ?? 0);
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Why the answer cannot continue without its client although the client asks for that; undefined: it can. */
export function whyNotResumable(
  port: ServedPort,
  { request, streamHeaders = port.streamHeaders }: ReadRequest,
  kept: StorableRequest | undefined,
  { exchange, profile }: Reply,
  { settings }: Service,
): string | undefined {
  const why = (reason: string): string => `X-Truewire-Resume was ignored: ${reason}`;
  if (exchange.answering !== undefined) return why("an answer over WebSocket cannot be resumed");
  if (kept?.detach) return why("a response in the background continues anyway; resume it with starting_after");
  if (!request.stream) return why("it is for streamed answers");
  if (streamHeaders(profile)["content-type"]?.startsWith("text/event-stream") !== true)
    return why("it is for streams of server-sent events");
  return settings.resumeStreamsMs === 0 ? why("this server's setting resumeStreams is 0") : undefined;
}

/**
 * Makes the stream of a reply one that a client may resume (`GET /streams/{id}`, by the id of its request). Returns its headers. `aloneMs`:
 * how long the generation continues without a client, in milliseconds.
 */
export async function makeResumable(
  reply: Reply,
  { runs, settings }: Service,
  streamHeaders: HeaderFields,
  aloneMs: number,
): Promise<HeaderFields> {
  const { exchange, requestId } = reply;
  const { sent } = reply.record;
  const headers = { ...streamHeaders, [resumeHeader]: `${aloneMs / 1000}s` };
  const owner = await storeOwnerOf(reply);
  const run = new Run({ headers, aloneMs });
  const sink = new ResumableSink(exchange, run, () => {
    runs.add(owner, requestId, run);
    run.done = sendEvents(opened(exchange), run.events(), {}, settings.keepAliveMs).catch(() => exchange.cut());
    run.onReader = (what) => void (what === "came" ? sent.resumes++ : sent.lost++);
  });
  reply.writeTo(sink);
  return headers;
}

/** An exchange whose status and headers have been sent. */
function opened(exchange: HttpExchange): Parameters<typeof sendEvents>[0] {
  return {
    exchange,
    sent: true,
    open() {},
    write: (text) => exchange.write(text),
    end: (text) => exchange.end(text),
  };
}

/**
 * Writes an answer to a run that outlasts its connection, once the stream is open. Each event gets the `id` of its number. Source of `id` and
 * `Last-Event-ID`: WHATWG HTML, "Server-sent events".
 */
class ResumableSink implements AnswerSink {
  readonly departure: Departure;
  readonly #exchange: HttpExchange;
  readonly #run: Run;
  /** The exchange is the first reader, once its headers are sent. */
  readonly #begin: () => void;
  #isOpen = false;

  constructor(exchange: HttpExchange, run: Run, begin: () => void) {
    this.#exchange = exchange;
    this.#run = run;
    this.#begin = begin;
    this.departure = run.departure;
    const { signal } = exchange.departure;
    const left = (): void => {
      if (!this.#isOpen) run.departure.happen();
    };
    if (signal.aborted) left();
    else signal.addEventListener("abort", left, { once: true });
  }

  send(status: number, headers: HeaderFields, body: string): void {
    this.#exchange.send(status, headers, body);
  }

  open(status: number, headers: HeaderFields): void {
    this.#isOpen = true;
    this.#exchange.open(status, headers);
    this.#begin();
  }

  /** Adds the ids. Comments are left out, because each reader gets comments of its own. */
  format(text: string): string {
    return text.startsWith(":") ? "" : this.#run.numbered(text);
  }

  write(text: string): Promise<void> | undefined {
    return this.#run.write(text);
  }

  end(text: string): void {
    void this.#run.write(text);
    this.#run.end();
  }

  /** The reader is too slow. It may come back: until then, the answer continues without a reader. */
  cut(): void {
    if (!this.#run.dismissReaders()) this.#run.stop();
    this.#exchange.cut();
  }
}

/** `GET /streams/{id}`: the events of a stream after `Last-Event-ID`, and then each new one. `id`: of the request that began it. */
export async function resumeStream(reply: Reply, service: Service, id: string): Promise<void> {
  const run = await requireStream(reply, service, id);
  const { first, next, headers = {} } = run;
  const from = nextEvent(reply.exchange, next);
  if (from < first) throw notKept(first);
  // EventSource reconnects until it gets this status (WHATWG HTML, "Server-sent events").
  if (run.hasEnded && from === next) return reply.send(204, null, "");
  if (reply.exchange.method === "HEAD") {
    reply.open(headers);
    return reply.end("");
  }
  reply.record.sent.resumesStream = true;
  await sendEvents(reply, run.events(from), headers, service.settings.keepAliveMs);
}

/** `DELETE /streams/{id}`: stops the generation and drops what is kept of the stream. */
export async function stopStream(reply: Reply, service: Service, id: string): Promise<void> {
  const run = await requireStream(reply, service, id);
  run.stop();
  reply.send(204, null, "");
}

/** Rejects with `FailureError` 404. A stream of another client is answered as if it did not exist. */
async function requireStream(reply: Reply, { runs }: Service, id: string): Promise<Run> {
  const run = runs.find(await storeOwnerOf(reply), id);
  if (run?.isResumable === true) return run;
  throw new FailureError({
    kind: "not-found",
    message: `There is no stream '${id.slice(0, 100)}' for this key. A stream can be resumed by the x-request-id of its answer, if its request had the header ${resumeHeader}, and until the time in that header of the answer has passed without a client.`,
    status: 404,
    param: null,
    code: null,
  });
}

/** The number of the event after `Last-Event-ID`, or after `starting_after` in the query; 0 without both. Throws `FailureError` 400. */
function nextEvent(exchange: HttpExchange, next: number): number {
  const header = exchange.header("last-event-id")?.trim();
  const [name, text] =
    header === undefined || header === ""
      ? (["starting_after", exchange.query("starting_after")] as const)
      : (["Last-Event-ID", header] as const);
  if (text === undefined || text === "") return 0;
  const last = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (last < next) return last + 1;
  const expected = next === 0 ? "the stream has no events yet" : `an id from 0 to ${next - 1}`;
  throw invalidRequest(
    `Invalid '${name}': expected the id of an event of this stream (${expected}), but got '${text.slice(0, 100)}'.`,
    name,
    "invalid_value",
  );
}
