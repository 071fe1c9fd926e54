import { createClient } from "@redis/client";

/** The client of the library, with RESP2. */
type RedisClient = ReturnType<typeof newClient>;

/** The delays between two attempts to connect, in milliseconds: the first one, and the longest. */
const firstDelayMs = 100;
const maxDelayMs = 5000;
/** The longest time that one attempt to connect may take, the handshake included, in milliseconds. */
const connectTimeoutMs = 3000;
/** How often an idle connection is tested, in milliseconds. */
const pingIntervalMs = 30_000;

export interface RedisConnectionOptions {
  /** The longest time that one command may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Called once when the connection is lost, and after the first attempt if that fails. */
  readonly onLost: (error: unknown) => void;
  /** Called when the connection is there again. */
  readonly onBack: () => void;
}

/**
 * A connection to Redis or Valkey on which every command ends in time. The client library's own `timeout` option covers only commands
 * that wait to be sent: a command that was sent to a server that hangs (SIGSTOP, a full disk, a lost network) never settles there.
 *
 * A command that gets no reply within `timeoutMs` rejects. If the server has replied to nothing since the command was sent, the
 * connection is closed, which rejects all other commands in flight, and a new one is opened: each attempt is limited, too, because the
 * kernel accepts connections for a process that is stopped. While there is no connection, commands reject immediately.
 */
export class RedisConnection {
  readonly #url: string;
  readonly #options: RedisConnectionOptions;
  readonly #pings: NodeJS.Timeout;
  /** Resolves when the first attempt has connected; rejects with its error. Later attempts follow in both cases, until `close`. */
  readonly opened: Promise<void>;
  #client: RedisClient | undefined;
  #retry: NodeJS.Timeout | undefined;
  #failedAttempts = 0;
  /** Counts the replies of all connections. */
  #replies = 0;
  #isClosed = false;

  constructor(url: string, options: RedisConnectionOptions) {
    this.#url = url;
    this.#options = options;
    this.#pings = setInterval(() => void this.run((client) => client.ping()).catch(() => {}), pingIntervalMs).unref();
    this.opened = this.#connect();
    this.opened.catch((error: unknown) => {
      if (!this.#isClosed) options.onLost(error);
    });
  }

  get isReady(): boolean {
    return this.#client !== undefined;
  }

  /** Runs one command. Rejects with the server's error, or when there is no connection, or no reply within `timeoutMs`. */
  async run<T>(command: (client: RedisClient) => Promise<T>): Promise<T> {
    const client = this.#client;
    if (!client) throw new Error("There is no connection to Redis.");
    const repliesBefore = this.#replies;
    const { timeoutMs } = this.#options;
    try {
      const reply = await within(timeoutMs, command(client));
      this.#replies++;
      return reply;
    } catch (error) {
      if (error instanceof NoReply && this.#replies === repliesBefore) this.#lose(client, error);
      throw error;
    }
  }

  /** Waits for the commands in flight, but no longer than they may take. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#pings);
    clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = undefined;
    if (!client) return;
    await within(this.#options.timeoutMs, client.close()).catch(() => destroy(client));
  }

  /** One attempt; where it fails, the next one follows after a delay. */
  async #connect(): Promise<void> {
    const client = newClient(this.#url);
    // A client without a listener throws.
    client.on("error", (error: unknown) => this.#lose(client, error));
    try {
      await within(connectTimeoutMs, client.connect());
    } catch (error) {
      destroy(client);
      this.#connectLater();
      throw error;
    }
    if (this.#isClosed) return destroy(client);
    this.#failedAttempts = 0;
    this.#client = client;
  }

  #connectLater(): void {
    if (this.#isClosed) return;
    const delay = Math.min(firstDelayMs * 2 ** this.#failedAttempts++, maxDelayMs);
    this.#retry = setTimeout(() => {
      this.#connect().then(
        () => {
          if (this.#client) this.#options.onBack();
        },
        () => {},
      );
    }, delay).unref();
  }

  #lose(client: RedisClient, error: unknown): void {
    if (client !== this.#client) return;
    this.#client = undefined;
    destroy(client);
    this.#options.onLost(error);
    this.#connectLater();
  }
}

class NoReply extends Error {}

/** A timer that fires this many milliseconds late was delayed by this process, which has not read a reply meanwhile. */
const heldUpMs = 20;

/** Rejects with `NoReply` after `ms` milliseconds, plus the delay of this process, at most `ms` more. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = (): void => reject(new NoReply(`no answer within ${ms} ms`));
    const due = performance.now() + ms;
    timer = setTimeout(() => {
      const heldUp = performance.now() - due;
      if (heldUp < heldUpMs) giveUp();
      else timer = setTimeout(giveUp, Math.min(heldUp, ms));
    }, ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function destroy(client: RedisClient): void {
  // Throws for a client that is closed already.
  if (client.isOpen) client.destroy();
}

/** A client that neither queues commands while it has no connection nor connects again by itself: `RedisConnection` does that. */
function newClient(url: string) {
  return createClient({
    url,
    // Every server and proxy supports RESP2; RESP3, the default of the library, needs Redis 6.
    RESP: 2,
    disableOfflineQueue: true,
    socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: (_tries: number, cause: Error) => cause },
  });
}
