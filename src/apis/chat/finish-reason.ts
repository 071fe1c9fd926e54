import type { FinishReason } from "../../core/events.ts";
import type { AskedAnswer } from "../choices-answer.ts";
import type { ChatChoiceForm } from "./form.ts";

/** A chat `finish_reason`. OpenAI says `stop` for a call that was forced by name (9 of 9 recordings). */
export function finishReason(
  reason: FinishReason,
  asked: AskedAnswer,
  { namedCallStops }: ChatChoiceForm,
): "stop" | "length" | "tool_calls" | "content_filter" | "function_call" {
  switch (reason) {
    case "tool-calls":
    case "function-call":
      if (namedCallStops && asked.namedToolChoice) return "stop";
      return reason === "function-call" || asked.legacyFunctions ? "function_call" : "tool_calls";
    case "content-filter":
      return "content_filter";
    case "stop":
    case "length":
      return reason;
  }
}
