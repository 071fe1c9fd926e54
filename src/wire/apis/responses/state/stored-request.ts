import type { Generation } from "../../../core/accumulate.ts";
import type { AnswerContext, PreparesOnly, ReadOptions, StreamWriter } from "../../port.ts";
import type { DetachedAnswer, InTurns, StorableRequest, Keyspace, Keyspaces } from "../../port-state.ts";
import { changeConversation } from "../../conversations/stored-conversation.ts";
import { responseBodyText } from "../form.ts";
import { ResponseIds } from "../ids.ts";
import { responsesRequestInSteps } from "../request.ts";
import type { ReadResponsesRequest } from "../request.ts";
import type { ResponseOptions } from "../request-schema.ts";
import { ResponseObject } from "../response-object.ts";
import { wholeResponseObject } from "../response-writer.ts";
import { ResponseStreamWriter } from "../stream-writer.ts";
import { runSync } from "../../../core/steps.ts";
import { compactedItems, storedInputItems, withoutCompactions } from "./input-items.ts";
import { deleteResponse, eventsKey, findIn, outputOf, putResponse, stopKey } from "./stored-response.ts";
import type { FoundResponse, RunningResponse, StoredItem, StoredResponse } from "./stored-response.ts";
import { diagnosisOf } from "./diagnosis.ts";
import type { ResponseDiagnosis } from "./diagnosis.ts";
import { recall } from "./recall.ts";
import type { Recalled } from "./recall.ts";

/** Reads a request and the stored items that it refers to. Rejects with `FailureError`. */
export async function readStoredRequest(
  body: unknown,
  requestId: string,
  options: ReadOptions,
  keyspaces: Keyspaces,
  inTurns: InTurns,
): Promise<StorableRequest> {
  const recalled = await recall(body, keyspaces, options.forwards);
  const read = await inTurns(responsesRequestInSteps(body, requestId, options, recalled));
  const diagnosis = options.forwards === true ? undefined : await diagnosisOf(body, read, keyspaces, inTurns);
  return new StoredResponsesRequest(read, body, recalled, keyspaces, diagnosis);
}

/** A request whose answer may be stored. */
class StoredResponsesRequest implements StorableRequest {
  readonly request: StorableRequest["request"];
  readonly warnings: StorableRequest["warnings"];
  readonly preparesOnly?: PreparesOnly;
  readonly generatesNothing?: true;
  readonly detach?: (context: AnswerContext, processName?: string) => DetachedAnswer;
  readonly #options: ResponseOptions;
  readonly #input: unknown;
  readonly #recalled: Recalled;
  readonly #keyspaces: Keyspaces;
  readonly #diagnosis: ResponseDiagnosis | undefined;
  /** The response, once it is being written. */
  #response: ResponseObject | undefined;
  #own: readonly StoredItem[] | undefined;
  /** See `StoredResponse`. */
  #inputId: string | undefined;
  #random: () => number = () => 0;

  constructor(
    read: ReadResponsesRequest,
    body: unknown,
    recalled: Recalled,
    keyspaces: Keyspaces,
    diagnosis: ResponseDiagnosis | undefined,
  ) {
    this.request = read.request;
    this.warnings = read.warnings;
    if (read.preparesOnly) this.preparesOnly = read.preparesOnly;
    if (read.compacts) this.generatesNothing = true;
    this.#options = read.responseOptions;
    // It was read as a request, so it is an object.
    this.#input = (body as { readonly input?: unknown }).input;
    this.#recalled = recalled;
    this.#keyspaces = keyspaces;
    this.#diagnosis = diagnosis;
    if (read.responseOptions.echo.background)
      this.detach = (context, processName) => this.#detach(context, processName);
  }

