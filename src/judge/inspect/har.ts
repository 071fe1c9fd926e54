import { bodyOf } from "../capture/captured-exchange.ts";
import type { Header, InspectedRequest } from "./inspected-request.ts";

/** A HAR file is `harStart`, the entries with commas between them, and `harEnd`. Source: HTTP Archive 1.2. */
export const harStart = '{"log":{"version":"1.2","creator":{"name":"Truewire Inspect","version":"1"},"entries":[\n';
export const harEnd = "\n]}}\n";

/**
 * A request with its answer as an entry of a HAR file. `undefined`: the request has not ended, or was never answered. Its times are those
 * of the server. What was not kept of a body is noted in a comment.
 */
export function harEntryOf(shown: InspectedRequest): object | undefined {
  const { id, at, ms, first_ms: firstMs = ms, method, path, outcome, status, brief, request, response } = shown;
  if (outcome === "open" || status === undefined) return undefined;
  const { body } = request;
  const text = bodyOf({ status, headers: [], pieces: response.body.chunks });
  const answerComment = brief
    ? "The texts of this request were not kept: requests arrived too fast."
    : response.body.left_out && `${response.body.left_out.characters} characters in the middle were not kept.`;
  const queue = shown.phases === undefined ? 0 : Math.min(firstMs, shown.phases.preparing + shown.phases.queue);
  return {
    startedDateTime: new Date(at).toISOString(),
    time: ms,
    request: {
      method,
      url: urlOf(valueOf(request.headers, "host") ?? "localhost", path),
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: request.headers.map(named),
      queryString: [],
      ...(body && {
        postData: {
          mimeType: valueOf(request.headers, "content-type") ?? "application/json",
          text: body.text,
          ...(body.left_out !== undefined && { comment: `${body.left_out} bytes at the end were not kept.` }),
        },
      }),
      headersSize: -1,
      bodySize: body && body.left_out === undefined ? byteLength(body.text) : body ? -1 : 0,
    },
    response: {
      status,
      statusText: "",
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: response.headers.map(named),
      content: {
        size: byteLength(text) + (response.body.left_out?.characters ?? 0),
        mimeType: valueOf(response.headers, "content-type") ?? "",
        text,
        ...(answerComment !== undefined && { comment: answerComment }),
      },
      redirectURL: "",
      headersSize: -1,
      bodySize: -1,
    },
    cache: {},
    timings: { blocked: queue, send: 0, wait: Math.max(0, firstMs - queue), receive: Math.max(0, ms - firstMs) },
    ...(outcome === "cancelled" && { comment: "The client left before the answer was complete." }),
    // Members of our own begin with "_", as the format requires.
    _id: id,
    ...(shown.thread !== undefined && { _thread: shown.thread }),
  };
}

function urlOf(host: string, path: string): string {
  const url = `http://${host}${path}`;
  return URL.canParse(url) ? url : new URL(`http://localhost/${encodeURI(path).replace(/^\//, "")}`).href;
}

function named([name, value]: Header): { readonly name: string; readonly value: string } {
  return { name, value };
}

function valueOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find(([other]) => other.toLowerCase() === name)?.[1];
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
