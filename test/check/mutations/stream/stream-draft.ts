import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { obfuscate } from "../../../../src/wire/apis/chat/chat-envelope.ts";

export type Json = Record<string, unknown>;

/** A streamed exchange taken apart so that a mutation can change it: frames are chunks, or raw text such as `[DONE]`. */
export interface Draft {
  readonly endpoint: Exchange["endpoint"];
  readonly path: string;
  request: Json | undefined;
  headers: Record<string, string> | null;
  frames: (Json | string)[];
  complete: boolean;
  /** Applied to the text of the body at the end. */
  rewrite?: (body: string) => string;
}

export function draftOf(exchange: Exchange): Draft {
  const frames = exchange.response.body
    .split("\n\n")
    .filter(Boolean)
    .map((frame) => frame.slice("data: ".length))
    .map((data) => (data === "[DONE]" ? data : (JSON.parse(data) as Json)));
  return {
    endpoint: exchange.endpoint,
    path: exchange.request.path,
    request: structuredClone(exchange.request.body) as Json | undefined,
    headers: exchange.response.headers && { ...exchange.response.headers },
    frames,
    complete: exchange.response.complete,
  };
}

export function exchangeOf(draft: Draft): Exchange {
  const text = draft.frames.map((frame) => `data: ${typeof frame === "string" ? frame : jsonOf(frame)}\n\n`).join("");
  return {
    endpoint: draft.endpoint,
    request: { method: "POST", path: draft.path, ...(draft.request && { body: draft.request }) },
    response: {
      status: 200,
      headers: draft.headers,
      body: draft.rewrite ? draft.rewrite(text) : text,
      complete: draft.complete,
    },
  };
}

/** A chunk that was changed is padded anew, or every change of an obfuscated stream would be noticed by its length alone. */
function jsonOf({ obfuscation, ...chunk }: Json): string {
  const json = JSON.stringify(chunk);
  return obfuscation === undefined ? json : obfuscate(json.slice(0, -1), () => 0.5);
}

/** The chunks of a draft, errors left out. */
export function chunksOf(draft: Draft): Json[] {
  return draft.frames.filter((frame): frame is Json => typeof frame === "object" && !("error" in frame));
}

export interface Piece {
  readonly chunk: Json;
  readonly choice: Json;
  readonly delta: Json;
}

export function piecesOf(draft: Draft, wanted: (piece: Piece) => boolean = () => true): Piece[] {
  return chunksOf(draft)
    .flatMap((chunk) =>
      (chunk.choices as Json[]).map((choice) => ({ chunk, choice, delta: (choice.delta ?? {}) as Json })),
    )
    .filter(wanted);
}

export function hasError(draft: Draft): boolean {
  return draft.frames.some((frame) => typeof frame === "object" && "error" in frame);
}

/** Puts a frame before or after another. */
export function insert(draft: Draft, at: Json | string, frame: Json | string, where: "before" | "after"): void {
  draft.frames.splice(draft.frames.lastIndexOf(at) + (where === "after" ? 1 : 0), 0, frame);
}

export function remove(draft: Draft, frame: Json | string): void {
  draft.frames.splice(draft.frames.indexOf(frame), 1);
}
