import { Socket } from "node:net";
import { DefaultDeserializer, DefaultSerializer } from "node:v8";
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

/** What peers send each other. The number tells an answer's question. */
export type PeerMessage =
  | readonly ["tell", topic: string, body: unknown]
  | readonly ["ask", topic: string, body: unknown, id: number]
  | readonly ["answer", id: number, body: unknown]
  | readonly ["failed", id: number, message: string];

interface Asked {
  readonly resolve: (body: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A peer over anything that carries messages in order. Whoever makes it hands it what arrives, and tells it when the connection ends. */
export class MessagePeer implements Peer {
  readonly closed: Promise<void>;
  readonly #send: (message: PeerMessage) => void;
  readonly #answers = new Map<string, (body: unknown) => unknown>();
  readonly #hearers = new Map<string, (body: unknown) => void>();
  readonly #asked = new Map<number, Asked>();
  #lastId = 0;
  #isClosed = false;
  #tellClosed: () => void = () => {};

  /** `send` takes a copy before it returns, and throws where there can be none. */
  constructor(send: (message: PeerMessage) => void) {
    this.#send = send;
    this.closed = new Promise((resolve) => (this.#tellClosed = resolve));
  }

  ask(topic: string, body: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw connectionEnded();
      const id = ++this.#lastId;
      this.#send(["ask", topic, body, id]);
      this.#asked.set(id, { resolve, reject });
    });
  }

  tell(topic: string, body: unknown): void {
    if (!this.#isClosed) this.#send(["tell", topic, body]);
  }

  answer(topic: string, handler: (body: unknown) => unknown): void {
    if (this.#answers.has(topic)) throw new Error(`${topic} has a handler already.`);
    this.#answers.set(topic, handler);
  }

  hear(topic: string, handler: (body: unknown) => void): void {
    if (this.#hearers.has(topic)) throw new Error(`${topic} has a handler already.`);
    this.#hearers.set(topic, handler);
  }

  /** A message that arrived. */
  receive(message: PeerMessage): void {
    if (this.#isClosed) return;
    switch (message[0]) {
      case "tell":
        this.#hearers.get(message[1])?.(message[2]);
        return;
      case "ask":
        void this.#answer(message[1], message[2], message[3]);
        return;
      case "answer":
        this.#settle(message[1])?.resolve(message[2]);
        return;
      case "failed":
        this.#settle(message[1])?.reject(new Error(message[2]));
    }
  }

  /** The connection has ended. */
  end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { reject } of this.#asked.values()) reject(connectionEnded());
    this.#asked.clear();
    this.#tellClosed();
  }

  async #answer(topic: string, body: unknown, id: number): Promise<void> {
    try {
      const handler = this.#answers.get(topic);
      if (!handler) throw new Error(`Nobody answers ${topic}.`);
      const answer = await handler(body);
      if (!this.#isClosed) this.#send(["answer", id, answer]);
    } catch (error) {
      if (!this.#isClosed) this.#send(["failed", id, error instanceof Error ? error.message : String(error)]);
    }
  }

  #settle(id: number): Asked | undefined {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    return asked;
  }
}

function connectionEnded(): Error {
  return new Error("The connection between the processes of the server has ended.");
}

/** In front of each message: its length in bytes, little-endian. */
const prefix = Buffer.alloc(4);
/** No message is longer; what claims to be is no message of ours. A request holds its body twice, and the largest body is a setting. */
const mostBytes = 2 ** 31;

/** A message as bytes. Throws where it holds what cannot be copied: a function, a symbol. */
export function writeFrame(message: unknown): Buffer {
  const serializer = new DefaultSerializer();
  serializer.writeRawBytes(prefix);
  serializer.writeHeader();
  serializer.writeValue(message);
  const frame = serializer.releaseBuffer();
  frame.writeUInt32LE(frame.length - prefix.length);
  return frame;
}

/** Reads messages from bytes that come in pieces of any length. */
export class FrameReader {
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** So many bytes are needed before there is anything to read. */
  #needed = prefix.length;

  /** The messages that these bytes complete. Throws for bytes that no `writeFrame` wrote. */
  read(bytes: Buffer): unknown[] {
    this.#heldBytes += bytes.length;
    if (this.#heldBytes < this.#needed) {
      this.#held.push(bytes);
      return [];
    }
    const all = this.#held.length === 0 ? bytes : Buffer.concat([...this.#held, bytes]);
    const messages: unknown[] = [];
    let at = 0;
    for (;;) {
      const left = all.length - at;
      this.#needed = prefix.length;
      if (left < this.#needed) break;
      const length = all.readUInt32LE(at);
      if (length > mostBytes) throw new Error(`A message of ${length} bytes is none.`);
      this.#needed += length;
      if (left < this.#needed) break;
      messages.push(readMessage(all.subarray(at + prefix.length, at + this.#needed)));
      at += this.#needed;
    }
    this.#heldBytes = all.length - at;
    this.#held = this.#heldBytes === 0 ? [] : [all.subarray(at)];
    return messages;
  }
}

function readMessage(bytes: Buffer): unknown {
  const deserializer = new DefaultDeserializer(bytes);
  deserializer.readHeader();
  return deserializer.readValue();
}

/**
 * Beside stdin, stdout, stderr and the channel of node:cluster, a worker has a socket to its primary process. It has no name and no file,
 * so nobody else can connect to it, and it is gone with the two processes.
 */
export const peerDescriptor = 4;

/** In a worker: the socket to its primary process. */
export function openWorkerSocket(): Socket {
  return new Socket({ fd: peerDescriptor, readable: true, writable: true });
}
