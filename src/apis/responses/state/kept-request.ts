import type { Generation } from "../../../core/accumulate.ts";
import type { AnswerContext, ReadOptions, StreamWriter } from "../../port.ts";
import type { DetachedAnswer, InTurns, KeptRequest, Shelf, Shelves } from "../../port-state.ts";
import { bodyText } from "../body-text.ts";
import { responsesRequestInSteps } from "../read-request.ts";
import type { ReadResponsesRequest } from "../read-request.ts";
import { ResponseFrame } from "../response-frame.ts";
import { responseOf } from "../response-writer.ts";
import { ResponseStreamWriter } from "../stream-writer.ts";
import { inputItems } from "./input-items.ts";
import { deleteResponse, eventsKey, findOn, keyOf, putResponse, stopKey } from "./kept-response.ts";
import type { FoundResponse, KeptResponse, RunningResponse } from "./kept-response.ts";
import { recall } from "./recall.ts";
import type { Recalled } from "./recall.ts";

/** Reads a request with what it refers to. Rejects with `FailureError`. */
export async function readKeptRequest(
  body: unknown,
  requestId: string,
  options: ReadOptions,
  shelves: Shelves,
  inTurns: InTurns,
): Promise<KeptRequest> {
  const recalled = await recall(body, shelves, options.forwards);
  try {
    const read = await inTurns(responsesRequestInSteps(body, requestId, options, recalled));
    return new KeptResponsesRequest(read, body, recalled, shelves);
  } catch (error) {
    // A conversation on a connection ends where a turn of it fails: OpenAI forgets the response that it was to go on from.
    const { previous } = recalled;
    if (shelves.ofConnection && previous) await shelves.brief.delete(keyOf(previous.kept.id));
    throw error;
  }
}

/** A request whose answer may be kept. */
class KeptResponsesRequest implements KeptRequest {
  readonly request: KeptRequest["request"];
  readonly warnings: KeptRequest["warnings"];
  readonly preparesOnly: boolean;
  readonly detach?: (context: AnswerContext, processName?: string) => DetachedAnswer;
  readonly #asked: ReadResponsesRequest["asked"];
  readonly #input: unknown;
  readonly #recalled: Recalled;
  readonly #shelves: Shelves;
  /** Of the answer, once it is being written. */
  #frame: ResponseFrame | undefined;
  #random: () => number = () => 0;

  constructor(read: ReadResponsesRequest, body: unknown, recalled: Recalled, shelves: Shelves) {
    this.request = read.request;
    this.warnings = read.warnings;
    this.preparesOnly = read.preparesOnly;
    this.#asked = read.asked;
    // It was read, so it is an object.
    this.#input = (body as { readonly input?: unknown }).input;
    this.#recalled = recalled;
    this.#shelves = shelves;
    if (read.asked.echo.background) this.detach = (context, processName) => this.#detach(context, processName);
  }

  streamWriter(context: AnswerContext): StreamWriter {
    return new ResponseStreamWriter(this.#open(context, "stream"));
  }

  writeResponse(generation: Generation, context: AnswerContext): string {
    return bodyText(responseOf(generation, this.#open(context, "body")), context.profile);
  }

  async keep(): Promise<void> {
    const body = this.#frame?.body() ?? null;
    if (body === null) return;
    for (const shelf of this.#targets()) await this.#put(shelf, body);
  }

  #open(context: AnswerContext, form: "stream" | "body"): ResponseFrame {
    this.#random = context.random;
    return (this.#frame = new ResponseFrame(context, this.#asked, form));
  }

  /** A connection finds its own responses even where nothing else may. */
  #targets(): Shelf[] {
    const { lasting, brief, ofConnection } = this.#shelves;
    const { store, background } = this.#asked.echo;
    return [...(ofConnection || (background && !store) ? [brief] : []), ...(store ? [lasting] : [])];
  }

  async #put(shelf: Shelf, body: string, running?: RunningResponse): Promise<void> {
    const frame = this.#frame;
    if (!frame) return;
    const { previous, history, references } = this.#recalled;
    const own = inputItems(this.#input, references, {
      responseId: frame.id,
      created: frame.created,
      random: this.#random,
    });
    // What lasts refers to what lasts; what does not, is complete in itself.
    const link = previous && shelf === this.#shelves.lasting ? await onLastingShelf(previous, shelf) : undefined;
    await putResponse(shelf, {
      id: frame.id,
      ...(link && { previous: link.id, root: link.root ?? link.id }),
      input: link ? own : [...history, ...own],
      ...(Object.keys(frame.seals).length > 0 && { seals: frame.seals }),
      ...(running && { running }),
      body,
    });
  }

  #detach(context: AnswerContext, processName: string | undefined): DetachedAnswer {
    const frame = this.#open(context, "stream");
    const writer = new ResponseStreamWriter(frame);
    const opening = writer.open();
    const bodyIn = (event: "queued" | "in_progress" | "cancelled"): string => frame.body({ event, output: [] }) ?? "";
    const failure = { code: "server_error", message: "The server stopped before the response was complete." };
    const failed = frame.body({ event: "failed", output: [], failure }) ?? "";
    const cancelled = bodyIn("cancelled");
    const [shelf] = this.#targets();
    const now = context.now ?? (() => context.created);
    return {
      id: frame.id,
      writer,
      opening,
      body: bodyIn("queued"),
      beat: async () => {
        if (!shelf) return false;
        // Another process has written what it is now.
        if ((await shelf.get(stopKey(frame.id))) !== undefined) return true;
        await this.#put(shelf, bodyIn("in_progress"), {
          aliveAt: now(),
          ...(processName !== undefined && { process: processName }),
          failed,
          cancelled,
        });
        return false;
      },
      end: async (events, isCancelled) => {
        if (!shelf) return;
        const stop = await shelf.get(stopKey(frame.id));
        if (stop === "deleted") {
          const kept = await findOn(shelf, frame.id);
          if (kept) await deleteResponse(shelf, kept);
        } else {
          await shelf.set(eventsKey(frame.id), events);
          await this.#put(shelf, isCancelled || stop !== undefined ? cancelled : (frame.body() ?? failed));
        }
        if (stop !== undefined) await shelf.delete(stopKey(frame.id));
      },
    };
  }
}

/** A response as it is on the shelf of what lasts, where a connection may have found its own copy first. */
async function onLastingShelf({ kept, isBrief }: FoundResponse, lasting: Shelf): Promise<KeptResponse | undefined> {
  return isBrief ? findOn(lasting, kept.id) : kept;
}
