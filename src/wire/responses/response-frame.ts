import type { SourceIdentity, TokenLogprob, Usage } from "../../generation/event.ts";
import type { JsonValue } from "../json-text.ts";
import type { NumberForm } from "./number-form.ts";
import type { SealedThought } from "./sealed-thought.ts";

/**
 * What is around the events of one response: live, it comes from the request and the profile; a capture that is written anew brings
 * its own. The writers know no other difference between the two.
 */
export interface ResponseFrame {
  readonly number: NumberForm;
  /** Makes the characters that hide a delta's length, uniform in [0, 1); undefined: deltas carry none. */
  readonly obfuscate: (() => number) | undefined;
  /** Deltas without text are written. */
  readonly keepsEmptyDeltas: boolean;
  /** Thoughts are shown as summaries. */
  readonly summarizes: boolean;
  /** Deltas and parts show log probabilities, where they come. */
  readonly showsLogprobs: boolean;
  /** The events that a stream opens with. */
  readonly opening: readonly OpeningState[];
  /** The event that keeps a connection alive. */
  readonly keepAlive: "keepalive" | "response.in_progress";
  /** What follows the last event. */
  readonly endMark: string;
  /** Events of a failure are followed by a response that failed. */
  readonly tellsFailedResponse: boolean;
  /** Called once, before anything is written. */
  identify(source: SourceIdentity | undefined): void;
  response(state: ResponseState): JsonValue;
  /** `own`: the id that the source gave. */
  itemId(prefix: "msg_" | "rs_" | "fc_" | "ctc_", own: string | undefined): string;
  /** The name of a call, and its group's apart. */
  callName(name: string, namespace: string | undefined): { readonly name: string; readonly namespace?: string };
  /** `encrypted_content` of a thought; undefined: no such member. */
  encryptedContent(id: string, thought: SealedThought | null, place: ThoughtPlace): string | null | undefined;
  /** Whether thoughts have a list of their own contents beside their summary. */
  hasThoughtContent(id: string): boolean;
}

export type OpeningState = "created" | "queued" | "in_progress";

/** Where a thought is shown: as its item begins, as it ends, in the whole response. */
export type ThoughtPlace = "added" | "done" | "output";

export interface ResponseState {
  readonly event: OpeningState | "completed" | "incomplete" | "failed";
  readonly output: readonly JsonValue[];
  readonly incompleteReason?: "max_output_tokens" | "content_filter";
  readonly failure?: { readonly code: string; readonly message: string };
  readonly usage?: Usage | undefined;
}

/** A content part of a message. */
export type MessagePart =
  | {
      readonly type: "text";
      readonly text: string;
      readonly annotations: readonly JsonValue[];
      readonly logprobs: readonly TokenLogprob[];
    }
  | { readonly type: "refusal"; readonly refusal: string };
