import type { StartEvent } from "../../core/events.ts";
import { floatText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../stream-headers.ts";
import type { UsageZeros } from "../usage.ts";

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
    usageZeros: {
      prompt: { cached_tokens: 0, audio_tokens: 0 },
      completion: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    extrasAfterUsage: true,
    // OpenAI has no member for it.
    showsReasoning: false,
    choice: () => exactChoice,
  },
};
