import { connect } from "node:net";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";

/** What each API with streams of server-sent events is asked, by its path. */
export const bodies: Readonly<Record<string, object>> = {
  "chat/completions": { messages: [{ role: "user", content: "x" }] },
  completions: { prompt: "x" },
  messages: { messages: [{ role: "user", content: "x" }], max_tokens: 100 },
  responses: { input: "x", store: false },
};

export interface Opened {
  readonly server: TruewireServer;
  readonly url: string;
  readonly engine: ScriptedEngine;
  /** Lets the engine write up to this text. */
  allow(count: number): void;
}

/** A server whose engine writes the texts, each when the test allows it. */
export async function open(texts: readonly string[], config: TruewireConfig = {}): Promise<Opened> {
  const state = { allowed: 0 };
  let wake = (): void => {};
  const engine = new ScriptedEngine(async function* (_, signal) {
    signal.addEventListener("abort", () => wake());
    for (const [at, batch] of [...answer(texts)].entries()) {
      while (at >= state.allowed && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
      if (signal.aborted) return;
      yield batch;
    }
  });
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
  closeAfterTest(() => server.close(0));
  return {
    server,
    url: server.url,
    engine,
    allow(count) {
      state.allowed = count;
      wake();
    },
  };
}

export function post(path: string, headers: Readonly<Record<string, string>> = {}, more: object = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json", "x-truewire-resume": "60s", ...headers },
    body: JSON.stringify({ model: "scripted", stream: true, ...bodies[path], ...more }),
  };
}

/** What a client has of a stream whose connection it has lost: the whole events, and the headers. */
export interface Part {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly events: readonly string[];
}

/**
 * Sends a request over a socket of its own, and destroys the socket after `bytes` bytes of the body, or when the answer has ended. With
 * `bytes` 0, when the headers have come.
 */
export function cutAfter(url: string, path: string, init: RequestInit, bytes: number): Promise<Part> {
  const { hostname, port } = new URL(url);
  const body = typeof init.body === "string" ? init.body : "";
  const fields = Object.entries({ host: `${hostname}:${port}`, ...(init.headers as Record<string, string>) });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const length = `content-length: ${Buffer.byteLength(body)}\r\n`;
  const request = `${init.method ?? "GET"} ${path} HTTP/1.1\r\n${head}${length}connection: close\r\n\r\n${body}`;
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(request));
    let received = Buffer.alloc(0);
    const finish = (): void => {
      socket.destroy();
      resolve(partOf(received, bytes));
    };
    socket.on("data", (data) => {
      received = Buffer.concat([received, data]);
      const part = bodyOf(received);
      if (part && part.body.length >= bytes) finish();
    });
    socket.on("end", finish).on("error", reject);
  });
}

/** The head, and the body without its chunks' lengths; undefined before the head is complete. */
function bodyOf(received: Buffer): { readonly head: string; readonly body: Buffer } | undefined {
  const gap = received.indexOf("\r\n\r\n");
  if (gap === -1) return undefined;
  const head = received.subarray(0, gap).toString("latin1");
  let rest = received.subarray(gap + 4);
  if (!/^transfer-encoding: chunked/im.test(head)) return { head, body: rest };
  const chunks: Buffer[] = [];
  for (;;) {
    const line = rest.indexOf("\r\n");
    if (line === -1) break;
    const size = Number.parseInt(rest.subarray(0, line).toString("latin1"), 16);
    chunks.push(rest.subarray(line + 2, line + 2 + size));
    if (size === 0 || rest.length < line + 4 + size) break;
    rest = rest.subarray(line + 4 + size);
  }
  return { head, body: Buffer.concat(chunks) };
}

function partOf(received: Buffer, bytes: number): Part {
  const { head = "HTTP/1.1 0", body = Buffer.alloc(0) } = bodyOf(received) ?? {};
  const [status = "", ...lines] = head.split("\r\n");
  const pairs = lines.map((line) => [
    line.slice(0, line.indexOf(":")).toLowerCase(),
    line.slice(line.indexOf(":") + 2),
  ]);
  const text = body.subarray(0, bytes).toString();
  const whole = text.slice(0, text.lastIndexOf("\n\n") + 2);
  return {
    status: Number(status.split(" ")[1]),
    headers: Object.fromEntries(pairs) as Record<string, string>,
    events: text.includes("\n\n") ? eventsIn(whole) : [],
  };
}

/** The events of a stream, without comments. */
export function eventsIn(text: string): string[] {
  return text.split("\n\n").filter((event) => event !== "" && !event.startsWith(":"));
}

export function idOf(event: string | undefined): number {
  return Number(/^id: (\d+)\n/.exec(event ?? "")?.[1]);
}

/** The headers with which a client resumes a stream after the events. */
export function after(events: readonly string[]): Record<string, string> {
  return events.length === 0 ? {} : { "last-event-id": String(idOf(events.at(-1))) };
}
