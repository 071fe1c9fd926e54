import { deserialize, serialize } from "node:v8";
import { MessagePeer } from "../../src/workers/socket-peer.ts";
import type { PeerMessage } from "../../src/workers/socket-peer.ts";
import type { Peer } from "../../src/workers/peer.ts";

export interface PeerPair {
  readonly primary: Peer;
  readonly worker: Peer;
  /** Ends the connection; what is under way is lost. */
  end(): void;
}

/** Two peers that are connected without a socket. Each message is a copy, and arrives in a later turn of the event loop. */
export function peerPair(): PeerPair {
  const towards = (other: () => MessagePeer) => (message: PeerMessage) => {
    const copy = serialize(message);
    setImmediate(() => other().receive(deserialize(copy) as PeerMessage));
  };
  const primary: MessagePeer = new MessagePeer(towards(() => worker));
  const worker: MessagePeer = new MessagePeer(towards(() => primary));
  return {
    primary,
    worker,
    end() {
      primary.end();
      worker.end();
    },
  };
}
