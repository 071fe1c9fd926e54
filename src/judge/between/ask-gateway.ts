import { request as send } from "undici";
import { sourcePorts } from "../../wire/apis/ports.ts";
import { sourcePath } from "../../wire/apis/source-port.ts";
import { type Api, type Fact, roots } from "./facts.ts";

export interface Gateway {
  /** Its base URL, with or without `/v1` or `/v1beta`. */
  readonly url: string;
  readonly client: Api;
  readonly key: string | undefined;
  /** The model that the client asks for. */
  readonly model: string;
  /** Of every request, in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
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

/** The longest answer that is read, in bytes: a gateway may send without end. */
const maxAnswerBytes = 16 * 1024 * 1024;

/** The URL to which a request is sent. */
export function endpointOf({ url, client, model }: Asked, { stream }: Fact): string {
  const version = ["/v1", "/v1beta"].find((end) => trimmed(url).endsWith(end)) ?? "";
  const base = trimmed(url).slice(0, trimmed(url).length - version.length);
  return base + roots[client] + sourcePath(sourcePorts[client].path, model, stream);
}

type Asked = Pick<Gateway, "url" | "client" | "model" | "headers">;

function trimmed(url: string): string {
  return url.endsWith("/") ? url.slice(0, -1) : url;
}

export function headersOf(
  { client, key, headers }: Pick<Gateway, "client" | "key" | "headers">,
  fact: Fact,
): Record<string, string> {
  const own = sourcePorts[client].headers(key ?? "sk-between");
  return { "content-type": "application/json", ...own, ...headers, ...fact.headers };
}

/**
 * Sends the request of a fact, and gathers what comes back, an unfinished answer included. `received` is called with the first bytes of the
 * answer. Rejects if there is no answer.
 */
export async function askGateway(gateway: Gateway, fact: Fact, signal: AbortSignal): Promise<GatewayAnswer> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(gateway.timeoutMs)]);
  const response = await send(endpointOf(gateway, fact), {
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
export function curlOf(gateway: Asked, fact: Fact): string {
  const headers = Object.entries(headersOf({ ...gateway, key: "$KEY" }, fact)).map(
    ([name, value]) => `-H "${name}: ${value}"`,
  );
  const body = JSON.stringify(fact.body).replaceAll("'", String.raw`'\''`);
  return `curl -sN '${endpointOf(gateway, fact)}' ${headers.join(" ")} -d '${body}'`;
}
