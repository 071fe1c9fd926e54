import type { Usage, FinishReason } from "../../core/events.ts";
import { rustFloatText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../profile.ts";
import { bareUsage, chatUsage } from "../usage.ts";
import type { UsageMembers } from "../usage.ts";
import type { RequestedAnswer } from "../choices-answer.ts";

/** The form of an answer that does not depend on its content or on the request. Writers use it instead of the profile. */
export interface CompletionForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** Spaces per level of a JSON body (0: on one line), and the text after its last brace. */
  readonly body: { readonly indent: 0 | 2; readonly end: "" | "\n" };
  readonly systemFingerprint: boolean;
  /** Streams: `model` is after `choices`. In the last chunk, which has no choices, model and usage are before them. */
  readonly modelAfterChoices: boolean;
  /** Streams: the finish reason `length` is in the chunk of the last text, if both are known together. */
  readonly lengthOnText: boolean;
  /** Prints a finite log probability. */
  readonly number: (value: number) => string;
  readonly usage: (usage: Usage) => UsageMembers;
}

export const completionForms: Readonly<Record<Profile["name"], CompletionForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    body: { indent: 0, end: "" },
    systemFingerprint: true,
    modelAfterChoices: false,
    lengthOnText: false,
    number: JSON.stringify,
    usage: (usage) => chatUsage(usage),
  },
  // Recordings of 2025 and 2026.
  exact: {
    streamHeaders: {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, must-revalidate",
      "x-accel-buffering": "no",
    },
    body: { indent: 2, end: "\n" },
    systemFingerprint: false,
    modelAfterChoices: true,
    lengthOnText: true,
    number: rustFloatText,
    usage: bareUsage,
  },
};

/** Returns the `finish_reason` of a completion, which has no value for calls (specification). */
export function completionFinishReason(reason: FinishReason): "stop" | "length" | "content_filter" {
  if (reason === "length") return "length";
  return reason === "content-filter" ? "content_filter" : "stop";
}

/** Returns the offset at which the text of a choice begins. Choices are numbered prompt by prompt. */
export function textOffset(choice: number, { textOffsets }: RequestedAnswer): number {
  if (!textOffsets) return 0;
  return textOffsets.byPrompt[Math.floor(choice / textOffsets.choicesPerPrompt)] ?? 0;
}
