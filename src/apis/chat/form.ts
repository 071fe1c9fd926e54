import type { StartEvent, FinishReason } from "../../core/events.ts";
import { floatText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../stream-headers.ts";
import { openaiUsageZeros } from "../usage.ts";
import type { UsageZeros } from "../usage.ts";
import type { AskedAnswer, ChoicesContext } from "../choices-answer.ts";

/** What a choice begins with, as far as its first delta shows it. */
export type Opening = "text" | "refusal" | "call" | "calls";

/** What an answer of this API looks like, apart from what it says and what the client asked for. Writers read it and know no profile. */
export interface ChatForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** Spaces per level of a JSON body (0: on one line), and what follows its last brace. */
  readonly body: { readonly indent: 0 | 2; readonly end: "" | "\n" };
  /** What `service_tier` says where neither source nor settings tell; undefined: there is no such member. */
  readonly serviceTier: string | null | undefined;
  readonly systemFingerprint: boolean;
  /** Whether choices have a `logprobs` member; "by-model": where it was asked for, and else as OpenAI's models of that class. */
  readonly logprobsKey: boolean | "by-model";
  /** How the number of a logprob is printed. It is finite. */
  readonly number: (value: number) => string;
  /** Chunks are obfuscated unless the client asked otherwise. */
  readonly obfuscates: boolean;
  /** Chunks before the last have `"usage":null` where usage was asked for. */
  readonly nullUsage: boolean;
  /** The chunks of an announced row of calls have `usage` before `choices`. */
  readonly usageBeforeCalls: boolean;
  /** Details of the usage that are shown though nobody counted them. */
  readonly usageZeros: UsageZeros | undefined;
  /** What a source adds after its usage stands behind the usage. */
  readonly extrasAfterUsage: boolean;
  /** Reasoning is shown where the client says nothing about it. */
  readonly showsReasoning: boolean;
  /** The form of one choice, by its number. */
  choice(index: number): ChatChoiceForm;
}

export interface ChatChoiceForm {
  /** Streams: what stands beside the role in the first delta, by what the choice begins with. */
  readonly first: Readonly<Record<Opening, FirstMembers>>;
  /** Streams: after these announcements the first delta waits for what the choice begins with, in order to show it. */
  readonly waitsAfter: readonly StartEvent["announced"][];
  /** Streams: the first delta has the header of the first call, unless several calls were announced. */
  readonly callInFirstDelta: boolean;
  /** Streams: the first delta has logprobs without tokens where logprobs were asked for. */
  readonly emptyLogprobs: boolean;
  /** A call that was forced by name ends in `stop`. */
  readonly namedCallStops: boolean;
  /** Bodies: `refusal` where there is none; undefined: the member is left out. */
  readonly refusal: "" | null | undefined;
  /** Bodies: there are `annotations`, an empty list where the source has none. */
  readonly annotations: boolean;
}

/** Members of the first delta; undefined: left out. */
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

/** As recorded from 2024-09 to 2026-08: 271 streams of text, 83 of one call, 23 of several, 2 refusals; no counterexample. */
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
    systemFingerprint: true,
    logprobsKey: true,
    number: JSON.stringify,
    obfuscates: false,
    nullUsage: true,
    usageBeforeCalls: false,
    usageZeros: undefined,
    extrasAfterUsage: false,
    showsReasoning: true,
    choice: () => leanChoice,
  },
  // Recordings of 2025 and 2026.
  exact: {
    streamHeaders: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
    body: { indent: 2, end: "\n" },
    serviceTier: "default",
    systemFingerprint: true,
    logprobsKey: "by-model",
    number: floatText,
    obfuscates: true,
    nullUsage: true,
    usageBeforeCalls: true,
    usageZeros: openaiUsageZeros,
    extrasAfterUsage: true,
    // OpenAI has no member for it.
    showsReasoning: false,
    choice: () => exactChoice,
  },
};

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

/** The members that show reasoning in this answer; none where it is left out. */
export function reasoningFields({ showsReasoning }: ChatForm, { asked, settings }: ChoicesContext): readonly string[] {
  if (asked.includeReasoning === false) return [];
  const isWanted = showsReasoning || asked.includeReasoning === true;
  return settings.reasoningFields ?? (isWanted ? ["reasoning_content"] : []);
}

/**
 * Models whose choices have no `logprobs` key in OpenAI's own answers: reasoning models, audio and search models (recordings of 2024
 * to 2026 without a counterexample; those of gpt-3.5, 4, 4o and 4.1 always have it).
 */
const withoutKey = /^(?:o\d(?:-|$)|gpt-5|gpt-audio)|-search-preview/;

/** Whether OpenAI's answers of a model have the key; by the model's id. */
export function hasLogprobsKey(model: string): boolean {
  return !withoutKey.test(model);
}

/** Whether the choices of an answer have a `logprobs` member. */
export function showsLogprobsKey({ logprobsKey }: ChatForm, { asked, settings, model }: ChoicesContext): boolean {
  if (logprobsKey !== "by-model") return logprobsKey;
  return asked.logprobs || (settings.logprobsKey ?? hasLogprobsKey(model));
}
