import { DefaultDeserializer, DefaultSerializer } from "node:v8";

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
