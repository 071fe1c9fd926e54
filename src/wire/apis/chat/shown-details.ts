import type { ReasoningState } from "../../core/turn-state.ts";
import type { AnswerContext } from "../port.ts";
import { openSeal } from "../turn-seal.ts";
import type { Details } from "./reasoning-details.ts";

/** The format of entries that this server seals: states that chat has no other member for. */
const sealedFormat = "truewire-v1";

/** Reasoning with its state, as a chat client gets it. */
export interface StatefulReasoning {
  readonly text: string;
  readonly id?: string | undefined;
  readonly state: ReasoningState;
}

/** Which states of reasoning a chat client gets in `reasoning_details`: all, those of chat servers, or none. */
export type ShownDetails = "all" | "raw" | "none";

/**
 * Returns the entries that give a state of reasoning to a chat client. `index`: of the first entry, if this server makes it. The text of
 * signed reasoning is part of the state: clients join the texts of a message.
 */
export function detailsFor(
  { text, id, state }: StatefulReasoning,
  index: number,
  shown: ShownDetails,
  { turnSeal = openSeal }: Pick<AnswerContext, "turnSeal">,
): Details {
  if (shown === "none") return [];
  if (state.kind === "details") return state.value;
  if (shown === "raw") return [];
  const isSigned = state.kind === "signature" && text !== "";
  const data = turnSeal.seal({ ...(isSigned && { text }), ...(id !== undefined && { id }), state });
  return [{ type: "reasoning.encrypted", data, format: sealedFormat, index }];
}
