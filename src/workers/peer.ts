/**
 * The other end of the connection between the primary process and one of its workers. Messages are copies, as of `v8.serialize`: plain
 * data, no functions. They arrive in the order in which they were sent.
 */
export interface Peer {
  /** Sends a request and resolves to the answer. Rejects with the message of the other side's error, and when the connection ends first. */
  request(topic: string, body: unknown): Promise<unknown>;
  /** Sends a notification. It is lost if the connection has ended. */
  notify(topic: string, body: unknown): void;
  /** Sets the handler for requests on a topic. */
  onRequest(topic: string, handler: (body: unknown) => unknown): void;
  /** Sets the handler for notifications on a topic. */
  onNotification(topic: string, handler: (body: unknown) => void): void;
  /** Resolves when the connection has ended, for any reason. */
  readonly closed: Promise<void>;
}

/** Sends the same request to several peers, and resolves to the answers that arrive within `timeoutMs` milliseconds. */
export async function askAll(
  peers: readonly Peer[],
  topic: string,
  timeoutMs: number,
  body?: unknown,
): Promise<ReadonlyMap<Peer, unknown>> {
  const answers = new Map<Peer, unknown>();
  const requests = peers.map(async (peer) => answers.set(peer, await peer.request(topic, body)));
  await within(timeoutMs, Promise.allSettled(requests));
  return new Map(answers);
}

/** Resolves with `work`, or after `ms` milliseconds. */
export async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
