import type { FinishReason } from "../../core/events.ts";

/** Why a response is incomplete; undefined: it is complete. */
export function incompleteReason(reason: FinishReason): "max_output_tokens" | "content_filter" | undefined {
  switch (reason) {
    case "length":
      return "max_output_tokens";
    case "content-filter":
      return "content_filter";
    case "stop":
    case "tool-calls":
    case "function-call":
      return undefined;
  }
}
