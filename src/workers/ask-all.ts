import type { Peer } from "./peer.ts";

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
