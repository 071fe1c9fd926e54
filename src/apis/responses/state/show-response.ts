import { FailureError, invalidRequest } from "../../../core/failure.ts";
import type { Profile } from "../../profile.ts";
import { numberBelow } from "../../request/refusals.ts";
import type { DetachedRun, PortAnswer, PortCall, Shelf } from "../../port-state.ts";
import { responseForms } from "../form.ts";
import { piecesAfter } from "./pieces-after.ts";
import { eventsKey, findResponse, putResponse, stopKey } from "./kept-response.ts";
import type { FoundResponse, KeptResponse } from "./kept-response.ts";

/** A process about which nothing else is known has ended if it gave no sign of life for this long, in seconds. */
const longestSilence = 60;
/** How often another instance's response is looked at, in milliseconds. */
const lookEveryMs = 1000;

/** `GET /responses/{id}`: the response, or its events from one on. */
export async function showResponse(call: PortCall): Promise<PortAnswer> {
  const found = await theResponse(call);
  if (call.query("stream") !== "true") return { body: await bodyNow(found, call) };
  const after = startingAfter(call.query("starting_after"));
  const run = found.kept.running && (await call.run(call.id));
  if (run) return { events: followed(run, call, after) };
  if (!isBackground(found.kept)) {
    throw invalidRequest(
      `The events of response '${call.id}' are not kept: only those of a response that was created with background are.`,
      "stream",
    );
  }
  return { events: whenOver(found, call, after) };
}

/** `POST /responses/{id}/cancel` */
export async function cancelResponse(call: PortCall): Promise<PortAnswer> {
  const { kept } = await theResponse(call);
  if (!isBackground(kept)) throw invalidRequest("Cannot cancel a synchronous response.");
  return { body: await bodyNow(await stopResponse(call, "cancelled"), call) };
}

/**
 * Stops the response and returns it as it then is. If another server generates it, the response is cancelled immediately, and that server
 * stops some seconds later.
 */
export async function stopResponse(call: PortCall, why: "cancelled" | "deleted"): Promise<FoundResponse> {
  let found = await theResponse(call);
  const run = found.kept.running && (await call.run(call.id));
  if (run) {
    await run.cancel();
    found = await theResponse(call);
  }
  const { running, ...kept } = found.kept;
  if (!running || !(await isRunning(found.kept, call))) return found;
  const shelf = shelfOf(found, call);
  await shelf.set(stopKey(call.id), why);
  const cancelled = { ...kept, body: running.cancelled };
  await putResponse(shelf, cancelled);
  return { ...found, kept: cancelled };
}

/** The response that a path names. Rejects with 404. */
export async function theResponse({ shelves, id }: PortCall): Promise<FoundResponse> {
  const found = await findResponse(shelves, id);
  if (found) return found;
  throw new FailureError({
    kind: "not-found",
    message: `Response with id '${id}' not found.`,
    status: 404,
    param: null,
    code: null,
  });
}

/** The events after the number `after`, as they are generated or as they were kept. */
async function* followed(run: DetachedRun, call: PortCall, after: number): AsyncGenerator<string> {
  let isEmpty = true;
  const pieces = async function* (): AsyncGenerator<string> {
    for await (const piece of run.pieces()) {
      isEmpty = false;
      yield piece;
    }
  };
  yield* piecesAfter(pieces(), after);
  if (isEmpty) yield* whenOver(await theResponse(call), call, after);
}

/** The events of a background response that is over, or as soon as it is. Where they are lost, its end alone. */
async function* whenOver(found: FoundResponse, call: PortCall, after: number): AsyncGenerator<string> {
  let now = found;
  while (await isRunning(now.kept, call)) {
    if (!(await call.pause(lookEveryMs))) return;
    now = await theResponse(call);
  }
  const events = await shelfOf(now, call).get(eventsKey(call.id));
  if (events === undefined) yield endOf(await bodyNow(now, call), after, call.profile);
  else yield* piecesAfter(onePiece(events), after);
}

async function* onePiece(events: string): AsyncGenerator<string> {
  yield events;
}

/** The last event of a response whose events are lost. A response that was cancelled has none. */
function endOf(body: string, after: number, { name }: Profile): string {
  const response = JSON.parse(body) as { readonly status: string };
  const { endMark } = responseForms[name];
  if (response.status === "cancelled") return endMark;
  const type = `response.${response.status}`;
  return `event: ${type}\ndata: ${JSON.stringify({ type, response, sequence_number: after + 1 })}\n\n${endMark}`;
}

/** The body of the response as it is now. One whose process has ended is kept as failed, so that requests may go on from it. */
async function bodyNow(found: FoundResponse, call: PortCall): Promise<string> {
  const { running, ...kept } = found.kept;
  if (!running || (await isRunning(found.kept, call))) return kept.body;
  const failed = { ...kept, body: running.failed };
  // It is shown as failed even if the store takes nothing.
  await putResponse(shelfOf(found, call), failed).catch(() => {});
  return failed.body;
}

function shelfOf({ isBrief }: FoundResponse, { shelves }: PortCall): Shelf {
  return isBrief ? shelves.brief : shelves.lasting;
}

async function isRunning({ running }: KeptResponse, { now, run, id, hasEnded }: PortCall): Promise<boolean> {
  if (!running) return false;
  const { aliveAt, process } = running;
  if (process !== undefined && hasEnded(process)) return false;
  return now() - aliveAt <= longestSilence || (await run(id)) !== undefined;
}

function isBackground({ body }: KeptResponse): boolean {
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
