import type { Peer } from "./peer.ts";

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
