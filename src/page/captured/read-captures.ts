import { bodyOf } from "../../judge/capture/captured-exchange.ts";
import type { CapturedExchange } from "../../judge/capture/captured-exchange.ts";
import { readHar, readTranscript } from "../../judge/capture/foreign-captures.ts";
import { readRecording } from "../../judge/capture/recording.ts";
import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import type { Capture } from "./capture.ts";

/**
 * Returns the answers in a dropped text: a recording of `truewire record`, a HAR file, what `curl -v` or `curl -i` has printed,
 * the JSON report of `truewire check`, lines of JSON as `truewire repair --jsonl` takes them, a file of `--log-stream`; else the text is
 * itself an answer's body.
 */
export function droppedCaptures(name: string, text: string): Capture[] {
  if (/^[*>] /m.test(text) && /^< HTTP\//m.test(text)) return [captureOf(readTranscript(text, name))];
  if (text.startsWith('{"truewire":')) return ofRecording(name, text);
  const value = parsed(text);
  const listed = isObject(value) ? (ofHar(name, value) ?? ofReport(name, value) ?? ofJob(name, value)) : undefined;
  return listed ?? ofLines(name, text) ?? ofStreamLog(name, text) ?? ofHead(name, text) ?? [{ name, body: text }];
}

function ofRecording(name: string, text: string): Capture[] {
  const lines = text.split("\n").flatMap((line, at) => (line.trim() === "" ? [] : [[line, at + 1] as const]));
  return lines.map(([line, number]) => captureOf(readRecording(line, `${name}:${number}`)));
}

/** True for entries of a HAR file that may be answers, unlike images and scripts of the same page. */
function ofHar(name: string, value: JsonObject): Capture[] | undefined {
  if (!isObject(value["log"])) return undefined;
  const all = readHar(value, name).map(captureOf);
  return all.filter(({ headers, body }) => body !== "" && /json|event-stream/.test(headers?.["content-type"] ?? ""));
}

function captureOf({ from, request, response }: CapturedExchange): Capture {
  const { method, path, body } = request;
  const { status, headers, brokeOff } = response;
  const asked = body === undefined ? undefined : parsed(body);
  return {
    name: `${from}: ${method} ${path}`,
    body: bodyOf(response),
    method,
    path: path.replace(/\?.*/, ""),
    ...(isObject(asked) && { request: asked }),
    status,
    headers: Object.fromEntries(headers.map(([field, value]) => [field.toLowerCase(), value])),
    ...(brokeOff === true && { complete: false }),
  };
}

/** What `curl -i` has printed: an answer with its head. */
function ofHead(name: string, text: string): Capture[] | undefined {
  const [, status, head = "", body = ""] =
    /^HTTP\/[\d.]+ (\d{3})[^\n]*\n((?:[^\r\n]+\r?\n)*)\r?\n(.*)$/s.exec(text) ?? [];
  if (status === undefined) return undefined;
  const headers = [...head.matchAll(/^([^:\r\n]+): *([^\r\n]*)/gm)].map(([, field = "", value = ""]) => [
    field.toLowerCase(),
    value,
  ]);
  return [{ name, body, status: Number(status), headers: Object.fromEntries(headers) as Record<string, string> }];
}

/** Source: src/judge/check/report/text-reports.ts. */
function ofReport(name: string, { exchanges }: JsonObject): Capture[] | undefined {
  if (!Array.isArray(exchanges)) return undefined;
  return exchanges.filter(isObject).flatMap(({ id, request, response }) => {
    if (!isObject(request) || !isObject(response)) return [];
    const { headers, status } = response;
    return [
      {
        name: `${name}: ${textOf(id)}`,
        body: textOf(response["body"]),
        method: textOf(request["method"]),
        path: textOf(request["path"]),
        ...(isObject(request["body"]) && { request: request["body"] }),
        ...(typeof status === "number" && { status }),
        ...(isObject(headers) && { headers: headers as Readonly<Record<string, string>> }),
      },
    ];
  });
}

/** A capture with its request: `{"body": "data: …", "request": {…}}`. An answer's own JSON has no text called `body`. */
function ofJob(name: string, { id, body, request }: JsonObject): Capture[] | undefined {
  if (typeof body !== "string") return undefined;
  return [{ name: id === undefined ? name : `${name}: ${textOf(id)}`, body, ...(isObject(request) && { request }) }];
}

function ofLines(name: string, text: string): Capture[] | undefined {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length < 2 || !lines.every((line) => line.startsWith("{"))) return undefined;
  const jobs = lines.map((line, at) => {
    const value = parsed(line);
    return isObject(value) ? ofJob(`${name}, line ${at + 1}`, value) : undefined;
  });
  return jobs.every((job) => job !== undefined) ? jobs.flat() : undefined;
}

/** Source: src/serve/server/stream-log.ts: time, the request's id, and the event with its line ends as `\n`. */
function ofStreamLog(file: string, text: string): Capture[] | undefined {
  const bodies = new Map<string, string>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, id, event] = /^\d{4}-\d\d-\d\dT[\d:.]+Z (req_\S+) (.*)$/.exec(line) ?? [];
    if (id === undefined || event === undefined) return undefined;
    bodies.set(id, `${bodies.get(id) ?? ""}${event.replaceAll("\\n", "\n")}\n\n`);
  }
  return bodies.size === 0 ? undefined : [...bodies].map(([id, body]) => ({ name: `${file}: ${id}`, body }));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}
