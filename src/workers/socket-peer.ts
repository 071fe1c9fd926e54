import { Socket } from "node:net";
import { DefaultDeserializer, DefaultSerializer } from "node:v8";
import type { Peer } from "./peer.ts";

/*
 * Requests and notifications between the primary process and a worker. Why this is not Node's IPC channel with `serialization: "advanced"`,
 * or birpc over it: node:cluster hands accepted connections over that channel, so large messages would delay them; `process.send` does not
 * report how much is unsent, so a process that hangs would fill the memory of the other one; and neither distinguishes a request that failed
 * from one whose connection has ended.
 */

/**
 * The descriptor of the worker's socket to its primary process, after stdin, stdout, stderr and the channel of node:cluster. The socket has
 * no name and no file, so no other process can connect to it, and it ends with the two processes.
 */
export const peerDescriptor = 4;

/** Opens the socket to the primary process, in a worker. */
export function openWorkerSocket(): Socket {
  return new Socket({ fd: peerDescriptor, readable: true, writable: true });
}

/** If the other side leaves this number of bytes unread, it has stopped reading, and the connection is closed. */
const maxUnread = 2 ** 31;

/** A peer over a connected socket. Messages of one turn of the event loop are written together. */
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
    if (socket.writableLength > maxUnread) socket.destroy();
  });
  const reader = new PeerMessageReader();
  socket.on("data", (bytes) => {
    let messages: unknown[];
    try {
      messages = reader.read(bytes);
    } catch {
      // Should not occur: if it does, the connection ends, and not the process.
      socket.destroy();
      return;
    }
    for (const message of messages) peer.receive(message as PeerMessage);
  });
  // A process that ends shows as an error, such as a broken pipe. "close" follows.
  socket.on("error", () => {});
  socket.on("close", () => peer.end());
  return peer;
}

/** A message between peers. `id` connects an answer with its request. */
export type PeerMessage =
  | readonly ["notify", topic: string, body: unknown]
  | readonly ["ask", topic: string, body: unknown, id: number]
  | readonly ["answer", id: number, body: unknown]
  | readonly ["failed", id: number, message: string];

interface PendingRequest {
  readonly resolve: (body: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A peer over any connection that delivers messages in order. The owner of the connection calls `receive` and `end`. */
export class MessagePeer implements Peer {
  readonly closed: Promise<void>;
  readonly #send: (message: PeerMessage) => void;
  readonly #answers = new Map<string, (body: unknown) => unknown>();
  readonly #listeners = new Map<string, (body: unknown) => void>();
  readonly #pending = new Map<number, PendingRequest>();
  #lastId = 0;
  #isClosed = false;
  #resolveClosed: () => void = () => {};

  /** `send` copies the message before it returns, and throws if that is not possible. */
  constructor(send: (message: PeerMessage) => void) {
    this.#send = send;
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve));
  }

  request(topic: string, body: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw connectionEnded();
      const id = ++this.#lastId;
      this.#send(["ask", topic, body, id]);
      this.#pending.set(id, { resolve, reject });
    });
  }

  notify(topic: string, body: unknown): void {
    if (!this.#isClosed) this.#send(["notify", topic, body]);
  }

  onRequest(topic: string, handler: (body: unknown) => unknown): void {
    if (this.#answers.has(topic)) throw new Error(`${topic} has a handler already.`);
    this.#answers.set(topic, handler);
  }

  onNotification(topic: string, handler: (body: unknown) => void): void {
    if (this.#listeners.has(topic)) throw new Error(`${topic} has a handler already.`);
    this.#listeners.set(topic, handler);
  }

  receive(message: PeerMessage): void {
    if (this.#isClosed) return;
    switch (message[0]) {
      case "notify":
        this.#listeners.get(message[1])?.(message[2]);
        return;
      case "ask":
        void this.#answer(message[1], message[2], message[3]);
        return;
      case "answer":
        this.#takePending(message[1])?.resolve(message[2]);
        return;
      case "failed":
        this.#takePending(message[1])?.reject(new Error(message[2]));
    }
  }

  /** Called when the connection has ended. */
  end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { reject } of this.#pending.values()) reject(connectionEnded());
    this.#pending.clear();
    this.#resolveClosed();
  }

  async #answer(topic: string, body: unknown, id: number): Promise<void> {
    try {
      const handler = this.#answers.get(topic);
      if (!handler) throw new Error(`There is no handler for ${topic}.`);
      const answer = await handler(body);
      if (!this.#isClosed) this.#send(["answer", id, answer]);
    } catch (error) {
      if (!this.#isClosed) this.#send(["failed", id, error instanceof Error ? error.message : String(error)]);
    }
  }

  #takePending(id: number): PendingRequest | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}

function connectionEnded(): Error {
  return new Error("The connection between the processes of the server has ended.");
}

/** The length of a message in bytes, little-endian, precedes it. */
const prefix = Buffer.alloc(4);
/** A message may contain a request twice, and the limit of request bodies is a setting. */
const maxMessageBytes = 2 ** 31;

/** Serializes a message. Throws if it contains a value that cannot be copied: a function, a symbol. */
export function writeFrame(message: unknown): Buffer {
  const serializer = new DefaultSerializer();
  serializer.writeRawBytes(prefix);
  serializer.writeHeader();
  serializer.writeValue(message);
  const frame = serializer.releaseBuffer();
  frame.writeUInt32LE(frame.length - prefix.length);
  return frame;
}

/** Reads messages from chunks of bytes. */
export class PeerMessageReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The number of bytes at which there is something to read. */
  #needed = prefix.length;

  /** Returns the messages that `chunk` completes. Throws for bytes that `writeFrame` did not write. */
  read(chunk: Buffer): unknown[] {
    this.#bytes += chunk.length;
    if (this.#bytes < this.#needed) {
      this.#chunks.push(chunk);
      return [];
    }
    const all = this.#chunks.length === 0 ? chunk : Buffer.concat([...this.#chunks, chunk]);
    const messages: unknown[] = [];
    let at = 0;
    for (;;) {
      const left = all.length - at;
      this.#needed = prefix.length;
      if (left < this.#needed) break;
      const length = all.readUInt32LE(at);
      if (length > maxMessageBytes)
        throw new Error(`Invalid frame length: ${length} bytes (maximum ${maxMessageBytes}).`);
      this.#needed += length;
      if (left < this.#needed) break;
      const deserializer = new DefaultDeserializer(all.subarray(at + prefix.length, at + this.#needed));
      deserializer.readHeader();
      messages.push(deserializer.readValue());
      at += this.#needed;
    }
    this.#bytes = all.length - at;
    this.#chunks = this.#bytes === 0 ? [] : [all.subarray(at)];
    return messages;
  }
}
