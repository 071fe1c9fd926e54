import { isLong, jsonChunks } from "../../../core/json-chunks.ts";
import type { StoredFingerprint } from "../../cache-diagnosis.ts";
import type { Keyspace, Keyspaces } from "../../port-state.ts";
import { sharedDigits } from "../ids.ts";

export type StoredItem = Readonly<Record<string, unknown>>;

/** A stored response. The names of the members are those of the stored text, which other versions of this server read. */
export interface StoredResponse {
  readonly id: string;
  /** The response that this one continues, and the first response of the conversation. Both are stored themselves. */
  readonly previous?: string;
  readonly root?: string;
  /** The conversation that the response belongs to, and the number of items that it had before, with deleted ones. */
  readonly conversation?: { readonly id: string; readonly items: number };
  /** The items of the request that follow `previous`, with ids. */
  readonly input: readonly StoredItem[];
  /** Present if the source has made the id of the response: an id that has its digits in common with those made for items of `input`. */
  readonly inputId?: string;
  /** `encrypted_content` of reasoning, by the item's id. The body shows it only on request. */
  readonly seals?: Readonly<Record<string, string>>;
  /** Of the request; absent if an upstream of this API has answered it. */
  readonly fingerprint?: StoredFingerprint;
  /** Present while the response is generated in the background. */
  readonly running?: RunningResponse;
  /** The response as JSON, as the client was sent it. */
  readonly body: string;
}

/** A background response that is being generated. */
export interface RunningResponse {
  /** The time of the last sign of life of its process, in Unix seconds. */
  readonly aliveAt: number;
  /** Names that process; absent where it has no name. */
  readonly process?: string;
  /** The bodies to show if the process has ended, and if the response is cancelled. */
  readonly failed: string;
  readonly cancelled: string;
}

/** The number of characters that are written without a pause. */
const chunkSize = 64 * 1024;

function storedText({ body, ...rest }: StoredResponse): string | Iterable<string, void, undefined> {
  return isLong(rest, 4 * chunkSize) ? textInChunks(rest, body) : `${JSON.stringify(rest)}\n${body}`;
}

function* textInChunks(rest: Omit<StoredResponse, "body">, body: string): Generator<string, void, undefined> {
  yield* jsonChunks(rest, chunkSize);
  yield `\n${body}`;
}

function readStored(text: string): StoredResponse {
  const end = text.indexOf("\n");
  const { chain, ...rest } = JSON.parse(text.slice(0, end)) as Omit<StoredResponse, "body"> & ListedChain;
  return {
    ...(chain && { previous: chain.at(-1), root: chain[0] }),
    ...rest,
    body: text.slice(end + 1),
  };
}

/** Earlier versions stored the ids of all responses before this one, the first one first. */
interface ListedChain {
  readonly chain?: readonly string[];
}

/** Items of another server have ids of their own. Under such an id, the id of the response is stored, after this mark. */
const pointer = ">";

/**
 * Returns the key under which a response of this server is stored, by its id or the id of one of its items. They have common digits (ids.ts),
 * so one key serves all. Any other id is its own key.
 */
export function storageKey(id: string): string {
  const shared = sharedDigits(id);
  return shared ? `${shared.head}${shared.group}` : wholeKey(id);
}

/** Keys of other texts contain spaces. */
function wholeKey(id: string): string {
  return id.includes(" ") ? `id ${id}` : id;
}

/**
 * Returns the keys under which a response may be stored, by its id or the id of one of its items. At OpenAI, all responses of a conversation
 * have the same digits in common (recordings of 2026-04), so those of a source are stored by their whole ids.
 */
export function keysOf(id: string): readonly string[] {
  const [key, whole] = [storageKey(id), wholeKey(id)];
  return key === whole ? [key] : [key, whole];
}

function keyOf({ id, inputId }: StoredResponse): string {
  return inputId === undefined ? storageKey(id) : wholeKey(id);
}

/** A stored response, and where it was found. */
export interface FoundResponse {
  readonly stored: StoredResponse;
  readonly keyspace: Keyspace;
}

export async function findResponse(keyspaces: Keyspaces, id: string): Promise<FoundResponse | undefined> {
  for (const keyspace of [keyspaces.temporary, keyspaces.stored]) {
    const stored = await findIn(keyspace, id);
    if (stored) return { stored, keyspace };
  }
  return undefined;
}

