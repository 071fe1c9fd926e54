import { FailureError, invalidRequest } from "../../../generation/failure.ts";
import { numberBelow } from "../../request/refusals.ts";
import type { DetachedRun, PortAnswer, PortCall } from "../../port-state.ts";
import { piecesAfter } from "./pieces-after.ts";
import { eventsKey, findResponse, stopKey } from "./kept-response.ts";
import type { FoundResponse, KeptResponse } from "./kept-response.ts";

/** A detached response that was not seen for so many seconds is nobody's any more. */
const longestSilence = 60;
/** How often another instance's response is looked at, in milliseconds. */
const lookEveryMs = 1000;

/** `GET /responses/{id}`: the response, or its events from one on. */
export async function showResponse(call: PortCall): Promise<PortAnswer> {
  const found = await theResponse(call);
  if (call.query("stream") !== "true") return { body: await bodyNow(found.kept, call) };
  const after = startingAfter(call.query("starting_after"));
  const run = found.kept.aliveAt === undefined ? undefined : await call.run(call.id);
  if (run) return { events: piecesAfter(followed(run, call), after) };
  const goesOn = await isRunning(found.kept, call);
  if (!goesOn && (await eventsOf(found, call)) === undefined) {
    throw invalidRequest(
      `The events of response '${call.id}' are not kept: only those of a response that was created with background are.`,
      "stream",
    );
  }
  return { events: piecesAfter(whenOver(found, call), after) };
}

/** `POST /responses/{id}/cancel` */
export async function cancelResponse(call: PortCall): Promise<PortAnswer> {
  const { kept } = await theResponse(call);
  if (!isBackground(kept)) throw invalidRequest("Cannot cancel a synchronous response.");
  return { body: await bodyNow((await stopResponse(call)).kept, call) };
}

/** The response, which nobody generates any more then. */
export async function stopResponse(call: PortCall): Promise<FoundResponse> {
  let found = await theResponse(call);
  const run = found.kept.aliveAt === undefined ? undefined : await call.run(call.id);
  if (run) {
    await run.cancel();
    found = await theResponse(call);
  }
  if (!(await isRunning(found.kept, call))) return found;
  // Another instance generates it, and looks for this.
  const { brief, lasting } = call.shelves;
  await (found.isBrief ? brief : lasting).set(stopKey(call.id), "");
  while ((await isRunning(found.kept, call)) && (await call.pause(lookEveryMs))) found = await theResponse(call);
  return found;
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

/** The events as they come, or as they were kept. */
async function* followed(run: DetachedRun, call: PortCall): AsyncGenerator<string> {
  let isEmpty = true;
  for await (const piece of run.pieces()) {
    isEmpty = false;
    yield piece;
  }
  if (isEmpty) yield* whenOver(await theResponse(call), call);
}

/** The events of a response that is over, or as soon as it is. */
async function* whenOver(found: FoundResponse, call: PortCall): AsyncGenerator<string> {
  let now = found;
  while (await isRunning(now.kept, call)) {
    if (!(await call.pause(lookEveryMs))) return;
    now = await theResponse(call);
  }
  const events = await eventsOf(now, call);
  if (events !== undefined) yield events;
}

function eventsOf({ isBrief }: FoundResponse, { shelves, id }: PortCall): Promise<string | undefined> {
  return (isBrief ? shelves.brief : shelves.lasting).get(eventsKey(id));
}

async function bodyNow(kept: KeptResponse, call: PortCall): Promise<string> {
  return kept.orphan !== undefined && !(await isRunning(kept, call)) ? kept.orphan : kept.body;
}

async function isRunning(kept: KeptResponse, { now, run, id }: PortCall): Promise<boolean> {
  if (kept.aliveAt === undefined) return false;
  return now() - kept.aliveAt <= longestSilence || (await run(id)) !== undefined;
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
