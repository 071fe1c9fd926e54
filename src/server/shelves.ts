import type { Store } from "../store/store.ts";
import type { Shelf, Shelves } from "../wire/port-state.ts";
import { sha256 } from "./api-keys.ts";
import type { Service } from "./service.ts";

/**
 * The shelves of the client with this key ("": none). They are told apart by the key's hash, so no client finds what another one's key
 * has kept. `ofConnection`: the store that ends with the connection, where it takes further requests.
 */
export async function shelvesOf({ store, brief }: Service, key: string, ofConnection?: Store): Promise<Shelves> {
  const owner = await ownerOf(key);
  return {
    lasting: shelf(store, owner),
    brief: shelf(ofConnection ?? brief, owner),
    ofConnection: ofConnection !== undefined,
  };
}

/** What stands for a client's key where the key itself must not. */
export async function ownerOf(key: string): Promise<string> {
  let text = "";
  for (const byte of await sha256(key)) text += byte.toString(16).padStart(2, "0");
  return text;
}

function shelf(store: Store, owner: string): Shelf {
  return {
    get: (key) => store.get(`${owner} ${key}`),
    set: (key, text) => store.set(`${owner} ${key}`, text),
    delete: (key) => store.delete(`${owner} ${key}`),
  };
}
