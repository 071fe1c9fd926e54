import type { StartEvent, FinishReason } from "../../core/events.ts";
import { rustFloatText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../profile.ts";
import { openaiUsageZeros } from "../usage.ts";
import type { UsageZeros } from "../usage.ts";
import type { RequestedAnswer, ChoicesContext } from "../choices-answer.ts";
import type { ShownDetails } from "./shown-details.ts";

/** What a choice begins with, which its first delta may show. */
export type Opening = "text" | "refusal" | "call" | "calls";

/** The form of an answer that does not depend on its content or on the request. Writers use it instead of the profile. */
export interface ChatForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** Spaces per level of a JSON body (0: on one line), and the text after its last brace. */
  readonly body: { readonly indent: 0 | 2; readonly end: "" | "\n" };
  /** The value of `service_tier` if neither source nor settings have one; `undefined`: the answer has no such member. */
  readonly serviceTier: string | null | undefined;
  /** Whether choices have a `logprobs` member; "by-model": if it is requested, or if OpenAI's models of that class always have it. */
  readonly logprobsKey: boolean | "by-model";
  /** Prints a finite log probability. */
  readonly number: (value: number) => string;
  /** Chunks are obfuscated unless the request says otherwise. */
  readonly obfuscates: boolean;
  /** The chunks of several announced calls have `usage` before `choices`. */
  readonly usageBeforeCalls: boolean;
  /** Details of the usage with the value 0 if the source has not counted them. */
  readonly usageZeros: UsageZeros | undefined;
  /** Members that a source adds after its usage are sent after the usage. */
  readonly extrasAfterUsage: boolean;
  /** Answers contain reasoning unless the request says otherwise. */
  readonly showsReasoning: boolean;
  readonly choice: ChatChoiceForm;
}

export interface ChatChoiceForm {
  /** Streams: the members after the role in the first delta, by what the choice begins with. */
  readonly first: Readonly<Record<Opening, FirstMembers>>;
  /** Streams: after these announcements, the first delta waits until it is known what the choice begins with. */
  readonly waitsAfter: readonly StartEvent["announced"][];
  /** Streams: the first delta has the header of the first call, unless several calls were announced. */
  readonly callInFirstDelta: boolean;
  /** Streams: if log probabilities are requested, the first delta has an empty list of them. */
  readonly emptyLogprobs: boolean;
  /** The finish reason of a call that the request forces by name is `stop`. */
  readonly namedCallStops: boolean;
  /** Bodies: the value of `refusal` without a refusal; `undefined`: the member is absent. */
  readonly refusal: "" | null | undefined;
  /** Bodies: messages have `annotations`, by default an empty list. */
  readonly annotations: boolean;
}

/** Members of the first delta; `undefined`: absent. */
export interface FirstMembers {
  readonly content?: "" | null | undefined;
  readonly refusal?: "" | null | undefined;
}

const leanChoice: ChatChoiceForm = {
  first: { text: {}, refusal: {}, call: {}, calls: {} },
  waitsAfter: [],
  callInFirstDelta: false,
  emptyLogprobs: false,
  namedCallStops: false,
  refusal: undefined,
  annotations: false,
};

/** Source: recordings of 2024-09 to 2026-08 without a counterexample: 271 streams of text, 83 of one call, 23 of several, 2 refusals. */
const exactChoice: ChatChoiceForm = {
  first: {
    text: { content: "", refusal: null },
    refusal: { content: null, refusal: "" },
    call: { content: null, refusal: null },
    calls: { content: null },
  },
  waitsAfter: [undefined, "tool-call"],
  callInFirstDelta: true,
  emptyLogprobs: true,
  namedCallStops: true,
  refusal: null,
  annotations: true,
};

export const chatForms: Readonly<Record<Profile["name"], ChatForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    body: { indent: 0, end: "" },
    serviceTier: undefined,
    logprobsKey: true,
    number: JSON.stringify,
    obfuscates: false,
    usageBeforeCalls: false,
    usageZeros: undefined,
    extrasAfterUsage: false,
    showsReasoning: true,
    choice: leanChoice,
  },
  // Recordings of 2025 and 2026.
  exact: {
    streamHeaders: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
    body: { indent: 2, end: "\n" },
    serviceTier: "default",
    logprobsKey: "by-model",
    number: rustFloatText,
    obfuscates: true,
    usageBeforeCalls: true,
    usageZeros: openaiUsageZeros,
    extrasAfterUsage: true,
    // OpenAI has no member for reasoning.
    showsReasoning: false,
    choice: exactChoice,
  },
};

/** Returns the `finish_reason` of a chat choice. OpenAI writes `stop` for a call that is forced by name (9 of 9 recordings). */
export function finishReason(
  reason: FinishReason,
  asked: RequestedAnswer,
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

/** Returns the names of the members that contain reasoning in this answer; empty if it has none. */
export function reasoningFields(
  { showsReasoning }: ChatForm,
  { requested: asked, settings }: ChoicesContext,
): readonly string[] {
  if (asked.includeReasoning === false) return [];
  const isWanted = showsReasoning || asked.includeReasoning === true;
  return settings.reasoningFields ?? (isWanted ? ["reasoning_content"] : []);
}

/** Returns which states of reasoning an answer has in `reasoning_details`: OpenAI has no such member. */
export function shownDetails(
  { showsReasoning }: ChatForm,
  { requested: { includeReasoning = showsReasoning }, settings: { passExtra = false } }: ChoicesContext,
): ShownDetails {
  if (includeReasoning) return "all";
  const isPassed = passExtra === true || (passExtra !== false && passExtra.includes("reasoning_details"));
  return isPassed ? "raw" : "none";
}

/**
 * Models whose choices have no `logprobs` member in OpenAI's answers: reasoning, audio and search models. Those of gpt-3.5, 4, 4o and 4.1
 * always have it. Source: recordings of 2024 to 2026 without a counterexample; for gpt-6 and later a prediction.
 */
const withoutKey = /^(?:o\d(?:-|$)|gpt-[5-9]|gpt-daybreak|gpt-audio)|-search-preview/;

/** Returns whether OpenAI's answers of the model with this id have the member `logprobs`. */
export function hasLogprobsKey(model: string): boolean {
  return !withoutKey.test(model);
}

/** Returns whether the choices of an answer have a `logprobs` member. */
export function showsLogprobsKey(
  { logprobsKey }: ChatForm,
  { requested: asked, settings, model }: ChoicesContext,
): boolean {
  if (logprobsKey !== "by-model") return logprobsKey;
  return asked.logprobs || (settings.logprobsKey ?? hasLogprobsKey(model));
}
