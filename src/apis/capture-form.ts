/**
 * What a recorded answer of OpenAI's looks like beyond its events: the freedoms that OpenAI itself used over the years and by model
 * class. `repair` keeps them, so that an answer which was exact comes out as it went in.
 *
 * A reader fills it in while it reads; it is complete when the whole capture was read.
 */
export interface CaptureForm {
  /** Chunks, or the body, have a `service_tier` member. */
  serviceTier: boolean;
  /** … a `system_fingerprint` member (chat only; since 2023-11). */
  systemFingerprint: boolean;
  /** The choices have a `logprobs` member (chat only; not those of reasoning models). */
  logprobs: boolean;
  /**
   * Chunks have `"usage":null`, which says that the client had asked for usage (since 2024-10). The last chunk's usage comes from the
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
   * Streams: `content` beside the role in the first delta, `""` or null; undefined where it is not there. Text that stood in the
   * first delta is a `text-delta` event, and `""` here. Bodies: not used.
   */
  content?: "" | null;
  /** Streams: `refusal` beside the role. Bodies: null or "" where the message has the member, undefined where not. */
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
