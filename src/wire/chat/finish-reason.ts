import type { FinishReason } from "../../generation/event.ts";
import type { ChoiceForm } from "../capture-form.ts";
import type { ChoicesContext } from "../choices-answer.ts";

/**
 * A chat `finish_reason`. OpenAI says `stop` for a call that was forced by name (9 of 9 recordings), and profile `openai` does as
 * it does; a capture keeps its `stop` there.
 */
export function finishReason(
  reason: FinishReason,
  { profile, asked, capture }: ChoicesContext,
  form: ChoiceForm | undefined,
): "stop" | "length" | "tool_calls" | "content_filter" | "function_call" {
  switch (reason) {
    case "tool-calls":
    case "function-call":
      if (profile.name === "exact" && (capture ? form?.stopWithCalls : asked.namedToolChoice)) return "stop";
      return writesFunctionCall(reason, asked.legacyFunctions, form) ? "function_call" : "tool_calls";
    case "content-filter":
      return "content_filter";
    case "stop":
    case "length":
      return reason;
  }
}

function writesFunctionCall(reason: FinishReason, legacy: boolean, form: ChoiceForm | undefined): boolean {
  return reason === "function-call" || legacy || form?.functionCall === true;
}
