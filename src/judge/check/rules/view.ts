import { isObject } from "../../../wire/core/json.ts";
import type { Exchange } from "./exchange.ts";
import { type Frame, framesOf } from "./frames.ts";

/** An exchange with its parsed stream, which all rules read. */
export interface StreamView {
  readonly exchange: Exchange;
  readonly frames: readonly Frame[];
  /** Frames whose data is a JSON object. */
  readonly chunks: readonly Chunk[];
  /** Index of the frame with `[DONE]`; −1 without one. */
  readonly done: number;
  /** The deltas of each choice, in order. */
  readonly choices: ReadonlyMap<number, readonly ChoicePart[]>;
}

export interface Chunk {
  readonly frame: Frame;
  /** Position among the chunks. */
  readonly index: number;
  readonly value: Json;
  /** `choices`, or `[]` if it is not an array. */
  readonly choices: readonly Json[];
}

/** The part of a chunk that belongs to one choice. */
export interface ChoicePart {
  readonly chunk: Chunk;
  readonly choice: Json;
  /** `delta` of a chat chunk; `{}` if it is not an object, and for completions. */
  readonly delta: Json;
}

export type Json = Readonly<Record<string, unknown>>;

export function streamView(exchange: Exchange): StreamView {
  const frames = framesOf(exchange.response.body);
  const chunks: Chunk[] = [];
  const choices = new Map<number, ChoicePart[]>();
  for (const frame of frames) {
    const value = frame.data === null ? undefined : parsedJson(frame.data);
    if (!isObject(value)) continue;
    const list = Array.isArray(value.choices) ? value.choices.filter(isObject) : [];
    const chunk = { frame, index: chunks.length, value, choices: list };
    chunks.push(chunk);
    for (const choice of list) {
      const number = typeof choice.index === "number" ? choice.index : 0;
      const part = { chunk, choice, delta: isObject(choice.delta) ? choice.delta : {} };
      const track = choices.get(number);
      if (track) track.push(part);
      else choices.set(number, [part]);
    }
  }
  const done = frames.findIndex((frame) => frame.data?.trim() === "[DONE]");
  return { exchange, frames, chunks, done, choices };
}

/** An exchange with its parsed body, which is not a stream. */
export interface BodyView {
  readonly exchange: Exchange;
  /** `undefined` if the body is not JSON. */
  readonly value: unknown;
}

export function bodyView(exchange: Exchange): BodyView {
  return { exchange, value: parsedJson(exchange.response.body) };
}

/** Returns the parsed JSON, or `undefined` if the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
