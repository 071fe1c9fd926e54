import { request as httpRequest } from "undici";
import type { Exchange } from "../rules/exchange.ts";
import type { Probe, ProbeResult } from "./probe.ts";
import { requestHeaders } from "./probe.ts";
import type { RefusedSettings } from "./refused-settings.ts";

export interface ProbeTarget {
  /** The API's base URL, `…/v1`, without a slash at its end. */
  readonly url: string;
  readonly model: string;
  readonly key?: string;
  /** How long one probe may take, in milliseconds. */
  readonly timeout: number;
  /** Learned on the way. */
  readonly refused: RefusedSettings;
}

/** The longest answer that is read, in bytes: a server may send without end. */
const maxAnswerBytes = 8 * 1024 * 1024;

/**
 * Sends one probe and gathers everything that comes back, an unfinished answer included. A setting that the model refuses is left out, and
 * it is asked again.
 */
export async function send(probe: Probe, target: ProbeTarget, signal?: AbortSignal): Promise<ProbeResult> {
  const result = await sendOnce(probe, target, signal);
  return result.exchange && target.refused.learn(result.exchange) ? send(probe, target, signal) : result;
}

async function sendOnce(probe: Probe, target: ProbeTarget, signal?: AbortSignal): Promise<ProbeResult> {
  const begun = performance.now();
  const whole = probe.rawBody === undefined ? probe.body?.(target.model) : undefined;
  const body = whole && target.refused.adapted(probe.endpoint, whole);
  const text = probe.rawBody ?? (body && JSON.stringify(body));
  const limit = AbortSignal.timeout(target.timeout);
  const done = (result: Pick<ProbeResult, "exchange" | "failure">): ProbeResult => ({
    probe,
    milliseconds: performance.now() - begun,
    ...result,
  });
  try {
    const response = await httpRequest(new URL(target.url + probe.path(target.model)), {
      method: probe.method,
      headers: {
        ...(text !== undefined && { "content-type": "application/json" }),
        ...requestHeaders(probe, target.key),
      },
      ...(text !== undefined && { body: text }),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    const answer = await gather(response.body);
    if (limit.aborted) return done({ exchange: undefined, failure: `no end within ${target.timeout / 1000} s` });
    const exchange: Exchange = {
      endpoint: probe.endpoint,
      request: {
        method: probe.method,
        path: probe.path(target.model).replace(/^\/\.\./, ""),
        ...(body && { body: JSON.parse(JSON.stringify(body)) as Record<string, unknown> }),
      },
      response: {
        status: response.statusCode,
        headers: flat(response.headers),
        body: answer.text,
        complete: answer.complete,
      },
    };
    return done({ exchange });
  } catch (error) {
    const message = messageOf(error);
    return done({
      exchange: undefined,
      failure: limit.aborted ? `no answer within ${target.timeout / 1000} s` : message,
    });
  }
}

/** OpenSSL's own words for HTTPS at a port of HTTP are an address and a line of its source. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ERR_SSL_WRONG_VERSION_NUMBER" ? "it speaks HTTP, not HTTPS: use http:// in the URL" : message;
}

async function gather(body: AsyncIterable<Uint8Array>): Promise<{ text: string; complete: boolean }> {
  // The byte order mark is evidence, so it is kept.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const chunks: string[] = [];
  let bytes = 0;
  let complete = true;
  try {
    for await (const chunk of body) {
      chunks.push(decoder.decode(chunk, { stream: true }));
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) break;
    }
  } catch {
    complete = false;
  }
  return { text: chunks.join("") + decoder.decode(), complete };
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value].flat().join(", ")]),
  );
}
