import { elements, isHeader, hasUsage, onChunk, onPiece, chatPiece, first } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { type Json } from "./stream-draft.ts";

export const specificationMutations: readonly StreamMutation[] = [
  onChunk(
    "spec/chunk",
    "a usage without prompt_tokens",
    hasUsage,
    (chunk) => delete (chunk.usage as Json).prompt_tokens,
  ),
  onPiece(
    "spec/chunk",
    "a call whose function is text",
    chatPiece(isHeader),
    (piece) => (first(elements(piece)).function = "f"),
  ),
];
