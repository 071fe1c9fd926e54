/**
 * An opaque value that a source gives with an answer and demands back with the next request. Events and messages carry it where it belongs:
 * at the end of reasoning, or with a call. Only its maker can read it.
 */
export type TurnState = TextState | DetailsState | CallState;

/** The state of reasoning. */
export type ReasoningState = TextState | DetailsState;

/** Where a state comes from. */
export interface StateOrigin {
  /**
   * Who made the value: the target (its URL and key) and the family of the model (`stateSource`). Absent: not known, since a client has sent
   * the value in the form of its own API.
   */
  readonly source?: string;
}

/**
 * `signature`: proves the text of the reasoning. Source: Messages, `thinking.signature`.
 * `redacted`: reasoning that has no text. Source: Messages, `redacted_thinking.data`.
 * `encrypted`: the reasoning itself, encrypted. Source: Responses, `encrypted_content`.
 * `part`: the signature of a part. Source: Gemini, `thoughtSignature` of a text or a thought.
 * `stored`: the id of reasoning that its server has stored, and takes by this id. Source: Responses, items without `encrypted_content`.
 */
export interface TextState extends StateOrigin {
  readonly kind: "signature" | "redacted" | "encrypted" | "part" | "stored";
  readonly value: string;
}

/** Entries that chat servers send with a message. Source: OpenRouter, `reasoning_details`. */
export interface DetailsState extends StateOrigin {
  readonly kind: "details";
  readonly value: readonly Readonly<Record<string, unknown>>[];
}

/** Members of a call. Source: Gemini's chat API, `extra_content`. */
export interface CallState extends StateOrigin {
  readonly kind: "call";
  readonly value: Readonly<Record<string, unknown>>;
}

/**
 * The family of a model, by its name: `gemini` for `google/gemini-3-pro`. Models of one family read each other's state.
 */
export function modelFamily(model: string): string {
  return /([a-z]+)[^/]*$/i.exec(model)?.[1]?.toLowerCase() ?? "";
}
