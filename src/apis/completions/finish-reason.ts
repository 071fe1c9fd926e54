import type { FinishReason } from "../../core/events.ts";

/** A legacy `finish_reason`, which knows no calls (specification). */
export function completionFinishReason(reason: FinishReason): "stop" | "length" | "content_filter" {
  if (reason === "length") return "length";
  return reason === "content-filter" ? "content_filter" : "stop";
}
