import { type FailureError, invalidRequest } from "../../../core/failure.ts";
import type { Keyspaces } from "../../port-state.ts";
import { isObject } from "../../../core/json.ts";
import { findConversation, requireConversation } from "../../conversations/stored-conversation.ts";
import type { StoredConversation } from "../../conversations/stored-conversation.ts";
import { maxMessages } from "../../request/shapes.ts";
import { GrowingList, History, itemCharacters, noHistory } from "./history.ts";
import {
  findIn,
  findItems,
  findResponse,
  type FoundResponse,
  itemsById,
  outputOf,
  statusOf,
  type StoredItem,
  type StoredResponse,
} from "./stored-response.ts";

/** The stored items that a request refers to. */
export interface Recalled {
  /** The response that the request continues. */
  readonly previous?: FoundResponse;
  /** The conversation that the request belongs to, and the number of items that it had, with deleted ones. */
  readonly conversation?: { readonly id: string; readonly items: number };
  /** The items up to the end of that response, or of that conversation. */
  readonly history: History;
  /** The items that the request's own input refers to, by their ids. */
  readonly references: ReadonlyMap<string, StoredItem>;
}

export const nothingRecalled: Recalled = { history: noHistory, references: new Map() };

export function previousNotFound(id: string): FailureError {
  return invalidRequest(
    `Previous response with id '${id}' not found.`,
    "previous_response_id",
    "previous_response_not_found",
  );
}

/**
 * Finds the stored items that a request's body (parsed JSON of any shape) refers to. The reader of the request judges references to items
 * that are not found. `forwards`: an unknown response is accepted, because the upstream may know it. Rejects with `FailureError`.
 */
export async function recall(body: unknown, keyspaces: Keyspaces, forwards = false): Promise<Recalled> {
  if (typeof body !== "object" || body === null) return nothingRecalled;
  const { previous_response_id: previousId, conversation: named, input } = body as { readonly [name: string]: unknown };
  if ((previousId ?? null) !== null && (named ?? null) !== null) {
    const message =
      "Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.";
    throw invalidRequest(message, null, "mutually_exclusive_parameters");
  }
  const previous = typeof previousId === "string" ? await findPrevious(previousId, keyspaces, forwards) : undefined;
  const conversation = await conversationNamed(named, keyspaces, forwards);
  const history = previous ? await historyOf(previous.stored, keyspaces) : (conversation?.history() ?? noHistory);
  const { references } = await referencedItems(input, history, keyspaces);
  return {
    ...(previous && { previous }),
    ...(conversation && { conversation: { id: conversation.beginning.id, items: conversation.items.length } }),
    history,
    references,
  };
}

/** Returns the conversation that the parameter names, if it does; `undefined` if the upstream may know it. */
async function conversationNamed(
  named: unknown,
  keyspaces: Keyspaces,
  forwards: boolean,
): Promise<StoredConversation | undefined> {
  const id = isObject(named) ? named["id"] : named;
  // A value of another type is refused when the parameters are read.
  if (typeof id !== "string") return undefined;
  return forwards ? findConversation(keyspaces, id) : requireConversation(keyspaces, id, "conversation");
}

/** Returns the items that items refer to: those of the history, and stored ones. `unknown`: the ids that mean nothing. */
export async function referencedItems(
  input: unknown,
  history: History,
  keyspaces: Keyspaces,
): Promise<{ readonly references: ReadonlyMap<string, StoredItem>; readonly unknown: readonly string[] }> {
  // A longer input is refused when it is read.
  const wanted = new Set(Array.isArray(input) && input.length <= maxMessages ? input.flatMap(referenceIn) : []);
  const references = new Map<string, StoredItem>();
  if (wanted.size === 0) return { references, unknown: [] };
  const known = itemsById(history.items.toArray());
  const others: string[] = [];
  for (const id of wanted) {
    const item = known.get(id);
    if (item) references.set(id, item);
    else others.push(id);
  }
  for (const [id, item] of await findItems(keyspaces, others)) references.set(id, item);
  return { references, unknown: others.filter((id) => !references.has(id)) };
}

async function findPrevious(id: string, keyspaces: Keyspaces, forwards: boolean): Promise<FoundResponse | undefined> {
  const found = await findResponse(keyspaces, id);
  if (!found) {
    if (forwards) return undefined;
    throw previousNotFound(id);
  }
  const status = statusOf(found.stored);
  if (status !== "queued" && status !== "in_progress") return found;
  throw invalidRequest(`Previous response with id '${id}' is still in progress.`, "previous_response_id");
}

/** Returns the id that an item refers to. Clients leave the type out, too. */
function referenceIn(item: unknown): string[] {
  if (typeof item !== "object" || item === null) return [];
  const { type, role, id } = item as { readonly [name: string]: unknown };
  const isReference = type === "item_reference" || ((type ?? null) === null && (role ?? null) === null);
  return isReference && typeof id === "string" ? [id] : [];
}

