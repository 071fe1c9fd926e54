import type { Socket } from "node:net";
import { FrameReader, writeFrame } from "./frames.ts";
import { MessagePeer } from "./message-peer.ts";
import type { PeerMessage } from "./message-peer.ts";
import type { Peer } from "./peer.ts";

/** A side that has left so much unread does not read any more: the connection ends. In bytes. */
const mostUnread = 2 ** 31;

/** A peer over a connected socket. What is sent within one turn of the event loop is written together. */
export function socketPeer(socket: Socket): Peer {
  let isCorked = false;
  const peer = new MessagePeer((message) => {
    const frame = writeFrame(message);
    if (!isCorked) {
      isCorked = true;
      socket.cork();
      setImmediate(() => {
        isCorked = false;
        socket.uncork();
      });
    }
    socket.write(frame);
    if (socket.writableLength > mostUnread) socket.destroy();
  });
  const reader = new FrameReader();
  socket.on("data", (bytes) => {
    const messages = readFrom(reader, bytes);
    // Neither side writes what the other one cannot read; if that happens, one connection ends, and not the process.
    if (!messages) socket.destroy();
    else for (const message of messages) peer.receive(message as PeerMessage);
  });
  // What ended it does not matter: a broken pipe is how the end of a process looks.
  socket.on("error", () => {});
  socket.on("close", () => peer.end());
  return peer;
}

/** undefined: the bytes are no messages. */
function readFrom(reader: FrameReader, bytes: Buffer): readonly unknown[] | undefined {
  try {
    return reader.read(bytes);
  } catch {
    return undefined;
  }
}
