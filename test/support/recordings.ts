import { existsSync, readFileSync } from "node:fs";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";

/** A real answer of a vendor, with its request where that was kept. */
export interface Recording {
  readonly name: string;
  readonly endpoint: string;
  readonly status: number;
  readonly date: string | null;
  readonly model: string | null;
  /** Only the bodies of `raw` and `raw (body only)` are the original bytes. */
  readonly fidelity: string;
  readonly request: Record<string, unknown> | null;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Where recordings are: next to the project, of which they are no part. Each folder has a file for a kind of answer, one JSON a line. */
export const recordingFolders: readonly string[] = ["../shared/recordings", "../shared/recordings-2026-10"].filter(
  (folder) => existsSync(folder),
);

/** Whether there are recordings; prints what is left out without them. `purpose`: `to repair`. */
export function hasRecordings(purpose: string): boolean {
  const isHere = recordingFolders.length > 0;
  if (!isHere) console.log(`skipped: no ../shared/recordings ${purpose}`);
  return isHere;
}

/** Returns all recordings of a kind: `chat-stream`, `messages-errors`. */
export function readRecordings(kind: string): readonly Recording[] {
  const files = recordingFolders.map((folder) => `${folder}/${kind}.jsonl`).filter((file) => existsSync(file));
  const lines = files.flatMap((file) => readFileSync(file, "utf8").split("\n").filter(Boolean));
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