  streamWriter(context: AnswerContext): StreamWriter {
    return new ResponseStreamWriter(this.#open(context, "stream"));
  }

  writeResponse(generation: Generation, context: AnswerContext): string {
    return responseBodyText(wholeResponseObject(generation, this.#open(context, "body")), context.profile);
  }

  async store(): Promise<void> {
    const body = this.#response?.body() ?? null;
    if (body === null) return;
    for (const keyspace of this.#targets()) await this.#put(keyspace, body);
    await this.#addToConversation(body);
  }

  /**
   * Adds the input and the output to the conversation of the response, also if the response itself is not stored. The client may have
   * deleted it.
   */
  async #addToConversation(body: string): Promise<void> {
    const { conversation } = this.#recalled;
    if (!conversation || !isAnswered(body)) return;
    const items = [...this.#ownItems(), ...outputOf(this.#seals(body))];
    if (items.length > 0) await changeConversation(this.#keyspaces, conversation.id, { items });
  }

  #seals(body: string): Pick<StoredResponse, "body" | "seals"> {
    const seals = this.#response?.encrypted ?? {};
    return { body, ...(Object.keys(seals).length > 0 && { seals }) };
  }

  /** The items of the request, as they are stored. */
  #ownItems(): readonly StoredItem[] {
    if (this.#own) return this.#own;
    const { id = "", created = 0, isOfSource = false } = this.#response ?? {};
    const random = this.#random;
    if (isOfSource) this.#inputId = new ResponseIds(random).response(created);
    const made = { responseId: this.#inputId ?? id, created, random };
    return (this.#own = storedInputItems(this.#input, this.#recalled.references, made));
  }

  /** The conversation up to this request, in which no compaction is encoded twice. */
  #compacted(): string {
    const own = this.#ownItems().map((item) => ({ item, path: "" }));
    const items = runSync(withoutCompactions([...this.#recalled.history.placed(), ...own]));
    return compactedItems(items.map(({ item }) => item as StoredItem));
  }

  #open(context: AnswerContext, form: "stream" | "body"): ResponseObject {
    this.#random = context.random;
    this.#response = new ResponseObject(context, this.#options, form);
    this.#response.cacheDiagnostics = this.#diagnosis?.compare;
    if (this.generatesNothing) this.#response.compaction = () => this.#compacted();
    return this.#response;
  }

  /** Returns the stores that the response goes to. A connection finds its own responses even if they are not stored for others. */
  #targets(): Keyspace[] {
    const { stored, temporary, ofConnection } = this.#keyspaces;
    const { store, background } = this.#options.echo;
    return [...(ofConnection || (background && !store) ? [temporary] : []), ...(store ? [stored] : [])];
  }

  async #put(keyspace: Keyspace, body: string, running?: RunningResponse): Promise<void> {
    const response = this.#response;
    if (!response) return;
    const { previous, conversation, history } = this.#recalled;
    const own = this.#ownItems();
    // A stored response refers to stored ones. A temporary one contains the whole conversation.
    const isStored = keyspace === this.#keyspaces.stored;
    const link = previous && isStored ? await foundIn(keyspace, previous) : undefined;
    const isPart = conversation !== undefined && isStored;
    await putResponse(keyspace, {
      id: response.id,
      ...(this.#inputId !== undefined && { inputId: this.#inputId }),
      ...(link && { previous: link.id, root: link.root ?? link.id }),
      ...(isPart && { conversation }),
      input: link || isPart ? own : history.items.toArray(0, own),
      ...this.#seals(body),
      ...(this.#diagnosis && { fingerprint: this.#diagnosis.fingerprint }),
      ...(running && { running }),
    });
  }

  #detach(context: AnswerContext, processName: string | undefined): DetachedAnswer {
    const response = this.#open(context, "stream");
    const writer = new ResponseStreamWriter(response);
    const opening = writer.open();
    // The response has its id once it is open.
    const { id } = response;
    const bodyIn = (event: "queued" | "in_progress" | "cancelled"): string =>
      response.body({ event, output: [] }) ?? "";
    const failure = { code: "server_error", message: "The server stopped before the response was complete." };
    const failed = response.body({ event: "failed", output: [], failure }) ?? "";
    const cancelled = bodyIn("cancelled");
    const [keyspace] = this.#targets();
    const now = context.now ?? (() => context.created);
    return {
      id,
      writer,
      opening,
      body: bodyIn("queued"),
      beat: async () => {
        if (!keyspace) return false;
        // Another process has stored how it ended.
        if ((await keyspace.get(stopKey(id))) !== undefined) return true;
        await this.#put(keyspace, bodyIn("in_progress"), {
          aliveAt: now(),
          ...(processName !== undefined && { process: processName }),
          failed,
          cancelled,
        });
        return false;
      },
      end: async (events, isCancelled) => {
        if (!keyspace) return;
        const stop = await keyspace.get(stopKey(id));
        if (stop === "deleted") {
          const stored = await findIn(keyspace, id);
          if (stored) await deleteResponse(keyspace, stored);
        } else {
          await keyspace.set(eventsKey(id), events);
          const body = isCancelled || stop !== undefined ? cancelled : (response.body() ?? failed);
          // The client may continue the conversation as soon as it sees the end.
          await this.#addToConversation(body);
          await this.#put(keyspace, body);
        }
        if (stop !== undefined) await keyspace.delete(stopKey(id));
      },
    };
  }
}

/** Whether a response ended with an answer. `body`: the response as JSON. */
function isAnswered(body: string): boolean {
  const { status } = JSON.parse(body) as { readonly status: string };
  return status === "completed" || status === "incomplete";
}

/** Returns a response from one keyspace. A connection may have found its own copy first. */
async function foundIn(keyspace: Keyspace, found: FoundResponse): Promise<StoredResponse | undefined> {
  return found.keyspace === keyspace ? found.stored : findIn(keyspace, found.stored.id);
}
