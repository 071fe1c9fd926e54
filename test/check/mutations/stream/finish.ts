import { isFinish, elements, chat, onPiece, chatPiece } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { hasError, insert, piecesOf, remove } from "./stream-draft.ts";

export const finishMutations: readonly StreamMutation[] = [
  onPiece(
    "finish/present",
    "the finish chunk is dropped",
    (draft) => (piece) => isFinish(piece) && !hasError(draft),
    (piece, draft) => remove(draft, piece.chunk),
  ),
  onPiece("finish/once", "the finish chunk twice", chatPiece(isFinish), (piece, draft) =>
    insert(draft, piece.chunk, structuredClone(piece.chunk), "after"),
  ),
  onPiece(
    "finish/value",
    "eos",
    () => isFinish,
    ({ choice }) => (choice.finish_reason = "eos"),
  ),
  onPiece(
    "finish/value",
    "the empty string",
    () => isFinish,
    ({ choice }) => (choice.finish_reason = ""),
  ),
  onPiece(
    "finish/own-chunk",
    "text next to the finish reason",
    chatPiece(isFinish),
    (piece) => (piece.delta.content = "the end"),
  ),
  onPiece(
    "finish/empty-delta",
    "an empty content next to the finish reason",
    chatPiece(isFinish),
    (piece) => (piece.delta.content = ""),
  ),
  onPiece(
    "finish/calls",
    "stop after calls",
    (draft) => (piece) =>
      chat(draft) && piece.choice.finish_reason === "tool_calls" && typeof draft.request?.tool_choice !== "object",
    ({ choice }) => (choice.finish_reason = "stop"),
  ),
  onPiece(
    "finish/calls-made",
    "tool_calls without a call",
    (draft) => (piece) =>
      chat(draft) && isFinish(piece) && piecesOf(draft, (other) => elements(other).length > 0).length === 0,
    ({ choice }) => (choice.finish_reason = "tool_calls"),
  ),
];
