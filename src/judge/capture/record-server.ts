import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { CapturedExchange, CapturedPiece } from "./captured-exchange.ts";
import { maskedPath } from "./captured-exchange.ts";

/** A longer exchange is passed on and not kept. In bytes. */
const maxExchangeBytes = 64 * 1024 * 1024;

/** Headers of one connection alone. Source: RFC 9110, section 7.6.1. */
const ofConnection = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Of answers: a recording is given to others. */
const secret = new Set(["set-cookie"]);

export interface RecordOptions {
  /** A base URL: clients use this server's own, with `/v1`, in its place. */
  readonly target: string;
  /** Takes each exchange when it is over. What it throws is answered, and the next exchange is passed on all the same. */
  readonly keep: (exchange: Omit<CapturedExchange, "from">) => void;
  /** Why a request is not passed on, from its headers, as the text of an error; `undefined`: it is. */
  readonly refusal: (header: (name: string) => string | undefined) => string | undefined;
  /** For people: what was recorded, and what could not be. */
  readonly log: (line: string) => void;
}

/**
 * A proxy that changes nothing but to ask for unpacked answers, and shows every exchange to `keep`: method, path and body of the request,
 * and the answer with the time of each chunk. Headers of requests hold keys and are not kept.
 */
export function recordServer({ target, keep, refusal, log }: RecordOptions): Server {
  const base = new URL(target);
  const basePath = base.pathname.replace(/\/(?:v1\/?)?$/, "");
  const send = base.protocol === "https:" ? httpsRequest : httpRequest;

  return createServer((request, response) => {
    const begun = performance.now();
    const { method = "GET", url = "/", headers: named } = request;
    const reason = url.startsWith("/")
      ? refusal((name) => (named[name] === undefined ? undefined : String(named[name])))
      : "This is no proxy for other servers: use its own address as the base URL.";
    if (reason !== undefined) {
      log(`${method} ${maskedPath(url)}: refused: ${reason}`);
      response.writeHead(403, { "content-type": "application/json", connection: "close" });
      const error = { message: reason, type: "invalid_request_error", param: null, code: "not_allowed" };
      response.end(JSON.stringify({ error }));
      return;
    }
    const requested = sizedList<Buffer>();
    const answered = sizedList<CapturedPiece>();
    const shown = `${method} ${maskedPath(url)}`;
    let isOver = false;
    const over = (answer: IncomingMessage, brokeOff: boolean): void => {
      if (isOver) return;
      isOver = true;
      if (requested.size + answered.size > maxExchangeBytes) {
        log(`${shown}: longer than ${maxExchangeBytes} bytes, not recorded`);
        return;
      }
      const body = Buffer.concat(requested.items).toString("utf8");
      try {
        keep({
          request: { method, path: maskedPath(url), ...((body !== "" || method === "POST") && { body }) },
          response: {
            status: answer.statusCode ?? 502,
            headers: pairs(answer.rawHeaders).filter(([name]) => isKept(name) && !secret.has(name.toLowerCase())),
            pieces: answered.items,
            ...(brokeOff && { brokeOff }),
          },
        });
        log(`${shown}: ${answer.statusCode} ${brokeOff ? "broke off" : "recorded"}`);
      } catch (error) {
        log(`${shown}: not recorded: ${error instanceof Error ? error.message : String(error)}`);
      }
    };

    const headers = pairs(request.rawHeaders).filter(([name]) => isKept(name) && !replaced.has(name.toLowerCase()));
    const onward = send(
      {
        ...addressOf(base),
        method,
        path: basePath + url,
        headers: [...headers, ["host", base.host], ["accept-encoding", "identity"]].flat(),
      },
      (answer) => {
        response.writeHead(
          answer.statusCode ?? 502,
          pairs(answer.rawHeaders)
            .filter(([name]) => isKept(name))
            .flat(),
        );
        answer.on("data", (bytes: Buffer) => {
          answered.add({ ms: Math.round(performance.now() - begun), ...textOrBytes(bytes) }, bytes.length);
          if (response.write(bytes)) return;
          answer.pause();
          response.once("drain", () => answer.resume());
        });
        answer.on("end", () => {
          over(answer, !answer.complete);
          response.end();
        });
        // What breaks off must not look whole to the client.
        answer.on("error", () => {
          over(answer, true);
          response.destroy();
        });
      },
    );
    onward.on("error", (error) => fail(response, error, () => log(`${shown}: ${base.host}: ${error.message}`)));
    request.on("data", (bytes: Buffer) => {
      requested.add(bytes, bytes.length);
      if (onward.write(bytes)) return;
      request.pause();
      onward.once("drain", () => request.resume());
    });
    request.on("end", () => onward.end());
    response.on("close", () => {
      if (response.writableFinished || isOver) return;
      // Half an answer that the client did not want is nothing to replay.
      isOver = true;
      log(`${shown}: the client left, not recorded`);
      onward.destroy();
    });
  });
}

/** Ours to set. */
const replaced = new Set(["host", "accept-encoding"]);

function isKept(name: string): boolean {
  return !ofConnection.has(name.toLowerCase());
}

function addressOf({ hostname, port, protocol }: URL): { hostname: string; port: string; protocol: string } {
  return { hostname: hostname.replace(/^\[|\]$/g, ""), port, protocol };
}

function fail(response: ServerResponse, { message }: Error, log: () => void): void {
  if (response.destroyed) return;
  log();
  if (response.headersSent) return void response.destroy();
  response.writeHead(502, { "content-type": "application/json" });
  const error = { message: `The recorded server does not answer: ${message}`, type: "server_error", param: null };
  response.end(JSON.stringify({ error: { ...error, code: null } }));
}

/** A list that keeps no more than `maxExchangeBytes`. */
function sizedList<T>(): { readonly items: T[]; readonly size: number; add(item: T, size: number): void } {
  const items: T[] = [];
  let sum = 0;
  return {
    items,
    get size() {
      return sum;
    },
    add(item, size) {
      sum += size;
      if (sum <= maxExchangeBytes) items.push(item);
      else items.length = 0;
    },
  };
}

/** Text where the bytes are UTF-8 by themselves. */
function textOrBytes(bytes: Buffer): { text: string } | { base64: string } {
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? { text } : { base64: bytes.toString("base64") };
}

function pairs(raw: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] ?? "", raw[at + 1] ?? ""]);
  return found;
}
