import {
  isFinish,
  hasText,
  elements,
  isHeader,
  hasUsage,
  chat,
  onChunk,
  onPiece,
  chatPiece,
  fn,
  rename,
} from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { hasError, type Json, piecesOf } from "./stream-draft.ts";

export const obedienceMutations: readonly StreamMutation[] = [
  {
    rule: "request/stop",
    name: "a stop string in the text",
    apply(draft) {
      const [piece] = piecesOf(draft, hasText);
      if (!chat(draft) || !piece || !draft.request?.stop) return false;
      piece.delta.content = "a <stop> b";
      return true;
    },
  },
  onChunk(
    "request/max-tokens",
    "too many tokens",
    (chunk, draft) => hasUsage(chunk) && typeof draft.request?.max_completion_tokens === "number",
    (chunk) => (chunk.usage = { prompt_tokens: 1, completion_tokens: 9999, total_tokens: 10000 }),
  ),
  {
    rule: "request/required",
    name: "no call though one is required",
    apply(draft) {
      const forced = draft.request?.tool_choice === "required" || typeof draft.request?.tool_choice === "object";
      if (!forced || hasError(draft)) return false;
      for (const piece of piecesOf(draft)) {
        if ("tool_calls" in piece.delta) rename(piece.delta, "tool_calls", "content", "x");
        if (isFinish(piece)) piece.choice.finish_reason = "stop";
      }
      return true;
    },
  },
  onPiece(
    "request/named",
    "another tool than the one named",
    (draft) => (piece) => isHeader(piece) && typeof draft.request?.tool_choice === "object",
    (piece) => (fn(piece).name = "get_weather"),
  ),
  onPiece(
    "request/no-tools",
    "a call though none is allowed",
    chatPiece(isHeader),
    (_, draft) => ((draft.request as Json).tool_choice = "none"),
  ),
  {
    rule: "request/parallel",
    name: "two calls though one is allowed",
    apply(draft) {
      if (piecesOf(draft, (piece) => isHeader(piece) && piece.choice.index === 0).length < 2) return false;
      (draft.request as Json).parallel_tool_calls = false;
      return true;
    },
  },
  {
    rule: "request/json",
    name: "words where JSON was asked for",
    apply(draft) {
      const none =
        piecesOf(
          draft,
          (piece) => elements(piece).length > 0 || ("refusal" in piece.delta && piece.delta.refusal !== null),
        ).length === 0;
      if (
        !chat(draft) ||
        hasError(draft) ||
        !none ||
        piecesOf(draft, (piece) => piece.choice.finish_reason === "length").length > 0
      )
        return false;
      (draft.request as Json).response_format = { type: "json_object" };
      const [piece] = piecesOf(draft, hasText);
      if (piece) piece.delta.content = "Sure! Here is your JSON:";
      return piece !== undefined;
    },
  },
];
