import { readFileSync } from "node:fs";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";

/** Real OpenAI traffic, one JSON a line; it lies next to the project and is no part of it. */
export const recordings: URL = new URL("../../../shared/recordings/", import.meta.url);

export interface Recording {
  readonly name: string;
  readonly endpoint: string;
  readonly status: number;
  readonly date: string | null;
  /** Only the bodies of `raw` and `raw (body only)` are the original bytes. */
  readonly fidelity: string;
  readonly request: Record<string, unknown> | null;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export function readRecordings(file: string): readonly Recording[] {
  const lines = readFileSync(new URL(`${file}.jsonl`, recordings), "utf8")
    .split("\n")
    .filter(Boolean);
  return lines.map((line) => {
    const recording = JSON.parse(line) as Recording & { readonly request: unknown };
    // Some recorders kept a request as its text.
    const { request } = recording;
    return typeof request === "string" ? { ...recording, request: JSON.parse(request || "null") } : recording;
  });
}

export function exchangeOfRecording(recording: Recording, endpoint: Exchange["endpoint"]): Exchange {
  // Some recorders kept only a few headers; without Content-Type they tell nothing.
  const headers = recording.headers["content-type"] === undefined ? null : recording.headers;
  return {
    endpoint,
    request: { method: "POST", path: recording.endpoint, ...(recording.request && { body: recording.request }) },
    response: { status: recording.status, headers, body: recording.body, complete: true },
  };
}