/** Returns the stored items with these ids, of requests and of responses. Reads each response once. */
export async function findItems(
  keyspaces: Keyspaces,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredItem>> {
  const [temporary, stored] = [itemsIn(keyspaces.temporary), itemsIn(keyspaces.stored)];
  const found = new Map<string, StoredItem>();
  const find = async (id: string): Promise<void> => {
    for (const itemsAt of [temporary, stored]) {
      for (const key of keysOf(id)) {
        const item = (await itemsAt(key))?.get(id);
        if (item) return void found.set(id, item);
      }
    }
  };
  for (let at = 0; at < ids.length; at += parallelReads) await Promise.all(ids.slice(at, at + parallelReads).map(find));
  return found;
}

type StoredItems = ReadonlyMap<unknown, StoredItem>;

/** Returns a function that reads the items of a response by its key or by that of an item, each key once. */
function itemsIn(keyspace: Keyspace): (key: string) => Promise<StoredItems | undefined> {
  const texts = new Map<string, Promise<{ readonly id: string; readonly items?: StoredItems } | undefined>>();
  const at = (key: string): ReturnType<typeof read> => {
    const reading = texts.get(key) ?? read(key);
    texts.set(key, reading);
    return reading;
  };
  /** Without items: another key has the response. */
  const read = async (key: string): Promise<{ readonly id: string; readonly items?: StoredItems } | undefined> => {
    const text = await keyspace.get(key);
    if (text?.startsWith(pointer) === true) return { id: text.slice(pointer.length) };
    const response = text === undefined ? undefined : readStored(text);
    return response && { id: response.id, items: itemsById([...outputOf(response), ...response.input]) };
  };
  return async (key) => {
    const found = await at(key);
    if (!found || found.items) return found?.items;
    for (const own of keysOf(found.id)) {
      const response = await at(own);
      if (response?.id === found.id && response.items) return response.items;
    }
    return undefined;
  };
}

/** The number of items that are read in parallel. A store in memory answers them without letting other requests have their turn. */
const parallelReads = 256;

/** Returns the items by their ids; of several with the same id, the first one. */
export function itemsById(items: readonly StoredItem[]): ReadonlyMap<unknown, StoredItem> {
  const found = new Map<unknown, StoredItem>();
  for (const item of items) if (!found.has(item["id"])) found.set(item["id"], item);
  return found;
}

/** Returns the response with this id from one store. */
export async function findIn(keyspace: Keyspace, id: string): Promise<StoredResponse | undefined> {
  for (const key of keysOf(id)) {
    const text = await keyspace.get(key);
    const stored = text === undefined || text.startsWith(pointer) ? undefined : readStored(text);
    if (stored?.id === id) return stored;
  }
  return undefined;
}

/** Returns the output of a response, reasoning with its `encrypted_content`. */
export function outputOf({ body, seals = {} }: Pick<StoredResponse, "body" | "seals">): StoredItem[] {
  const { output } = JSON.parse(body) as { readonly output: readonly StoredItem[] };
  return output.map((item) => {
    const encrypted = typeof item["id"] === "string" ? seals[item["id"]] : undefined;
    return encrypted === undefined ? item : { ...item, encrypted_content: encrypted };
  });
}

export function statusOf({ body }: StoredResponse): string {
  return (JSON.parse(body) as { readonly status: string }).status;
}

export async function putResponse(keyspace: Keyspace, stored: StoredResponse): Promise<void> {
  for (const key of otherKeys(stored)) await keyspace.set(key, pointer + stored.id);
  await keyspace.set(keyOf(stored), storedText(stored));
}

export async function deleteResponse(keyspace: Keyspace, stored: StoredResponse): Promise<void> {
  await keyspace.delete(keyOf(stored));
  await keyspace.delete(eventsKey(stored.id));
  for (const key of otherKeys(stored)) await keyspace.delete(key);
}

/** Returns the key under which the events of a background response are stored. */
export function eventsKey(id: string): string {
  return `events ${id}`;
}

/** Returns the key under which a background response is asked to stop: the text is `cancelled` or `deleted`. */
export function stopKey(id: string): string {
  return `stop ${id}`;
}

/** Returns the keys of items that differ from the key of their response. */
function otherKeys(stored: StoredResponse): string[] {
  const { inputId } = stored;
  const key = keyOf(stored);
  const ofItem = inputId === undefined ? storageKey : wholeKey;
  const ofOutput = outputOf(stored).flatMap(({ id }) =>
    typeof id === "string" && ofItem(id) !== key ? [ofItem(id)] : [],
  );
  return inputId === undefined ? ofOutput : [...ofOutput, storageKey(inputId)];
}
