import {
  isFinish,
  hasText,
  isLater,
  isHeader,
  isArguments,
  chat,
  onPiece,
  chatPiece,
  withDelta,
  rename,
} from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { insert, type Piece, piecesOf, remove } from "./stream-draft.ts";

export const deltaMutations: readonly StreamMutation[] = [
  onPiece(
    "stream/role-first",
    "no role",
    chatPiece((piece) => "role" in piece.delta),
    (piece) => delete piece.delta.role,
  ),
  onPiece(
    "stream/role-first",
    "the role chunk is dropped",
    chatPiece((piece) => "role" in piece.delta && !isHeader(piece)),
    (piece, draft) => {
      const others = piecesOf(draft, (other) => other.choice.index === piece.choice.index).length;
      if (others > 1) remove(draft, piece.chunk);
      else delete piece.delta.role;
    },
  ),
  onPiece(
    "stream/role-once",
    "the role on a later delta",
    (draft) => (piece) => chat(draft) && isLater(draft)(piece),
    (piece) => (piece.delta.role = "assistant"),
  ),
  onPiece(
    "stream/role-value",
    "another role",
    chatPiece((piece) => "role" in piece.delta),
    (piece) => (piece.delta.role = "model"),
  ),
  onPiece("delta/object", "no delta", chatPiece(isLaterText), ({ choice }) => delete choice.delta),
  onPiece(
    "delta/content-type",
    "content as parts",
    chatPiece(hasText),
    (piece) => (piece.delta.content = [{ type: "text", text: "x" }]),
  ),
  onPiece("delta/content-type", "content as a number", chatPiece(hasText), (piece) => (piece.delta.content = 7)),
  onPiece(
    "delta/content-null",
    "null later on",
    (draft) => (piece) => chat(draft) && isLater(draft)(piece) && isArguments(piece),
    (piece) => (piece.delta.content = null),
  ),
  onPiece("delta/content-empty", "an empty fragment", chatPiece(hasText), (piece, draft) =>
    insert(draft, piece.chunk, withDelta(piece, { content: "" }), "after"),
  ),
  onPiece("delta/empty", "an empty delta", chatPiece(hasText), (piece, draft) =>
    insert(draft, piece.chunk, withDelta(piece, {}), "after"),
  ),
  onPiece("delta/null-calls", "null tool_calls", chatPiece(hasText), (piece) => (piece.delta.tool_calls = null)),
  onPiece("delta/null-calls", "null function_call", chatPiece(hasText), (piece) => (piece.delta.function_call = null)),
  onPiece(
    "delta/one-field",
    "text and reasoning together",
    chatPiece(hasText),
    (piece) => (piece.delta.reasoning_content = "hm"),
  ),
  onPiece("delta/one-field", "text next to a call", chatPiece(isArguments), (piece) => (piece.delta.content = "x")),
  onPiece(
    "delta/refusal-type",
    "an object",
    chatPiece((piece) => "refusal" in piece.delta),
    (piece) => (piece.delta.refusal = {}),
  ),
  onPiece(
    "delta/reasoning-name",
    "reasoning_text",
    chatPiece((piece) => "reasoning_content" in piece.delta),
    (piece) => rename(piece.delta, "reasoning_content", "reasoning_text"),
  ),
  onPiece(
    "delta/reasoning-type",
    "an array",
    chatPiece((piece) => "reasoning_content" in piece.delta),
    (piece) => (piece.delta.reasoning_content = ["hm"]),
  ),
  {
    rule: "delta/reasoning-in-content",
    name: "a thought in content",
    apply(draft) {
      const [piece] = piecesOf(draft, chatPiece(hasText)(draft));
      if (piece) piece.delta.content = `<think>hm</think>${piece.delta.content as string}`;
      return (
        piece !== undefined &&
        piecesOf(
          draft,
          (other) =>
            typeof other.delta.content === "string" &&
            other.delta.content !== "" &&
            other.choice.index === piece.choice.index,
        )[0]?.chunk === piece.chunk
      );
    },
  },
  onPiece(
    "delta/call-in-content",
    "the model's markup in content",
    (draft) => (piece) =>
      chat(draft) &&
      hasText(piece) &&
      Array.isArray(draft.request?.tools) &&
      draft.request.tool_choice !== "none" &&
      // What the limit cut may be the markup of a call.
      piecesOf(draft, ({ choice }) => choice.finish_reason === "length").length === 0,
    (piece) => (piece.delta.content = '<tool_call>{"name":"f"}</tool_call>'),
  ),
  {
    rule: "delta/special-token",
    name: "a special token at the end",
    apply(draft) {
      const piece = piecesOf(draft, (one) => typeof one.delta.content === "string" && one.delta.content !== "").at(-1);
      if (!chat(draft) || !piece) return false;
      piece.delta.content = `${piece.delta.content as string}<|im_end|>`;
      return true;
    },
  },
  onPiece("delta/after-finish", "text after the finish reason", chatPiece(isFinish), (piece, draft) =>
    insert(draft, piece.chunk, withDelta(piece, { content: "more" }), "after"),
  ),
  {
    rule: "delta/after-finish",
    name: "the finish reason before the last text",
    apply(draft) {
      const [finish] = piecesOf(draft, chatPiece(isFinish)(draft));
      const own = piecesOf(draft, (piece) => finish !== undefined && piece.choice.index === finish.choice.index);
      const text = own.filter(isLater(draft)).findLast(hasText);
      if (!finish || !text) return false;
      remove(draft, finish.chunk);
      insert(draft, text.chunk, finish.chunk, "before");
      return true;
    },
  },
  {
    rule: "stream/role-first",
    name: "the role behind the first text",
    apply(draft) {
      const [role, next] = piecesOf(draft, ({ choice }) => choice.index === 0);
      if (!chat(draft) || !role || !next || !hasText(next)) return false;
      remove(draft, role.chunk);
      insert(draft, next.chunk, role.chunk, "after");
      return true;
    },
  },
  onPiece(
    "delta/known-members",
    "a member of its own",
    chatPiece(hasText),
    (piece) => (piece.delta.provider_specific_fields = {}),
  ),
  onPiece(
    "text/present",
    "no text",
    (draft) => () => !chat(draft),
    ({ choice }) => delete choice.text,
  ),
  onPiece(
    "text/present",
    "null",
    (draft) => () => !chat(draft),
    ({ choice }) => (choice.text = null),
  ),
  onPiece(
    "text/after-finish",
    "text after the finish reason",
    (draft) => (piece) => !chat(draft) && isFinish(piece),
    (piece, draft) =>
      insert(
        draft,
        piece.chunk,
        { ...piece.chunk, choices: [{ ...piece.choice, text: "more", finish_reason: null }] },
        "after",
      ),
  ),
];

function isLaterText(piece: Piece): boolean {
  return hasText(piece) && !("role" in piece.delta);
}
