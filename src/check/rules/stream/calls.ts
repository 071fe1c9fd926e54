import { isObject } from "../../../core/json.ts";
import { type ChoicePiece, type Json, type StreamView } from "../view.ts";

/** One element of a delta's `tool_calls`, with where it stood. */
export interface CallPiece {
  readonly piece: ChoicePiece;
  readonly element: Json;
  readonly fn: Json;
  readonly index: unknown;
  /** The first element with this index in its choice. */
  readonly header: boolean;
}

/** A call put together as clients do it: by index. */
export interface Call {
  readonly choice: number;
  readonly index: unknown;
  readonly name: string;
  readonly arguments: string;
  readonly pieces: readonly CallPiece[];
}

/** Every element of every delta's tool_calls, in order. */
export function* callPieces(view: StreamView): Generator<CallPiece & { choice: number }> {
  for (const [choice, track] of view.choices) {
    const seen = new Set<unknown>();
    for (const piece of track) {
      const list = Array.isArray(piece.delta.tool_calls) ? piece.delta.tool_calls.filter(isObject) : [];
      for (const element of list) {
        const { index } = element;
        yield {
          choice,
          piece,
          element,
          fn: isObject(element.function) ? element.function : {},
          index,
          header: !seen.has(index),
        };
        seen.add(index);
      }
    }
  }
}

export function callsOf(view: StreamView): Call[] {
  const calls = new Map<
    string,
    { choice: number; index: unknown; name: string; arguments: string[]; pieces: CallPiece[] }
  >();
  for (const part of callPieces(view)) {
    const key = `${part.choice} ${JSON.stringify(part.index)}`;
    let call = calls.get(key);
    if (!call) calls.set(key, (call = { choice: part.choice, index: part.index, name: "", arguments: [], pieces: [] }));
    call.pieces.push(part);
    if (typeof part.fn.name === "string") call.name ||= part.fn.name;
    if (typeof part.fn.arguments === "string") call.arguments.push(part.fn.arguments);
  }
  return [...calls.values()].map((call) => ({ ...call, arguments: call.arguments.join("") }));
}
