import type { GenerationEnd } from "../core/events.ts";
import type { Profile } from "./profile.ts";
import type { Repair } from "./tolerant/repairs.ts";

/**
 * The form of a recorded answer of OpenAI: variations over the years and by model class. `repair` preserves them, so that an exact answer
 * stays unchanged.
 *
 * A reader sets the members while it reads. They are complete when the whole capture was read.
 */
export interface CaptureForm {
  /** Chunks, or the body, have a `service_tier` member. */
  serviceTier: boolean;
  /** … a `system_fingerprint` member (chat only; since 2023-11). */
  systemFingerprint: boolean;
  /** The choices have a `logprobs` member (chat only; not those of reasoning models). */
  logprobs: boolean;
  /**
   * Chunks have `"usage":null`: the client requested usage (since 2024-10). The last chunk's usage comes from the
   * `usage` event alone: a capture that has one keeps it.
   */
  usage: boolean;
  /**
   * Chunks get an `obfuscation` member (chat only). Where the capture may have lost it: OpenAI sends it since 2025-08-05, so
   * `created >= obfuscationSince`, unless the capture shows otherwise.
   */
  obfuscation: boolean;
  /** By choice number (chat only). A choice without an entry is written as the profile writes a live one. */
  readonly choices: Map<number, ChoiceForm>;
}

export interface ChoiceForm {
  /**
   * Streams: `content` in the first delta, with the role: `""` or null; undefined if absent. Text in the first delta is a `text-delta` event,
   * and `""` here. Bodies: not used.
   */
  content?: "" | null;
  /** Streams: `refusal` in the first delta, with the role. Bodies: the message's `refusal`, null or ""; undefined if absent. */
  refusal?: "" | null;
  /** Streams: the first delta also has the header of the first tool call. */
  callInFirstDelta?: boolean;
  /** Streams: the first delta's `logprobs` is `{"content":[],"refusal":null}` or its counterpart for refusals, not null. */
  emptyLogprobs?: boolean;
  /** Bodies: the message has `annotations`. */
  annotations?: boolean;
  /** The choice has calls and a legal `finish_reason: "stop"`; its `finish` event says "tool-calls". */
  stopWithCalls?: boolean;
}

/** 2025-08-05T00:00:00Z: no OpenAI chat stream before has `obfuscation`, every one since does. Unix seconds. */
export const obfuscationSince = 1_754_352_000;

/** An API whose captures can be repaired. */
export type CapturedApi = "chat" | "completions" | "responses" | "messages";

export interface RepairOptions {
  readonly profile: Profile;
  /** The API of the answer; "auto": detected from its content. */
  readonly from: CapturedApi | "auto";
  /** Uniform in [0, 1): for obfuscation and missing ids. */
  readonly random: () => number;
  /** Unix time in seconds, for answers without a time. */
  readonly now: number;
  /** The body of the request, if known: answers that repeat parts of it keep their order. */
  readonly request?: unknown;
}

export interface RepairedCapture {
  /** The exact answer: an event stream, or a JSON body if the capture was one. */
  readonly body: string;
  readonly repairs: readonly Repair[];
  readonly end: GenerationEnd;
}
