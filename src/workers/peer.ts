/**
 * The other end of the connection between the primary process and one of its workers. What is sent is a copy, as of `v8.serialize`:
 * plain data, no functions. Messages arrive in the order in which they were sent.
 */
export interface Peer {
  /** Asks, and waits for the answer. Rejects with the other side's message when its handler failed, and when the connection ends first. */
  ask(topic: string, body: unknown): Promise<unknown>;
  /** Tells, and does not wait. Lost when the connection has ended. */
  tell(topic: string, body: unknown): void;
  /** Answers what the other side asks about a topic: one handler a topic. */
  answer(topic: string, handler: (body: unknown) => unknown): void;
  /** Hears what the other side tells about a topic: one handler a topic. */
  hear(topic: string, handler: (body: unknown) => void): void;
  /** Resolves when the connection has ended, for whatever reason. */
  readonly closed: Promise<void>;
}

/** Asks several peers the same, and resolves with the answers that came within so many milliseconds. */
export async function askAll(
  peers: readonly Peer[],
  topic: string,
  patienceMs: number,
): Promise<ReadonlyMap<Peer, unknown>> {
  const answers = new Map<Peer, unknown>();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, patienceMs)));
  const asked = peers.map(async (peer) => answers.set(peer, await peer.ask(topic, undefined)));
  await Promise.race([Promise.allSettled(asked), late]);
  clearTimeout(timer);
  return new Map(answers);
}
