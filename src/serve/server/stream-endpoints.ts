import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { storeOwnerOf } from "./client-stores.ts";
import { resumeHeader } from "./exchange.ts";
import type { HttpExchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { sendEvents } from "./write-answer.ts";
import { notKept } from "./written-text.ts";
import type { FoundRun, RunState } from "./written-text.ts";

/** `GET /streams/{id}`: the events of a stream after `Last-Event-ID`, and then each new one. `id`: of the request that began it. */
export async function resumeStream(reply: Reply, service: Service, id: string): Promise<void> {
  const { run, state } = await requireStream(reply, service, id);
  const { first, next, hasEnded, headers = {} } = state;
  const from = nextEvent(reply.exchange, next);
  if (from < first) throw notKept(first);
  // EventSource reconnects until it gets this status (WHATWG HTML, "Server-sent events").
  if (hasEnded && from === next) return reply.send(204, null, "");
  if (reply.exchange.method === "HEAD") {
    reply.open(headers);
    return reply.end("");
  }
  reply.record.resumesStream = true;
  await sendEvents(reply, run.events(from), headers, service.settings.keepAliveMs);
}

/** `DELETE /streams/{id}`: stops the generation and drops what is kept of the stream. */
export async function stopStream(reply: Reply, service: Service, id: string): Promise<void> {
  const { run } = await requireStream(reply, service, id);
  await run.cancel();
  reply.send(204, null, "");
}

/** Rejects with `FailureError` 404. A stream of another client is answered as if it did not exist. */
async function requireStream(
  { client, key }: Reply,
  { runs }: Service,
  id: string,
): Promise<{ readonly run: FoundRun; readonly state: RunState }> {
  const run = await runs.find(await storeOwnerOf(client, key), id);
  const state = run?.state;
  if (run && state?.headers) return { run, state };
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
