import { WebSocket, type RawData } from "ws";
import type { Exchange } from "../rules/exchange.ts";
import { isObject } from "../../../wire/core/json.ts";
import { type Json, parsedJson } from "../rules/view.ts";
import { requestHeaders } from "./probe.ts";
import type { ProbeTarget } from "./send.ts";

const ends: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

/** The maximum number of messages of one conversation that are collected: a server may send without end. */
const maxMessages = 100_000;

/** A connection by WebSocket to the Responses API. */
export class SocketLine {
  readonly #socket: WebSocket;
  readonly #timeout: number;

  private constructor(socket: WebSocket, timeout: number) {
    this.#socket = socket;
    this.#timeout = timeout;
  }

  /** The connection, or why it could not be opened. */
  static open({ url, key, timeout }: ProbeTarget): Promise<SocketLine | { readonly refused: string }> {
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/responses`, {
      headers: requestHeaders({ endpoint: "responses" }, key),
      handshakeTimeout: timeout,
    });
    return new Promise((resolve) => {
      socket.once("open", () => resolve(new SocketLine(socket, timeout)));
      socket.once("unexpected-response", (request, { statusCode }) => {
        request.destroy();
        resolve({ refused: `status ${statusCode}` });
      });
      socket.on("error", (error) => resolve({ refused: error.message }));
    });
  }

  /**
   * Sends a request and collects the messages up to the one that ends the response, or the end of the connection. Returns `undefined` if
   * no message arrived in time.
   */
  async ask(body: Json): Promise<Exchange | undefined> {
    const messages: string[] = [];
    const socket = this.#socket;
    const complete = await new Promise<boolean>((resolve) => {
      const done = (isComplete: boolean): void => {
        clearTimeout(timer);
        socket.off("message", take).off("close", close);
        resolve(isComplete);
      };
      const close = (): void => done(false);
      const take = (data: RawData, isBinary: boolean): void => {
        const text = data.toString();
        messages.push(transcribed(text, isBinary));
        const value = isBinary ? undefined : parsedJson(text);
        if (isObject(value) && ends.has(value.type)) done(true);
      };
      const timer = setTimeout(close, this.#timeout);
      socket.on("message", take).on("close", close);
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: "response.create", ...body }));
      else close();
    });
    return messages.length === 0 ? undefined : exchangeOf(body, messages, complete);
  }

  /**
   * Sends messages and collects those that come until `step` returns true, the time is up or the connection ends. `step` is called with all
   * messages after each one, and may send more.
   */
  async converse(
    first: readonly Json[],
    step: (messages: readonly Json[], send: (message: Json) => void) => boolean,
  ): Promise<readonly string[]> {
    const texts: string[] = [];
    const messages: Json[] = [];
    const socket = this.#socket;
    const send = (message: Json): void => socket.send(JSON.stringify(message));
    if (socket.readyState !== socket.OPEN) return texts;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        socket.off("message", take).off("close", done);
        resolve();
      };
      const take = (data: RawData): void => {
        const value = parsedJson(data.toString());
        texts.push(data.toString());
        messages.push(isObject(value) ? value : {});
        if (texts.length >= maxMessages || step(messages, send)) done();
      };
      const timer = setTimeout(done, this.#timeout);
      socket.on("message", take).on("close", done);
      for (const message of first) send(message);
    });
    return texts;
  }

  close(): void {
    this.#socket.terminate();
  }
}

/** A message as an event of a stream. */
export function transcribed(text: string, isBinary: boolean): string {
  if (isBinary) return `: a binary message of ${text.length} characters\n\n`;
  return `${text
    .split(/\r\n|\n|\r/)
    .map((line) => `data: ${line}\n`)
    .join("")}\n`;
}

/** Messages that answer a request, as an exchange to judge. */
export function exchangeOf(body: Json, messages: readonly string[], complete: boolean): Exchange {
  const [first = ""] = messages;
  const value = messages.length === 1 ? parsedJson(first.replace(/^data: /, "")) : undefined;
  const isRefusal = isObject(value) && value.type === "error";
  return {
    endpoint: isRefusal ? "response-socket-error" : "response-socket",
    request: { method: "GET", path: "/responses", body },
    response: {
      // Of the handshake; a message has none.
      status: 101,
      headers: null,
      body: isRefusal ? first.slice("data: ".length, -2) : messages.join(""),
      complete,
    },
  };
}
