import type { ReasoningPart } from "./message.ts";
import type { CallState } from "./turn-state.ts";

/** A turn of the model with what its source demands back, for clients that do not return it. */
export interface KeptTurn {
  /** In the order of the answer. Texts and calls only show where the reasoning belongs: clients return them. */
  readonly parts: readonly KeptPart[];
}

export type KeptPart =
  | ReasoningPart
  | { readonly type: "text" }
  | { readonly type: "tool-call"; readonly id: string; readonly state?: CallState };

/** Keeps turns for a time, within bounds. No owner finds the turns of another one. `owner`: absent if clients have no keys. */
export interface TurnMemory {
  /** Whether a turn of the owner may be kept. Answers at once, so that sessions that need no state cost nothing. */
  mayHave(owner: string | undefined): boolean;
  /** Keeps a turn under each of its keys. Does not throw: a turn that cannot be kept is lost, and the log says so. */
  keep(owner: string | undefined, keys: readonly string[], turn: KeptTurn): void;
  /** Returns the turn under the first of the keys that has one. Does not reject. A promise: the turn is elsewhere. */
  find(owner: string | undefined, keys: readonly string[]): KeptTurn | undefined | Promise<KeptTurn | undefined>;
}
