import { createServer, validateHeaderName, validateHeaderValue } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { CapturedExchange, CapturedPiece, CapturedResponse } from "./captured-exchange.ts";
import type { ExchangeFinder } from "./exchange-finder.ts";

/** Of a request's body, in bytes. */
const maxBodyBytes = 64 * 1024 * 1024;

export interface ReplayOptions {
  readonly finder: ExchangeFinder;
  /** The speed as a multiple of the recorded one; `Infinity` sends everything immediately. */
  readonly speed: number;
  /** For people: what was answered. */
  readonly log: (line: string) => void;
}

/** Headers that this server's own connection decides. */
const ownHeaders = new Set(["connection", "keep-alive", "transfer-encoding"]);

/**
 * Answers requests as captures have it: status, headers and bytes, each chunk at its time. A request that is in none of them is a 404 that
 * shows the nearest one and the first difference.
 */
export function replayServer({ finder, speed, log }: ReplayOptions): Server {
  return createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/" } = request;
    const body = await bodyOf(request);
    if (body === null) return refuse(response, 413, `The request body is longer than ${maxBodyBytes} bytes.`);
    const found = finder.find({ method, path: url, body });
    if (typeof found === "string") {
      log(`${method} ${url}: 404 ${found}`);
      return refuse(response, 404, found);
    }
    log(`${method} ${url}: ${found.response.status} from ${found.from}`);
    await send(found, response);
  }

  async function send({ response: captured }: CapturedExchange, response: ServerResponse): Promise<void> {
    const begun = performance.now();
    response.writeHead(captured.status, headersOf(captured).flat());
    response.flushHeaders();
    for (const chunk of captured.pieces) {
      const wait = chunk.ms / speed - (performance.now() - begun);
      if (wait > 0) await sleep(wait);
      if (response.destroyed) return;
      if (!response.write(bytesOf(chunk))) await taken(response);
    }
    // It broke off then, so it breaks off now; what was written goes out first.
    if (captured.brokeOff === true) response.socket?.end(() => response.destroy());
    else response.end();
  }
}

/**
 * The captured headers that can be sent again. A length is kept where it is that of the body, or the body broke off: in a HAR file it may
 * be that of the packed one. A HAR file may also hold several headers of one name in one value, with line feeds.
 */
function headersOf({ headers, pieces, brokeOff }: CapturedResponse): (readonly [string, string])[] {
  const length = pieces.reduce((sum, chunk) => sum + bytesOf(chunk).length, 0);
  return headers.filter(([name, value]) => {
    const lower = name.toLowerCase();
    if (ownHeaders.has(lower)) return false;
    if (lower === "content-length" && brokeOff !== true && Number(value) !== length) return false;
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
      return true;
    } catch {
      return false;
    }
  });
}

function bytesOf({ text, base64 }: CapturedPiece): Buffer {
  return text === undefined ? Buffer.from(base64 ?? "", "base64") : Buffer.from(text, "utf8");
}

/** The reader has caught up, or has left. */
function taken(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
}

/** null: it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBodyBytes) chunks.push(chunk);
  }
  return size > maxBodyBytes ? null : Buffer.concat(chunks).toString("utf8");
}

function refuse(response: ServerResponse, status: number, message: string): void {
  const error = { message, type: "invalid_request_error", param: null, code: status === 404 ? "not_captured" : null };
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error }));
}
