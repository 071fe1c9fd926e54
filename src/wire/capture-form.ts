/**
 * What a recorded answer looks like beyond its events: the freedoms that OpenAI itself used over the years and by model class.
 * `repair` keeps them (wire.md section 1), so that an answer which was exact comes out as it went in. A live answer has no form; its
 * profile decides.
 *
 * A reader fills the form in while it reads, and the writer, which holds the same object (`AnswerContext.capture`), looks each
 * member up when it needs it: the members of the form itself and a choice's entry before that choice's `start` event reaches the
 * writer, `stopWithCalls` and `finishOnText` before its `finish`, `finishTwice` before `end`. For a whole body, all before
 * `writeResponse`.
 *
 * With a form, the identity that events carry (`SourceIdentity`: id, created, model, fingerprint, tier) is written as it is, and
 * every `extra` event is passed on.
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
  /** By choice number. A choice without an entry is written as the profile writes a live one. */
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
  /** Streams: the first delta also has the header of the first tool call (path A). */
  callInFirstDelta?: boolean;
  /** Streams: the first delta's `logprobs` is `{"content":[],"refusal":null}` or its counterpart for refusals, not null. */
  emptyLogprobs?: boolean;
  /** Bodies: the message has `annotations`. */
  annotations?: boolean;
  /** The choice has calls and a legal `finish_reason: "stop"`; its `finish` event says "tool-calls". */
  stopWithCalls?: boolean;
  /** Calls are in the legacy form, `function_call`. */
  functionCall?: boolean;
  /**
   * Completions streams: the finish reason stood on the last text chunk; else in a chunk of its own with `text: ""`. The text and
   * the finish are two events.
   */
  finishOnText?: boolean;
  /** Completions streams: it stood in both (2 of 22 recordings that end in `length`). One `finish` event tells it. */
  finishTwice?: boolean;
}

/** 2025-08-05T00:00:00Z: no OpenAI chat stream before has `obfuscation`, every one since does. Unix seconds. */
export const obfuscationSince = 1_754_352_000;
