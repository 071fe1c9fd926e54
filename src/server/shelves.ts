import type { Store } from "../kv/store.ts";
import type { Shelf, Shelves } from "../apis/port-state.ts";
import type { Client } from "./keys/client.ts";
import { hashOf } from "./keys/key-hash.ts";
import type { Service } from "./service.ts";
import { inTurns, turn } from "./turns.ts";

/**
 * The shelves of an owner: no client finds what another one has kept. `ofConnection`: the store that ends with the connection, where it
 * takes further requests.
 */
export function shelvesOf({ store, brief, assembled }: Service, owner: string, ofConnection?: Store): Shelves {
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
export async function ownerOf(client: Client | undefined, key: string): Promise<string> {
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
