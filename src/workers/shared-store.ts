import type { Store, TextEnd } from "../kv/store.ts";
import type { Peer } from "./peer.ts";

/** A store of the primary process: the server's store, the one in memory for some minutes, or that of turns. */
export type StoreName = "lasting" | "brief" | "turns";

/** A worker's store: the texts are in the primary process, so every worker finds them. */
export class SharedStore implements Store {
  readonly #primary: Peer;
  readonly #name: StoreName;

  constructor(primary: Peer, name: StoreName) {
    this.#primary = primary;
    this.#name = name;
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#primary.request(`store.${this.#name}.get`, key)) as string | undefined;
  }

  async set(key: string, text: string): Promise<void> {
    await this.#primary.request(`store.${this.#name}.set`, [key, text]);
  }

  async readFrom(key: string, from: number): Promise<TextEnd | undefined> {
    return (await this.#primary.request(`store.${this.#name}.read-from`, [key, from])) as TextEnd | undefined;
  }

  async append(key: string, text: string): Promise<boolean> {
    return (await this.#primary.request(`store.${this.#name}.append`, [key, text])) as boolean;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#primary.request(`store.${this.#name}.delete`, key)) as boolean;
  }

  async close(): Promise<void> {}
}

/** In the primary process: lets a worker use a store. */
export function shareStore(worker: Peer, name: StoreName, store: Store): void {
  worker.onRequest(`store.${name}.get`, (key) => store.get(key as string));
  worker.onRequest(`store.${name}.set`, (body) => {
    const [key, text] = body as readonly [key: string, text: string];
    return store.set(key, text);
  });
  worker.onRequest(`store.${name}.read-from`, (body) => store.readFrom(...(body as readonly [string, number])));
  worker.onRequest(`store.${name}.append`, (body) => store.append(...(body as readonly [string, string])));
  worker.onRequest(`store.${name}.delete`, (key) => store.delete(key as string));
}
