import type { Caller } from "./caller.ts";
import type { Assembled, Keyspace, Keyspaces } from "../../wire/apis/port-state.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { joinChunks } from "../../wire/core/json-chunks.ts";
import { BoundedIndex } from "../kv/memory-store.ts";
import { ownerOf } from "../kv/store.ts";
import type { Store } from "../kv/store.ts";
import { hashOf } from "./keys/key-ring.ts";
import type { HttpExchange } from "./exchange.ts";
import { inTurns, turn } from "./turns.ts";

/** Where the server keeps what APIs store for their clients. */
export interface ClientStores {
  readonly store: Store;
  /** For some minutes, in memory: what must not be stored permanently. */
  readonly brief: Store;
  readonly assembled: AssembledTexts;
  /** Files and batches; absent: the server keeps none. */
  readonly files?: FileStore | undefined;
}

/** Where files and batches are kept. */
export interface FileStore {
  readonly store: Store;
  /** The size of the largest file, in bytes. */
  readonly maxBytes: number;
  /** How long a file is kept, in milliseconds. */
  readonly maxAgeMs: number;
}

/**
 * The keyspaces of an owner: no client finds what another one has stored. `ofConnection`: the store of a connection that takes further
 * requests.
 */
export function keyspacesOf({ store, brief, assembled }: ClientStores, owner: string, ofConnection?: Store): Keyspaces {
  return {
    stored: keyspace(store, owner),
    temporary: ofConnection ? keyspace(ofConnection, connectionOwner) : keyspace(brief, owner),
    assembled: assembled.of(owner),
    ofConnection: ofConnection !== undefined,
  };
}

/**
 * The owner under which a client's texts are stored: its name, so that a new key of that name finds them, or else the hash of its key ("":
 * no key).
 */
export async function storeOwnerOf({ caller: { client }, key, exchange }: OwnerFacts): Promise<string> {
  if (exchange.ofBatch) return exchange.ofBatch.owner;
  return client?.name === undefined ? hashOf(key) : `@${encodeURIComponent(client.name)}`;
}

/** What of a `Reply` says whose request it answers. */
interface OwnerFacts {
  readonly caller: Caller;
  readonly key: string;
  readonly exchange: Pick<HttpExchange, "ofBatch">;
}

/** A connection belongs to one client, so its store has one owner. */
const connectionOwner = "";

/** Deletes a text from the store of a connection. */
export async function deleteFromConnection(store: Store, key: string): Promise<void> {
  await store.delete(`${connectionOwner} ${key}`);
}

/** Reading this many texts, or characters of a text counted as one more, takes about a millisecond. */
const textsPerTurn = 128;
const charactersPerText = 2048;

/** The texts of an owner. */
export function keyspace(store: Store, owner: string): Keyspace {
  let read = 0;
  /** The caller parses the text, and one request may read thousands: other requests get their turn in between. */
  const counted = async (text: string | undefined): Promise<void> => {
    read += 1 + (text?.length ?? 0) / charactersPerText;
    if (read < textsPerTurn) return;
    read = 0;
    await turn();
  };
  return {
    async get(key) {
      const text = await store.get(`${owner} ${key}`);
      await counted(text);
      return text;
    },
    async readFrom(key, from) {
      const end = await store.readFrom(`${owner} ${key}`, from);
      await counted(end?.text);
      return end;
    },
    append: (key, text, creates) => store.append(`${owner} ${key}`, text, creates),
    async set(key, text) {
      await store.set(`${owner} ${key}`, typeof text === "string" ? text : await inTurns(joinChunks(text)));
    },
    delete: (key) => store.delete(`${owner} ${key}`),
  };
}

/** The failure that a client receives when a store rejects; a `FailureError` is returned unchanged. */
export function storeFailure(error: unknown): FailureError {
  if (error instanceof FailureError) return error;
  return new FailureError({
    kind: "unavailable",
    message: "What is stored cannot be reached just now. Please try again later.",
    status: 503,
    param: null,
    code: null,
    retryAfterSeconds: 1,
    cause: error,
  });
}

/**
 * What was assembled from stored texts, for all owners. After `maxAgeMs` it is assembled again, which marks the texts as recently used, and
 * notices a text that has been evicted.
 */
export class AssembledTexts {
  readonly #index = new BoundedIndex<AssembledValue>(
    { maxCount: 10_000, maxBytes: 64 * 1024 * 1024, maxAgeMs: 5 * 60_000 },
    ownerOf,
    () => {},
  );

  of(owner: string): Assembled {
    return {
      get: (key) => this.#index.get(`${owner} ${key}`)?.value,
      set: (key, value, characters) => {
        const known = this.#index.get(`${owner} ${key}`);
        const at = known?.value === value ? known.at : Date.now();
        // A character takes up to two bytes in memory.
        this.#index.set(`${owner} ${key}`, { value, at }, 2 * characters, at);
      },
      delete: (key) => void this.#index.delete(`${owner} ${key}`),
      unique: () => crypto.randomUUID(),
    };
  }
}

interface AssembledValue {
  readonly value: object;
  /** When it was first set, by the clock of `Date.now`. */
  readonly at: number;
}