/**
 * Returns the conversation up to the end of a response: the input and output of the responses before it, and its own. Rejects with
 * `FailureError` if one of them was deleted or discarded.
 *
 * A response names only the one before it, so a conversation takes linear space. This process remembers assembled conversations: each
 * further response then costs two reads, of itself and of the conversation's version, and only its own items are read as messages.
 * Deleting a response deletes the version, after which no process uses the conversation that it remembers.
 */
export async function historyOf(stored: StoredResponse, keyspaces: Keyspaces): Promise<History> {
  const { previous, root } = stored;
  if (previous === undefined || root === undefined) return historyOfFirst(stored, keyspaces);
  const version = await versionOf(root, keyspaces);
  const remembered = keyspaces.assembled.get(root);
  const conversation =
    remembered instanceof Conversation && remembered.version === version ? remembered : new Conversation(version);
  const known = conversation.upTo(stored.id);
  if (known) return known;
  const responses = [stored];
  let history: History | undefined;
  for (let id: string | undefined = previous; id !== undefined;) {
    history = conversation.upTo(id);
    if (history) break;
    const response = await findIn(keyspaces.stored, id);
    if (!response) throw previousNotFound(stored.id);
    responses.push(response);
    id = response.previous;
  }
  responses.reverse();
  const turns: { response: StoredResponse; history: History }[] = [];
  for (const response of responses) {
    history = history?.with(itemsOf(response)) ?? (await historyOfFirst(response, keyspaces));
    turns.push({ response, history });
  }
  conversation.add(turns);
  // Items of a conversation may be deleted, which changes no version.
  const isFixed = turns[0]?.response.conversation === undefined;
  if (version !== undefined && isFixed) keyspaces.assembled.set(root, conversation, conversation.characters);
  return history ?? noHistory;
}

/** Returns the history of a response that continues no other one: its own items, after those that its conversation had before. */
async function historyOfFirst(stored: StoredResponse, keyspaces: Keyspaces): Promise<History> {
  const { id, items } = stored.conversation ?? {};
  const conversation = id === undefined ? undefined : await findConversation(keyspaces, id);
  if (id !== undefined && !conversation) throw previousNotFound(stored.id);
  const before = conversation?.history(items).items.toArray() ?? [];
  return new History("previous_response_id", new GrowingList(before).with(itemsOf(stored)));
}

/** Called when a response is deleted: no process uses the remembered conversation any more. */
export async function forgetHistory({ stored, assembled }: Keyspaces, { id, root }: StoredResponse): Promise<void> {
  assembled.delete(root ?? id);
  await stored.delete(versionKey(root ?? id));
}

/** Returns the version of a conversation, which is deleted with any of its responses; undefined if the store cannot be written. */
async function versionOf(root: string, { stored, assembled }: Keyspaces): Promise<string | undefined> {
  const known = await stored.get(versionKey(root));
  if (known !== undefined) return known;
  // Stored before the responses are read: if one is deleted meanwhile, so is the version.
  const version = assembled.unique();
  return stored.set(versionKey(root), version).then(
    () => version,
    () => undefined,
  );
}

function versionKey(root: string): string {
  return `version ${root}`;
}

function itemsOf(stored: StoredResponse): readonly StoredItem[] {
  return [...stored.input, ...outputOf(stored)];
}

interface ConversationTurn {
  readonly id: string;
  readonly history: History;
  readonly characters: number;
}

/** The memory of a response of an assembled conversation in addition to its items, in characters. */
const charactersPerTurn = 300;

/** An assembled conversation. If it branches, it holds the branch that was read last. */
class Conversation {
  readonly version: string | undefined;
  readonly #turns: ConversationTurn[] = [];
  /** The index of a response in `#turns`. */
  readonly #indexOf = new Map<string, number>();

  constructor(version: string | undefined) {
    this.version = version;
  }

  /** The approximate size. */
  get characters(): number {
    return this.#turns.at(-1)?.characters ?? 0;
  }

  /** Returns the conversation up to the end of a response, or `undefined` if the response is not in it. */
  upTo(id: string): History | undefined {
    return this.#turns[this.#indexOf.get(id) ?? -1]?.history;
  }

  /** Adds responses in order, with the conversation up to each, after their predecessor. Replaces another branch. */
  add(turns: readonly { readonly response: StoredResponse; readonly history: History }[]): void {
    const previous = turns[0]?.response.previous;
    const before = previous === undefined ? -1 : this.#indexOf.get(previous);
    // Another request has changed the branch meanwhile.
    if (before === undefined) return;
    for (const { id } of this.#turns.splice(before + 1)) this.#indexOf.delete(id);
    for (const { response, history } of turns) {
      this.#indexOf.set(response.id, this.#turns.length);
      const added = history.items.toArray(this.#turns.at(-1)?.history.items.length);
      const characters = added.reduce((sum, item) => sum + itemCharacters(item), this.characters + charactersPerTurn);
      this.#turns.push({ id: response.id, history, characters });
    }
  }
}
