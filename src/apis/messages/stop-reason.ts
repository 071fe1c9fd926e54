import type { GeneratedFinish } from "../../core/accumulate.ts";
import type { NativeMembers } from "./native-members.ts";

/** Why a message ended, in the members that tell it: `stop_reason`, `stop_sequence`, `stop_details`. */
export interface MessageEnd {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly stop_details: unknown;
}

/** `refused`: the model said no, in a part of its own. Source: https://platform.claude.com/docs/en/api/handling-stop-reasons. */
export function messageEnd(finish: GeneratedFinish | null, refused: boolean, native: NativeMembers): MessageEnd {
  const { stopReason, stopDetails } = native;
  const stop_reason = stopReason ?? (refused && finish?.reason === "stop" ? "refusal" : stopReasonOf(finish));
  return {
    stop_reason,
    stop_sequence: stop_reason === "stop_sequence" ? (finish?.stop ?? null) : null,
    stop_details:
      stopDetails ?? (stop_reason === "refusal" ? { type: "refusal", category: null, explanation: null } : null),
  };
}

function stopReasonOf(finish: GeneratedFinish | null): string {
  switch (finish?.reason) {
    case "length":
      return finish.limit === "context" ? "model_context_window_exceeded" : "max_tokens";
    case "tool-calls":
    case "function-call":
      return "tool_use";
    case "content-filter":
      return "refusal";
    case "stop":
    case undefined:
      return finish?.stop === undefined ? "end_turn" : "stop_sequence";
  }
}
