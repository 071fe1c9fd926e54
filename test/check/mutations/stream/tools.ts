import { elements, isHeader, isArguments, onPiece, chatPiece, first, fn } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { type Draft, hasError, insert, type Piece, piecesOf, remove } from "./stream-draft.ts";

export const toolMutations: readonly StreamMutation[] = [
  onPiece(
    "tool/index",
    "no index",
    chatPiece((piece) => elements(piece).length > 0),
    (piece) => delete first(elements(piece)).index,
  ),
  onPiece(
    "tool/index-order",
    "numbers from 1",
    chatPiece((piece) => isHeader(piece)),
    (_, draft) =>
      piecesOf(draft)
        .flatMap(elements)
        .forEach((element) => (element.index = (element.index as number) + 1)),
  ),
  onPiece("tool/one-element", "two calls in one delta", chatPiece(isHeader), (piece) =>
    elements(piece).push({ ...first(elements(piece)), index: 9 }),
  ),
  onPiece("tool/id", "no id", chatPiece(isHeader), (piece) => delete first(elements(piece)).id),
  onPiece("tool/id", "an empty id", chatPiece(isHeader), (piece) => (first(elements(piece)).id = "")),
  onPiece(
    "tool/id-stable",
    "a new id in a later delta",
    chatPiece(isArguments),
    (piece) => (first(elements(piece)).id = "call_other"),
  ),
  onPiece(
    "tool/id-stable",
    "an empty id in a later delta",
    chatPiece(isArguments),
    (piece) => (first(elements(piece)).id = ""),
  ),
  {
    rule: "tool/id-unique",
    name: "two calls with one id",
    apply(draft) {
      const headers = piecesOf(draft, (piece) => isHeader(piece) && piece.choice.index === 0);
      const [one, two] = headers;
      if (!one || !two) return false;
      first(elements(two)).id = first(elements(one)).id;
      return true;
    },
  },
  onPiece("tool/type", "no type", chatPiece(isHeader), (piece) => delete first(elements(piece)).type),
  onPiece("tool/name", "no name", chatPiece(isHeader), (piece) => delete fn(piece).name),
  onPiece(
    "tool/name",
    "the header is dropped",
    chatPiece((piece) => isHeader(piece) && !("role" in piece.delta)),
    (piece, draft) => {
      remove(draft, piece.chunk);
    },
  ),
  onPiece("tool/name-once", "the name again", chatPiece(isArguments), (piece) => (fn(piece).name = "f")),
  onPiece("tool/name-once", "an empty name", chatPiece(isArguments), (piece) => (fn(piece).name = "")),
  onPiece(
    "tool/id-once",
    "the type again",
    chatPiece(isArguments),
    (piece) => (first(elements(piece)).type = "function"),
  ),
  onPiece(
    "tool/arguments-type",
    "arguments as an object",
    chatPiece(isArguments),
    (piece) => (fn(piece).arguments = {}),
  ),
  onPiece("tool/arguments-type", "null arguments", chatPiece(isHeader), (piece) => (fn(piece).arguments = null)),
  onPiece("tool/arguments-key", "no arguments", chatPiece(isHeader), (piece) => delete fn(piece).arguments),
  onPiece(
    "tool/header-alone",
    "arguments in the first delta",
    chatPiece(isHeader),
    (piece) => (fn(piece).arguments = " "),
  ),
  {
    rule: "tool/arguments-json",
    name: "an empty string for no arguments",
    apply(draft) {
      if (hasError(draft) || piecesOf(draft, (piece) => piece.choice.finish_reason === "length").length > 0)
        return false;
      const calls = piecesOf(draft, isArguments);
      for (const piece of calls) remove(draft, piece.chunk);
      return calls.length > 0;
    },
  },
  onPiece(
    "tool/arguments-json",
    "the arguments' first piece again",
    (draft) => isFirstArguments(draft),
    (piece, draft) => insert(draft, piece.chunk, structuredClone(piece.chunk), "after"),
  ),
  onPiece(
    "tool/arguments-json",
    "the arguments' first piece is lost",
    (draft) => isFirstArguments(draft),
    (piece, draft) => remove(draft, piece.chunk),
  ),
  onPiece("tool/known-name", "a tool that nobody declared", chatPiece(isHeader), (piece) => (fn(piece).name = "rm_rf")),
];

/** The first piece of arguments of an answer that came whole. */
function isFirstArguments(draft: Draft): (piece: Piece) => boolean {
  const cut = hasError(draft) || piecesOf(draft, ({ choice }) => choice.finish_reason === "length").length > 0;
  const [one] = cut ? [] : piecesOf(draft, isArguments);
  return (piece) => piece.chunk === one?.chunk;
}
