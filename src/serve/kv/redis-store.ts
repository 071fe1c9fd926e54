import { RedisConnection } from "./redis-connection.ts";
import type { Store, StoreLimits, TextEnd } from "./store.ts";

/** How long one command may take, in milliseconds: a client waits for it. */
const timeoutMs = 3000;

/**
 * Opens a store in Redis or Valkey. `warn` gets a line when the connection is lost and when it is back. Rejects where the server cannot
 * be reached.
 */
export async function openRedisStore(url: string, limits: StoreLimits, warn: (line: string) => void): Promise<Store> {
  let isOpen = false;
  const connection = new RedisConnection(url, {
    timeoutMs,
    onLost(error) {
      const reason = error instanceof Error ? error.message || error.name : String(error);
      if (isOpen) warn(`the store's Redis cannot be reached: ${reason}`);
    },
    onBack: () => warn("the store's Redis is back"),
  });
  try {
    await connection.opened;
  } catch (error) {
    await connection.close();
    throw error;
  }
  isOpen = true;
  return new RedisStore(connection, limits);
}

/**
 * Returns the secret under a name, which is set to `fresh` if there is none: all instances get the same one. It has no age. Rejects where the
 * server cannot be reached.
 */
export async function openRedisSecret(url: string, name: string, fresh: string): Promise<string> {
  const connection = new RedisConnection(url, { timeoutMs, onLost() {}, onBack() {} });
  try {
    await connection.opened;
    await connection.run((client) => client.set(prefix + name, fresh, { condition: "NX" }));
    return (await connection.run((client) => client.get(prefix + name))) ?? fresh;
  } finally {
    await connection.close();
  }
}

/**
 * A store in Redis or Valkey, which several instances share. It forgets what is too old by itself; how much it holds is its own setting
 * (`maxmemory`, with a policy such as `allkeys-lru`).
 */
class RedisStore implements Store {
  readonly #connection: RedisConnection;
  readonly #maxAgeMs: number;

  constructor(connection: RedisConnection, limits: StoreLimits) {
    this.#connection = connection;
    this.#maxAgeMs = limits.maxAgeMs;
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#connection.run((client) => client.get(prefix + key))) ?? undefined;
  }

  async set(key: string, text: string): Promise<void> {
    const expiration = { type: "PX", value: this.#maxAgeMs } as const;
    await this.#connection.run((client) => client.set(prefix + key, text, { expiration }));
  }

  async readFrom(key: string, from: number): Promise<TextEnd | undefined> {
    const options = { keys: [prefix + key], arguments: [String(from)] };
    const reply = await this.#connection.run((client) => client.eval(readFromScript, options));
    if (!Array.isArray(reply)) return undefined;
    const [size, text] = reply as [number, string];
    return { text, size };
  }

  async append(key: string, text: string, creates = false): Promise<boolean> {
    const options = { keys: [prefix + key], arguments: [text, String(this.#maxAgeMs), creates ? "1" : "0"] };
    return (await this.#connection.run((client) => client.eval(appendScript, options))) === 1;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#connection.run((client) => client.del(prefix + key))) > 0;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

const prefix = "truewire:";

/** Redis runs a script atomically. A missing key has length 0; no stored text is empty. */
const readFromScript = `
local size = redis.call("STRLEN", KEYS[1])
if size == 0 then return false end
return { size, redis.call("GETRANGE", KEYS[1], ARGV[1], -1) }
`;
const appendScript = `
local existed = redis.call("EXISTS", KEYS[1])
if existed == 0 and ARGV[3] == "0" then return 0 end
redis.call("APPEND", KEYS[1], ARGV[1])
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return existed
`;
