import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import type { Dispatcher } from "undici";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { selfSigned } from "../../../test/support/certificate.ts";
import type { Transport } from "./transport.ts";
import { openTransport } from "./undici-transport.ts";

let server: Server;
let transport: Transport;
/** Answers a request on its connection. */
let answer: (socket: Socket, request: string) => Promise<void> | void;
let connections = 0;

/** Receives an answer; `pauses` decides at each chunk whether to pause. */
class Receiver implements Dispatcher.DispatchHandler {
  status = 0;
  headers: unknown;
  body = "";
  error: Error | undefined;
  readonly done: Promise<void>;
  #finish!: () => void;
  #chunks = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #pauses: readonly boolean[];
  readonly #resumes: boolean;

  constructor(pauses: readonly boolean[] = [], resumes = true) {
    this.#pauses = pauses;
    this.#resumes = resumes;
    this.done = new Promise((resolve) => (this.#finish = resolve));
  }

  /** Reads on, without pauses. */
  resume(): void {
    this.#pauses = [];
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }
  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: unknown): void {
    this.status = status;
    this.headers = headers;
  }
  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.body += Buffer.from(chunk).toString("latin1");
    if (this.#pauses[this.#chunks++ % Math.max(1, this.#pauses.length)] !== true) return;
    controller.pause();
    if (this.#resumes) setImmediate(() => controller.resume());
  }
  onResponseEnd(): void {
    this.#finish();
  }
  onResponseError(_controller: unknown, error: Error): void {
    this.error = error;
    this.#finish();
  }
}

function send(receiver: Receiver): Receiver {
  transport.dispatch({ method: "POST", path: "/", headers: {}, body: "{}" }, receiver);
  return receiver;
}

type Framing = "length" | "chunked" | "close";

/** The bytes of an answer, in Latin-1. */
function written(framing: Framing, pieces: readonly string[]): string {
  const body = pieces.join("");
  const head = "HTTP/1.1 200 OK\r\nX-Long-Name: some value\r\nContent-Type: text/event-stream\r\n";
  if (framing === "length") return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  if (framing === "close") return `${head}Connection: close\r\n\r\n${body}`;
  const chunks = pieces.filter((piece) => piece !== "").map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
  return `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.join("")}0\r\n\r\n`;
}

const certificate = selfSigned();

/** Plain sockets are read directly, those of TLS are streams. */
describe.each(["http", "https"])("%s", (scheme) => {
  describe.skipIf(scheme === "https" && certificate === null)("connections", () => {
    beforeEach(async () => {
      connections = 0;
      const take = (socket: Socket): void => {
        connections++;
        socket.on("error", () => {});
        socket.setEncoding("utf8");
        socket.on("data", (text: string) => void answer(socket, text));
      };
      server =
        scheme === "http"
          ? createServer({ noDelay: true }, take)
          : createSecureServer({ ...certificate, noDelay: true }, take);
      await once(server.listen(0, "127.0.0.1"), "listening");
      const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
      transport = openTransport(url, { name: "up", urls: [], tls: { verify: false } });
    });

    afterEach(async () => {
      await transport.destroy();
      server.close();
    });

    test("every answer arrives as it was sent, however it is split and wherever its reader pauses", async () => {
      const framing = fc.constantFrom<Framing>("length", "chunked", "close");
      const piece = fc.oneof(
        { weight: 4, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 40 }) },
        // More than one read of the socket.
        fc.nat(200_000).map((size) => "0123456789".repeat(size / 10)),
      );
      const exchange = fc.record({
        framing,
        pieces: fc.array(piece, { maxLength: 6 }),
        cuts: fc.array(fc.nat(400), { maxLength: 8 }),
        pauses: fc.array(fc.boolean(), { maxLength: 5 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(exchange, { minLength: 1, maxLength: 3 }), async (exchanges) => {
          for (const { framing, pieces, cuts, pauses } of exchanges) {
            answer = async (socket) => {
              const bytes = written(framing, pieces);
              let at = 0;
              for (const cut of [...cuts].toSorted((a, b) => a - b)) {
                socket.write(bytes.slice(at, Math.max(at, cut)), "latin1");
                at = Math.max(at, cut);
                await new Promise(setImmediate);
              }
              socket.write(bytes.slice(at), "latin1");
              if (framing === "close") socket.end();
            };
            const receiver = send(new Receiver(pauses));
            await receiver.done;
            expect(receiver.error).toBeUndefined();
            expect(receiver.status).toBe(200);
            expect(receiver.headers).toMatchObject({
              "x-long-name": "some value",
              "content-type": "text/event-stream",
            });
            expect(receiver.body === pieces.join("")).toBe(true);
          }
        }),
        { numRuns: 150 },
      );
    });

    test.each(["end", "destroy"] as const)(
      "a connection that is lost while its reader pauses is an error (socket.%s)",
      async (how) => {
        // undici 7 threw an AssertionError that ended the process.
        answer = (socket) => {
          socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", () => socket[how]());
        };
        const receiver = send(new Receiver([true]));
        await receiver.done;
        expect(receiver.body).toBe("hello");
        expect(receiver.error).toMatchObject({ code: "UND_ERR_SOCKET" });
      },
    );

    test("a handler that throws gets its error, and the connection is closed", async () => {
      // The chunks of a read are passed on after undici has parsed it, so nothing of undici catches what a handler throws.
      let close = (): void => {};
      const closed = new Promise<void>((resolve) => (close = resolve));
      answer = (socket) => {
        socket.on("close", close);
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
      };
      const receiver = new Receiver();
      const defect = new Error("defect");
      receiver.onResponseData = () => {
        throw defect;
      };
      await send(receiver).done;
      expect(receiver.error).toBe(defect);
      await closed;
    });

    test("an answer without a length ends with its connection, also while its reader pauses", async () => {
      answer = (socket) => void socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
      const receiver = send(new Receiver([true]));
      await receiver.done;
      expect(receiver.body).toBe("hello");
      expect(receiver.error).toBeUndefined();
    });

    test("while its reader pauses, an answer stays in the server", async () => {
      const size = 16 * 1024 * 1024;
      answer = (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
        socket.write(Buffer.alloc(size, "x"));
      };
      const receiver = send(new Receiver([true], false));
      while (receiver.body === "") await new Promise(setImmediate);
      for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
      expect(receiver.body.length).toBeLessThan(256 * 1024);
      receiver.resume();
      await receiver.done;
      expect(receiver.body.length).toBe(size);
    });

    // Those of TLS are received as its stream has them.
    test("chunks that are read together are received together", async () => {
      const chunks = Array.from({ length: 200 }, (_, at) => `data: ${at}\n\n`);
      answer = (socket) => void socket.write(written("chunked", chunks), "latin1");
      const received: string[] = [];
      const receiver = new Receiver();
      receiver.onResponseData = (_, chunk) => void received.push(Buffer.from(chunk).toString());
      await send(receiver).done;
      expect(received.join("")).toBe(chunks.join(""));
      if (scheme === "http") expect(received.length).toBeLessThan(20);
    });

    test("the next request uses the same connection, although the reader paused at the end", async () => {
      answer = (socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
      for (let request = 0; request < 3; request++) {
        const receiver = send(new Receiver([true], false));
        await receiver.done;
        expect(receiver.body).toBe("hello");
        // undici waits one turn before it uses a connection again.
        await new Promise(setImmediate);
        await new Promise(setImmediate);
      }
      expect(connections).toBe(1);
    });

    test("the bytes of a short answer stay as they are while other sockets are read", async () => {
      const sockets: Socket[] = [];
      answer = (socket, request) => {
        const letter = /letter=(.)/u.exec(request)?.[1] ?? "?";
        sockets.push(socket);
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n");
        socket.write(letter.repeat(2000));
        if (sockets.length === 2) for (const each of sockets) setImmediate(() => each.write("z".repeat(2000)));
      };
      const { signal } = new AbortController();
      const answers = await Promise.all(
        ["a", "b"].map((letter) =>
          transport.request({ method: "GET", path: "/", headers: { "x-l": `letter=${letter}` }, signal }),
        ),
      );
      // Both have arrived before the first of them is read.
      while (sockets.some((socket) => socket.writableLength > 0)) await new Promise(setImmediate);
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      for (const [at, letter] of ["a", "b"].entries()) {
        let text = "";
        for await (const bytes of answers[at]?.body ?? []) text += Buffer.from(bytes).toString();
        expect(text).toBe(letter.repeat(2000) + "z".repeat(2000));
      }
    });
  });
});
