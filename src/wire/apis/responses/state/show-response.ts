import { FailureError, invalidRequest } from "../../../core/failure.ts";
import type { Profile } from "../../profile.ts";
import { numberBelow } from "../../request/refusals.ts";
import type { DetachedRun, PortAnswer, PortCall } from "../../port-state.ts";
import { responseForms } from "../form.ts";
import { eventsKey, findResponse, putResponse, stopKey } from "./stored-response.ts";
import type { FoundResponse, StoredResponse } from "./stored-response.ts";

/** A process is taken to have ended after this many seconds without a sign of life, unless it is known to run. */
const maxSilence = 60;
/** How often the response of another instance is read, in milliseconds. */
const pollMs = 1000;

/** `GET /responses/{id}`: the response, or its events after `starting_after`. */
export async function showResponse(call: PortCall): Promise<PortAnswer> {
  const found = await requireResponse(call);
  if (call.query("stream") !== "true") return { body: await bodyNow(found, call) };
  const after = startingAfter(call.query("starting_after"));
  const run = found.stored.running && call.run(call.id);
  if (run) return { events: followed(run, call, after) };
  if (!isBackground(found.stored)) {
    throw invalidRequest(
      `The events of response '${call.id}' are not kept: only those of a response that was created with background are.`,
      "stream",
    );
  }
  return { events: onceEnded(found, call, after) };
}

/** `POST /responses/{id}/cancel` */
export async function cancelResponse(call: PortCall): Promise<PortAnswer> {
  const { stored } = await requireResponse(call);
  if (!isBackground(stored)) throw invalidRequest("Cannot cancel a synchronous response.");
  return { body: await bodyNow(await stopResponse(call, "cancelled"), call) };
}

/**
 * Stops the response and returns its new state. If another server generates it, the response is cancelled immediately, and that server
 * stops some seconds later.
 */
export async function stopResponse(call: PortCall, why: "cancelled" | "deleted"): Promise<FoundResponse> {
  let found = await requireResponse(call);
  const run = found.stored.running && call.run(call.id);
  if (run) {
    await run.cancel();
    found = await requireResponse(call);
  }
  const { running, ...stored } = found.stored;
  if (!running || !(await isRunning(found.stored, call))) return found;
  const { keyspace } = found;
  await keyspace.set(stopKey(call.id), why);
  const cancelled = { ...stored, body: running.cancelled };
  await putResponse(keyspace, cancelled);
  return { ...found, stored: cancelled };
}

/** Returns the response that the path names. Rejects with 404. */
export async function requireResponse({ keyspaces, id }: PortCall): Promise<FoundResponse> {
  const found = await findResponse(keyspaces, id);
  if (found) return found;
  throw new FailureError({
    kind: "not-found",
    message: `Response with id '${id}' not found.`,
    status: 404,
    param: null,
    code: null,
  });
}

/** The events after the number `after`, as they are generated or as they were stored. */
async function* followed(run: DetachedRun, call: PortCall, after: number): AsyncGenerator<string> {
  let isEmpty = true;
  for await (const chunk of run.events(after + 1)) {
    isEmpty = false;
    yield chunk;
  }
  if (isEmpty) yield* onceEnded(await requireResponse(call), call, after);
}

/** The events of a background response once it has ended. If they are lost, only its last event. */
async function* onceEnded(found: FoundResponse, call: PortCall, after: number): AsyncGenerator<string> {
  let now = found;
  while (await isRunning(now.stored, call)) {
    if (!(await call.pause(pollMs))) return;
    now = await requireResponse(call);
  }
  const events = await now.keyspace.get(eventsKey(call.id));
  if (events === undefined) yield endOf(await bodyNow(now, call), after, call.profile);
  else yield* eventsAfter([events], after);
}

/** The last event of a response whose events are lost. A response that was cancelled has none. */
function endOf(body: string, after: number, { name }: Profile): string {
  const response = JSON.parse(body) as { readonly status: string };
  const { endMark } = responseForms[name];
  if (response.status === "cancelled") return endMark;
  const type = `response.${response.status}`;
  return `event: ${type}\ndata: ${JSON.stringify({ type, response, sequence_number: after + 1 })}\n\n${endMark}`;
}

/** Returns the current body of the response. One whose process has ended is stored as failed, so that requests may continue it. */
async function bodyNow(found: FoundResponse, call: PortCall): Promise<string> {
  const { running, ...stored } = found.stored;
  if (!running || (await isRunning(found.stored, call))) return stored.body;
  const failed = { ...stored, body: running.failed };
  // It is shown as failed even if the store cannot be written.
  await putResponse(found.keyspace, failed).catch(() => {});
  return failed.body;
}

async function isRunning({ running }: StoredResponse, { now, run, id, hasEnded }: PortCall): Promise<boolean> {
  if (!running) return false;
  const { aliveAt, process } = running;
  if (process !== undefined && hasEnded(process)) return false;
  return now() - aliveAt <= maxSilence || (await run(id)) !== undefined;
}

function isBackground({ body }: StoredResponse): boolean {
  return (JSON.parse(body) as { readonly background?: unknown }).background === true;
}

function startingAfter(text: string | undefined): number {
  if (text === undefined || text === "") return -1;
  const number = Number(text);
  if (!Number.isInteger(number)) {
    throw invalidRequest(
      `Invalid type for 'starting_after': expected an integer, but got a string instead.`,
      "starting_after",
      "invalid_type",
    );
  }
  if (number < 0) throw numberBelow("starting_after", "integer", 0, number);
  return number;
}

/** Returns the events with a number above `after`. Each chunk is one or more whole events, whose numbers are 0, 1, 2, … */
export async function* eventsAfter(
  chunks: AsyncIterable<string> | Iterable<string>,
  after: number,
): AsyncGenerator<string> {
  let next = 0;
  for await (const chunk of chunks) {
    if (next > after) {
      yield chunk;
      continue;
    }
    let start = 0;
    while (start < chunk.length && next <= after) {
      const end = chunk.indexOf("\n\n", start);
      // The end mark has no number.
      if (end === -1 || chunk.startsWith("data: [DONE]", start)) break;
      start = end + 2;
      next++;
    }
    if (start < chunk.length) yield chunk.slice(start);
  }
}
