import { isLong, jsonInPieces } from "../../../core/json-in-pieces.ts";
import type { Shelf, Shelves } from "../../port-state.ts";

export type Item = Readonly<Record<string, unknown>>;

/** What is kept of a response. */
export interface KeptResponse {
  readonly id: string;
  /** The response whose conversation came before `input`, and the first response of that conversation. Both are kept themselves. */
  readonly previous?: string;
  readonly root?: string;
  /** What was put in after it, with ids. */
  readonly input: readonly Item[];
  /** Thoughts with what their maker needs to read them again, by the item's id; the body shows it only on request. */
  readonly seals?: Readonly<Record<string, string>>;
  /** Only while it is being generated without a client. */
  readonly running?: RunningResponse;
  /** The response as JSON, in the form in which it was answered. */
  readonly body: string;
  /** The characters of the text that is kept. */
  readonly characters: number;
}

/** A response that is being generated without a client. */
export interface RunningResponse {
  /** The time of the last sign of life of its process, in Unix seconds. */
  readonly aliveAt: number;
  /** Names that process; absent where it has no name. */
  readonly process?: string;
  /** The bodies that are true if the process has ended, and if the response is cancelled. */
  readonly failed: string;
  readonly cancelled: string;
}

/** A response that is to be kept. */
export type NewResponse = Omit<KeptResponse, "characters">;

/** In characters: so many are written at once. */
const pieceSize = 64 * 1024;

function keptText({ body, ...rest }: NewResponse): string | Iterable<string, void, undefined> {
  return isLong(rest, 4 * pieceSize) ? keptInPieces(rest, body) : `${JSON.stringify(rest)}\n${body}`;
}

function* keptInPieces(rest: Omit<NewResponse, "body">, body: string): Generator<string, void, undefined> {
  yield* jsonInPieces(rest, pieceSize);
  yield `\n${body}`;
}

function readKept(text: string): KeptResponse {
  const end = text.indexOf("\n");
  const { chain, ...rest } = JSON.parse(text.slice(0, end)) as Omit<NewResponse, "body"> & ListedChain;
  return {
    ...(chain && { previous: chain.at(-1), root: chain[0] }),
    ...rest,
    body: text.slice(end + 1),
    characters: text.length,
  };
}

/** Earlier versions kept all responses before this one, the first one first. */
interface ListedChain {
  readonly chain?: readonly string[];
}

/** Items of another server's making have ids of their own: under these, the id of their response is kept. */
const pointer = ">";

/**
 * Where a response is kept, or the item of one: OpenAI gives a response and its items ids with common digits (ids.ts), so one key
 * serves all. Any other id is its own key.
 */
export function keyOf(id: string): string {
  const digits = /^[a-z]+_([0-9a-f]{16})0[01][0-9a-f]{12}([0-9a-f]{4})[0-9a-f]{16}$/.exec(id);
  return digits ? `${digits[1]}${digits[2]}` : id;
}

/** A response, and the shelf that it is on. */
export interface FoundResponse {
  readonly kept: KeptResponse;
  readonly isBrief: boolean;
}

export async function findResponse(shelves: Shelves, id: string): Promise<FoundResponse | undefined> {
  const found = await find(shelves, id);
  return found?.kept.id === id ? found : undefined;
}

/**
 * The items of these ids that are kept: what a model said, or what it was told. Each response is read once, however many are wanted of it.
 */
export async function findItems(shelves: Shelves, ids: readonly string[]): Promise<ReadonlyMap<string, Item>> {
  const responses = new Map<string, Promise<ReadonlyMap<unknown, Item> | undefined>>();
  const itemsAt = (isBrief: boolean, key: string): Promise<ReadonlyMap<unknown, Item> | undefined> => {
    const place = `${isBrief} ${key}`;
    const known = responses.get(place);
    if (known) return known;
    const reading = read(isBrief, key);
    responses.set(place, reading);
    return reading;
  };
  const read = async (isBrief: boolean, key: string): Promise<ReadonlyMap<unknown, Item> | undefined> => {
    const text = await (isBrief ? shelves.brief : shelves.lasting).get(key);
    if (text?.startsWith(pointer) === true) return itemsAt(isBrief, keyOf(text.slice(pointer.length)));
    const kept = text === undefined ? undefined : readKept(text);
    return kept && itemsById([...outputOf(kept), ...kept.input]);
  };
  const found = new Map<string, Item>();
  const find = async (id: string): Promise<void> => {
    const items = (await itemsAt(true, keyOf(id))) ?? (await itemsAt(false, keyOf(id)));
    const item = items?.get(id);
    if (item) found.set(id, item);
  };
  for (let at = 0; at < ids.length; at += atOnce) await Promise.all(ids.slice(at, at + atOnce).map(find));
  return found;
}

/** A store in memory answers so many at once; the next ones wait for it to let others have their turn. */
const atOnce = 256;

/** Of items with the same id, the first one. */
export function itemsById(items: readonly Item[]): ReadonlyMap<unknown, Item> {
  const found = new Map<unknown, Item>();
  for (const item of items) if (!found.has(item["id"])) found.set(item["id"], item);
  return found;
}

async function find(shelves: Shelves, id: string): Promise<FoundResponse | undefined> {
  for (const isBrief of [true, false]) {
    const kept = await readFrom(isBrief ? shelves.brief : shelves.lasting, keyOf(id));
    if (kept) return { kept, isBrief };
  }
  return undefined;
}

async function readFrom(shelf: Shelf, key: string): Promise<KeptResponse | undefined> {
  const text = await shelf.get(key);
  if (text === undefined) return undefined;
  return text.startsWith(pointer) ? readFrom(shelf, keyOf(text.slice(pointer.length))) : readKept(text);
}

/** The response of this id on one shelf. */
export async function findOn(shelf: Shelf, id: string): Promise<KeptResponse | undefined> {
  const found = await readFrom(shelf, keyOf(id));
  return found?.id === id ? found : undefined;
}

/** What the model said in it; thoughts with their seals. */
export function outputOf({ body, seals = {} }: NewResponse): Item[] {
  const { output } = JSON.parse(body) as { readonly output: readonly Item[] };
  return output.map((item) => {
    const seal = typeof item["id"] === "string" ? seals[item["id"]] : undefined;
    return seal === undefined ? item : { ...item, encrypted_content: seal };
  });
}

export function statusOf({ body }: KeptResponse): string {
  return (JSON.parse(body) as { readonly status: string }).status;
}

export async function putResponse(shelf: Shelf, kept: NewResponse): Promise<void> {
  const key = keyOf(kept.id);
  for (const id of ownIds(kept)) await shelf.set(id, pointer + kept.id);
  await shelf.set(key, keptText(kept));
}

export async function deleteResponse(shelf: Shelf, kept: KeptResponse): Promise<void> {
  await shelf.delete(keyOf(kept.id));
  await shelf.delete(eventsKey(kept.id));
  for (const id of ownIds(kept)) await shelf.delete(id);
}

/** Where the events of a response are kept that was generated without a client. */
export function eventsKey(id: string): string {
  return `events ${id}`;
}

/** Where it is noted that such a response is to stop: `cancelled`, or `deleted`. */
export function stopKey(id: string): string {
  return `stop ${id}`;
}

/** The ids of what the model said under which the response would not be found. */
function ownIds(kept: NewResponse): string[] {
  const key = keyOf(kept.id);
  return outputOf(kept).flatMap(({ id }) => (typeof id === "string" && keyOf(id) !== key ? [keyOf(id)] : []));
}
