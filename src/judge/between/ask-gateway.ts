import { request as send } from "undici";
import type { Api, Fact } from "./facts.ts";

export interface Gateway {
  /** Its base URL, with or without `/v1`. */
  readonly url: string;
  readonly client: Api;
  readonly key: string | undefined;
  /** How long one request may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** What the client has received. */
export interface GatewayAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body has ended as HTTP ends it: its connection has not broken. */
  readonly isComplete: boolean;
  /** By `performance.now`: when the first byte of the body arrived, and when it ended. */
  readonly firstAt: number;
  readonly endedAt: number;
}

const paths: Readonly<Record<Api, string>> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
};

/** The longest answer that is read, in bytes: a gateway may send without end. */
const maxAnswerBytes = 16 * 1024 * 1024;

/** The URL to which the client API's requests are sent. */
export function endpointOf({ url, client }: Pick<Gateway, "url" | "client">): string {
  const base = url.endsWith("/") ? url.slice(0, -1) : url;
  return `${base.endsWith("/v1") ? base : `${base}/v1`}${paths[client]}`;
}

export function headersOf({ client, key }: Pick<Gateway, "client" | "key">, fact: Fact): Record<string, string> {
  const credential = key ?? "sk-between";
  const own: Record<string, string> =
    client === "messages"
      ? { "x-api-key": credential, "anthropic-version": "2023-06-01" }
      : { authorization: `Bearer ${credential}` };
  return { "content-type": "application/json", ...own, ...fact.headers };
}

/**
 * Sends the request of a fact, and gathers what comes back, an unfinished answer included. `received` is called with the first bytes of the
 * answer. Rejects if there is no answer.
 */
export async function askGateway(gateway: Gateway, fact: Fact, signal: AbortSignal): Promise<GatewayAnswer> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(gateway.timeoutMs)]);
  const response = await send(endpointOf(gateway), {
    method: "POST",
    headers: headersOf(gateway, fact),
    body: JSON.stringify(fact.body),
    signal: limit,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const decoder = new TextDecoder();
  const chunks: string[] = [];
  let bytes = 0;
  let firstAt = 0;
  let isComplete = true;
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      if (bytes === 0) firstAt = performance.now();
      bytes += chunk.length;
      chunks.push(decoder.decode(chunk, { stream: true }));
      if (bytes > maxAnswerBytes) break;
    }
  } catch {
    isComplete = false;
  }
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), [value].flat().join(", ")]),
  );
  const endedAt = performance.now();
  return {
    status: response.statusCode,
    headers,
    text: chunks.join(""),
    isComplete,
    firstAt: firstAt || endedAt,
    endedAt,
  };
}

/** The same request as a line for a shell. */
export function curlOf(gateway: Pick<Gateway, "url" | "client">, fact: Fact): string {
  const headers = Object.entries(headersOf({ client: gateway.client, key: "$KEY" }, fact)).map(
    ([name, value]) => `-H "${name}: ${value}"`,
  );
  const body = JSON.stringify(fact.body).replaceAll("'", String.raw`'\''`);
  return `curl -sN ${endpointOf(gateway)} ${headers.join(" ")} -d '${body}'`;
}
