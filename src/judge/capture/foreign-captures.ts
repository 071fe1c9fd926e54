import { isObject } from "../../wire/core/json.ts";
import type { CapturedExchange } from "./captured-exchange.ts";

/**
 * The exchanges of a HAR file, as browsers save it. It holds a body as a whole, so its timing is that of its end.
 * Source: HTTP Archive 1.2.
 */
export function readHar(value: unknown, from: string): CapturedExchange[] {
  const entries = isObject(value) && isObject(value["log"]) ? value["log"]["entries"] : undefined;
  if (!Array.isArray(entries)) throw new Error(`${from}: expected a HAR file: {"log":{"entries":[…]}}`);
  return entries.flatMap((entry: unknown, at) => {
    const exchange = isObject(entry) ? exchangeOf(entry, `${from}: log.entries[${at}]`) : undefined;
    return exchange ? [exchange] : [];
  });
}

function exchangeOf(entry: Readonly<Record<string, unknown>>, from: string): CapturedExchange | undefined {
  const { request, response, time } = entry;
  if (!isObject(request) || !isObject(response)) return undefined;
  const { url, method, postData } = request;
  if (typeof url !== "string" || typeof method !== "string" || !URL.canParse(url)) return undefined;
  const { pathname, search } = new URL(url);
  const body = isObject(postData) ? postData["text"] : undefined;
  const content = isObject(response["content"]) ? response["content"] : {};
  const text = typeof content["text"] === "string" ? content["text"] : "";
  const ms = typeof time === "number" ? time : 0;
  return {
    from,
    request: { method, path: pathname + search, ...(typeof body === "string" && { body }) },
    response: {
      status: Number(response["status"]) || 200,
      headers: headersOf(response["headers"]),
      pieces: text === "" ? [] : [content["encoding"] === "base64" ? { ms, base64: text } : { ms, text }],
    },
  };
}

/** Headers without those that describe the encoding of the body: HAR contains the decoded body. */
function headersOf(value: unknown): [string, string][] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((header: unknown): [string, string][] => {
    if (!isObject(header) || typeof header["name"] !== "string" || typeof header["value"] !== "string") return [];
    // HTTP/2's own, such as ":status".
    if (header["name"].startsWith(":") || header["name"].toLowerCase() === "content-encoding") return [];
    return [[header["name"], header["value"]]];
  });
}

/** curl's progress meter, where both of its outputs go into one file: the same line many times, with a line end after the last. */
const progress = /\r *\d[ \d.kMG]*(?: +[-\d:]{8}){3} +[\d.kMG]+(?:\n(?=\* ))?/g;

/**
 * What `curl -v` shows on a terminal: lines of its own with `*`, the request's head with `>`, the answer's head with `<`, and the body
 * as it is. The request's body is not shown, so any will do.
 */
export function readTranscript(text: string, from: string): CapturedExchange {
  let request: CapturedExchange["request"] | undefined;
  let status = 0;
  const headers: [string, string][] = [];
  const body: string[] = [];
  for (const line of text.replaceAll(progress, "").split("\n")) {
    const said = line.replace(/\r$/, "");
    const asked = /^> ([A-Z]+) (\S+) HTTP\//.exec(said);
    const answered = /^< HTTP\/\S+ (\d+)/.exec(said);
    const header = /^< ([^:\s]+):\s*(.*)$/.exec(said);
    if (asked) request = { method: asked[1] ?? "", path: asked[2] ?? "" };
    else if (answered) {
      // An interim answer, such as 100, is followed by the real one.
      status = Number(answered[1]);
      headers.length = 0;
    } else if (header) headers.push([header[1] ?? "", header[2] ?? ""]);
    else if (status !== 0 && !/^([*<>]( |$)|[{}] \[\d+ bytes data\]$)/.test(said)) body.push(line);
  }
  if (!request || status === 0)
    throw new Error(`${from}: expected what curl -v shows, with lines "> POST /…" and "< HTTP/…"`);
  const whole = body.join("\n");
  return { from, request, response: { status, headers, pieces: whole === "" ? [] : [{ ms: 0, text: whole }] } };
}
