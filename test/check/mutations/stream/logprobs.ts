import { hasText, chat, onPiece, chatPiece, first } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { hasError, type Json, type Piece, piecesOf } from "./stream-draft.ts";

const hasTokens = chatPiece(
  (piece) =>
    Array.isArray((piece.choice.logprobs as Json | null)?.content) &&
    ((piece.choice.logprobs as Json).content as unknown[]).length > 0,
);
const token = (piece: Piece) => first((piece.choice.logprobs as Json).content as Json[]);

export const logprobMutations: readonly StreamMutation[] = [
  {
    rule: "logprobs/missing",
    name: "none though asked for",
    apply(draft) {
      if (!chat(draft) || draft.request?.logprobs !== true || hasError(draft)) return false;
      for (const { choice } of piecesOf(draft)) choice.logprobs = null;
      return (
        piecesOf(draft, (piece) => typeof piece.delta.content === "string" && piece.delta.content !== "").length > 0
      );
    },
  },
  onPiece(
    "logprobs/uninvited",
    "some that nobody asked for",
    (draft) => (piece) => chat(draft) && hasText(piece) && draft.request?.logprobs !== true,
    ({ choice, delta }) =>
      (choice.logprobs = { content: [{ token: delta.content, logprob: -1, bytes: null, top_logprobs: [] }] }),
  ),
  onPiece("logprobs/shape", "no top_logprobs", hasTokens, (piece) => delete token(piece).top_logprobs),
  onPiece("logprobs/shape", "no bytes", hasTokens, (piece) => delete token(piece).bytes),
  onPiece("logprobs/value", "a probability for its logarithm", hasTokens, (piece) => (token(piece).logprob = 0.7)),
  onPiece("logprobs/bytes", "bytes of another text", hasTokens, (piece) => (token(piece).bytes = [120])),
  onPiece(
    "logprobs/order",
    "the least likely first",
    hasTokens,
    (piece) => (token(piece).top_logprobs = [-3, -1].map((logprob) => ({ token: "x", logprob, bytes: [120] }))),
  ),
  onPiece(
    "logprobs/count",
    "too many",
    hasTokens,
    (piece) =>
      (token(piece).top_logprobs = Array.from({ length: 9 }, () => ({ token: "x", logprob: -3, bytes: [120] }))),
  ),
  onPiece("logprobs/text", "the thought's tokens before the text's", hasTokens, (piece) =>
    ((piece.choice.logprobs as Json).content as Json[]).unshift({
      token: "Hm",
      logprob: -1,
      bytes: [72, 109],
      top_logprobs: token(piece).top_logprobs,
    }),
  ),
  onPiece("logprobs/text", "a token that is not in the text", hasTokens, (piece) =>
    ((piece.choice.logprobs as Json).content as Json[]).push({
      token: "x",
      logprob: -1,
      bytes: [120],
      top_logprobs: token(piece).top_logprobs,
    }),
  ),
];
