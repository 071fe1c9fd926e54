import { findJsonMistake } from "../../wire/core/json-mistake.ts";
import { runSync } from "../../wire/core/steps.ts";
import type { Header, InspectedRequest } from "../../judge/inspect/inspected-request.ts";
import { baseUrl, callApi } from "../api/call-api.ts";

/** Headers that the client's connection, library or browser sets. */
const setByClient =
  /^(?:host|connection|keep-alive|content-length|transfer-encoding|accept-encoding|te|expect|upgrade|via|forwarded|priority|origin|referer|traceparent|tracestate|x-request-id|x-forwarded-.*|x-stainless-.*|sec-.*|access-control-.*|cf-.*)$/i;

/** A header whose value is masked. */
function isMasked([, value]: Header): boolean {
  return value.includes("[key]");
}

/** The headers of a request that mean something to the server, without keys. */
export function ownHeaders({ request: { headers } }: InspectedRequest): Header[] {
  return headers.filter((header) => !setByClient.test(header[0]) && !isMasked(header));
}

/** The headers that the page sends again; a browser names itself. */
export function resentHeaders(request: InspectedRequest): Header[] {
  return ownHeaders(request).filter(([name]) => name.toLowerCase() !== "user-agent");
}

/** Why a request cannot be sent again as it was; undefined: it can. */
export function resendProblem({ outcome, brief, method, request }: InspectedRequest): string | undefined {
  const { headers, body } = request;
  const header = (name: string): string => headers.find(([other]) => other.toLowerCase() === name)?.[1] ?? "";
  if (outcome === "open" && !body && method !== "GET") return "It has not arrived completely.";
  if (brief) return "Its body was not kept, because requests arrived faster than texts are kept.";
  if (header("upgrade") !== "" || header("sec-websocket-version") !== "")
    return "It came as a message of a WebSocket, and depends on the messages before it.";
  if (body?.left_out !== undefined) return "It is too long to be kept completely.";
  if (!body && (header("content-encoding") !== "" || Number(header("content-length")) > 0))
    return "Its body was compressed, and is not kept.";
  if (/^multipart\//i.test(header("content-type"))) return "Its body is a form with files, which is no text.";
  return undefined;
}

/** Why there is no command that sends a request again; undefined: there is one. */
export function curlProblem(request: InspectedRequest): string | undefined {
  const hasNull = request.request.body?.text.includes("\0") === true;
  return resendProblem(request) ?? (hasNull ? "Its body has a null character, which no command can have." : undefined);
}

/** A longer body makes a text field slow. In characters. */
const maxEdited = 2_000_000;

/** Why a request cannot be edited; undefined: it can. */
export function editProblem(request: InspectedRequest): string | undefined {
  const problem = resendProblem(request);
  if (problem !== undefined) return problem;
  const { body } = request.request;
  if (!body || body.text === "") return "It has no body.";
  if (body.text.length > maxEdited) return "Its body is too long for a text field.";
  return jsonMistake(body.text) === undefined ? undefined : "Its body is not JSON.";
}

/** The first mistake of a text that is not JSON, with its place: `line 1, column 9: expected a value, found }`. */
export function jsonMistake(text: string): string | undefined {
  return runSync(findJsonMistake(new TextEncoder().encode(text)))?.text;
}

/** A request that this page has sent again. */
export interface Resent {
  /** Its id, by which it is found in the list. */
  readonly id: string;
  stop(): void;
}

/** The requests that this page has sent again and whose answers have not ended, by their ids. */
const running = new Map<string, Resent>();

/** undefined: the answer has ended, or another client sent the request. */
export function runningResent(id: string): Resent | undefined {
  return running.get(id);
}

/**
 * Sends a request again to the page's own server, with the page's key. Resolves when the answer has begun; the rest of it is read and dropped.
 * Rejects as `fetch` does, and if the server gives the request no id.
 */
export async function resend(request: InspectedRequest, body: string | undefined): Promise<Resent> {
  const { method, path } = request;
  const leaving = new AbortController();
  const response = await callApi(urlOf(path), {
    method,
    headers: resentHeaders(request).map(([name, value]): [string, string] => [name, value]),
    signal: leaving.signal,
    // Of a text, the browser would send a content type of its own.
    ...(body !== undefined && { body: new TextEncoder().encode(body) }),
  });
  const id = response.headers.get("x-request-id");
  if (id === null) throw new Error("The server's answer has no x-request-id.");
  const resent: Resent = { id, stop: () => leaving.abort() };
  running.set(id, resent);
  const read = async (): Promise<void> => {
    const reader = response.body?.getReader();
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read());
  };
  // A connection that breaks is shown in the request's own view.
  void read()
    .catch(() => {})
    .finally(() => running.delete(id));
  return resent;
}

/** The URL of a path of the page's server, including a prefix that a proxy adds. */
function urlOf(path: string): string {
  return new URL(`..${path}`, baseUrl).href;
}

/** The variable that a copied command reads the key from. */
const keyVariable = "$TRUEWIRE_API_KEY";
/** A longer body is written to the standard input of curl: Linux limits an argument to 128 KiB. */
const maxArgument = 64 * 1024;

/**
 * A command for bash that sends a request again. Keys are read from a variable.
 *
 * @param url Of the request at the page's server.
 */
export function curlOf(request: InspectedRequest, url = urlOf(request.path)): string {
  const { method } = request;
  const { headers, body } = request.request;
  const keys = headers.filter((header) => isMasked(header) && isKeyHeader(header));
  const isPiped = body !== undefined && body.text.length > maxArgument;
  const lines = [
    `curl -sS -N ${quoted(url)}`,
    ...(method === (body ? "POST" : "GET") ? [] : [`-X ${method}`]),
    ...keys.map(([name, value]) => `-H "${name}: ${value.replace("[key]", keyVariable)}"`),
    // Without it, curl would say that the body is a form.
    ...(body && !headers.some(([name]) => name.toLowerCase() === "content-type") ? ["-H 'content-type:'"] : []),
    ...ownHeaders(request).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body ? [isPiped ? "--data-binary @-" : `--data-raw ${quoted(body.text)}`] : []),
  ];
  const command = lines.join(" \\\n  ");
  // A builtin of the shell: its arguments have no limit.
  return isPiped ? `printf %s ${quoted(body.text)} |\n${command}` : command;
}

/** The headers of the APIs that carry a key. Others with a secret, such as cookies, are left out. */
function isKeyHeader([name, value]: Header): boolean {
  return /^(?:authorization|x-api-key|x-goog-api-key|api-key)$/i.test(name) && /^(?:Bearer )?\[key\]$/i.test(value);
}

/** A text as an argument for bash. */
function quoted(text: string): string {
  // A terminal would interpret control characters of a pasted text.
  if (!/(?!\n)\p{Cc}/u.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = text.replaceAll(/\p{Cc}|['\\]/gu, (character) => {
    if (character === "'" || character === "\\") return `\\${character}`;
    const code = character.charCodeAt(0);
    // Bash writes `\x80` as one byte, which is no UTF-8.
    return character === "\n" || code >= 0x80 ? character : `\\x${code.toString(16).padStart(2, "0")}`;
  });
  return `$'${escaped}'`;
}
