import type { Assembled, Shelf, Shelves } from "../apis/port-state.ts";
import { FailureError } from "../core/failure.ts";
import { BoundedIndex } from "../kv/memory-store.ts";
import { ownerOf } from "../kv/store.ts";
import type { Store } from "../kv/store.ts";
import { hashOf } from "./keys/key-ring.ts";
import type { Client } from "./keys/key-ring.ts";
import { inTurns, turn } from "./turns.ts";

/**
 * What is assembled from stored texts, for all owners. After `maxAgeMs` it is assembled again: then the texts count as asked for, and a
 * text that has made way is missed.
 */
export class AssembledTexts {
  readonly #index = new BoundedIndex<Remembered>(
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

interface Remembered {
  readonly value: object;
  /** When it was first set, by the clock of `Date.now`. */
  readonly at: number;
}

/**
 * The shelves of an owner: no client finds what another one has kept. `ofConnection`: the store that ends with the connection, where it
 * takes further requests.
 */
export interface ClientStores {
  readonly store: Store;
  readonly brief: Store;
  readonly assembled: AssembledTexts;
}

export function shelvesOf({ store, brief, assembled }: ClientStores, owner: string, ofConnection?: Store): Shelves {
  return {
    lasting: shelf(store, owner),
    brief: shelf(ofConnection ?? brief, owner),
    assembled: assembled.of(owner),
    ofConnection: ofConnection !== undefined,
  };
}

/**
 * What stands for a client where its key ("": none) must not: its name, so that a new key of that name finds what was kept; else the
 * key's hash.
 */
export async function storeOwnerOf(client: Client | undefined, key: string): Promise<string> {
  return client?.name === undefined ? hashOf(key) : `@${encodeURIComponent(client.name)}`;
}

/** Texts, and characters, that are read in about a millisecond. */
const many = 128;
const long = 2048;

function shelf(store: Store, owner: string): Shelf {
  let read = 0;
  return {
    async get(key) {
      const text = await store.get(`${owner} ${key}`);
      // Whoever asked will read it: that takes a while, and one request may ask for thousands.
      read += 1 + (text?.length ?? 0) / long;
      if (read < many) return text;
      read = 0;
      await turn();
      return text;
    },
    async set(key, text) {
      await store.set(`${owner} ${key}`, typeof text === "string" ? text : await inTurns(joined(text)));
    },
    delete: (key) => store.delete(`${owner} ${key}`),
  };
}

function* joined(texts: Iterable<string, void, undefined>): Generator<undefined, string, undefined> {
  const pieces: string[] = [];
  for (const text of texts) {
    pieces.push(text);
    yield;
  }
  return pieces.join("");
}

/** What a store rejects with, as a failure that a client is told; a `FailureError` is one already. */
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
