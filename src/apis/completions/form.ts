import type { Usage, FinishReason } from "../../core/events.ts";
import { floatText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../stream-headers.ts";
import { bareUsage, chatUsage } from "../usage.ts";
import type { UsageMembers } from "../usage.ts";
import type { AskedAnswer } from "../choices-answer.ts";

/** What an answer of this API looks like, apart from what it says and what the client asked for. Writers read it and know no profile. */
export interface CompletionForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** Spaces per level of a JSON body (0: on one line), and what follows its last brace. */
  readonly body: { readonly indent: 0 | 2; readonly end: "" | "\n" };
  readonly systemFingerprint: boolean;
  /** Streams: the model stands behind the choices; in the last chunk, which has none, model and usage stand before them. */
  readonly modelBehindChoices: boolean;
  /** Streams: `length` stands in the chunk of the last text, where both are known together. */
  readonly lengthOnText: boolean;
  /** Chunks before the last have `"usage":null` where usage was asked for. */
  readonly nullUsage: boolean;
  /** How the number of a logprob is printed. It is finite. */
  readonly number: (value: number) => string;
  readonly usage: (usage: Usage) => UsageMembers;
}

export const completionForms: Readonly<Record<Profile["name"], CompletionForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    body: { indent: 0, end: "" },
    systemFingerprint: true,
    modelBehindChoices: false,
    lengthOnText: false,
    nullUsage: true,
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
    modelBehindChoices: true,
    lengthOnText: true,
    nullUsage: true,
    number: floatText,
    usage: bareUsage,
  },
};

/** A legacy `finish_reason`, which knows no calls (specification). */
export function completionFinishReason(reason: FinishReason): "stop" | "length" | "content_filter" {
  if (reason === "length") return "length";
  return reason === "content-filter" ? "content_filter" : "stop";
}

/** Where a choice's text begins: choices are numbered prompt by prompt. */
export function textOffset(choice: number, { textOffsets }: AskedAnswer): number {
  if (!textOffsets) return 0;
  return textOffsets.byPrompt[Math.floor(choice / textOffsets.choicesPerPrompt)] ?? 0;
}
