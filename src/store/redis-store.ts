import { createClient } from "@redis/client";
import type { Store, StoreLimits } from "./store.ts";

/** How long a connection, and one command, may take, in milliseconds: a client waits for it. */
const timeout = 3000;

/**
 * Opens a store in Redis or Valkey. `warn` gets a line when the connection is lost. Rejects where the server cannot be reached.
 */
export async function openRedisStore(url: string, limits: StoreLimits, warn: (line: string) => void): Promise<Store> {
  const client = clientOf(url);
  let opened = false;
  client.on("error", (error: unknown) => {
    if (opened) warn(`the store's Redis cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
  });
  await client.connect();
  opened = true;
  return new RedisStore(client, limits);
}

/**
 * A store in Redis or Valkey, which several instances share. It forgets what is too old by itself; how much it holds is its own setting
 * (`maxmemory`, with a policy such as `allkeys-lru`).
 */
class RedisStore implements Store {
  readonly #client: ReturnType<typeof clientOf>;
  readonly #maxAgeMs: number;

  constructor(client: ReturnType<typeof clientOf>, limits: StoreLimits) {
    this.#client = client;
    this.#maxAgeMs = limits.maxAgeMs;
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#client.get(prefix + key)) ?? undefined;
  }

  async set(key: string, text: string): Promise<void> {
    await this.#client.set(prefix + key, text, { expiration: { type: "PX", value: this.#maxAgeMs } });
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#client.del(prefix + key)) > 0;
  }

  async close(): Promise<void> {
    if (this.#client.isReady) await this.#client.close();
    else this.#client.destroy();
  }
}

const prefix = "truewire:";

/** A client that tries on for ever once it was connected, and lets no command wait for that. */
// oxlint-disable-next-line typescript/explicit-function-return-type -- the client's type names all of its commands
function clientOf(url: string) {
  let wasReady = false;
  const client = createClient({
    url,
    disableOfflineQueue: true,
    commandOptions: { timeout },
    pingInterval: 30_000,
    socket: {
      connectTimeout: timeout,
      reconnectStrategy: (tries: number, cause: Error) => (wasReady ? Math.min(100 * 2 ** tries, 5000) : cause),
    },
  });
  return client.on("ready", () => {
    wasReady = true;
  });
}
