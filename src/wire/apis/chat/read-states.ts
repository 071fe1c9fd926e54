import type { JsonObject } from "../../core/json.ts";
import type { ReasoningPart } from "../../core/message.ts";
import { BodyCounter } from "../body-counter.ts";
import type { SealedReasoning, TurnSeal } from "../turn-seal.ts";
import { type Details, detailsText, thinkingBlocks } from "./reasoning-details.ts";
import type { ChatAssistantMessage } from "./request-schema.ts";

/** Reads the reasoning of a chat request's messages, and its states. */
export class StateReader {
  /** What the values contain that this server has sealed (see `Passthrough`). */
  readonly sealed: Map<string, SealedReasoning> = new Map();
  readonly #seal: TurnSeal;
  /** Limits the JSON of sealed values. */
  readonly #counter = new BodyCounter();

  constructor(seal: TurnSeal) {
    this.#seal = seal;
  }

  /** Returns the reasoning of a message of the assistant. A text that a state has is not repeated. */
  reasoningOf(message: ChatAssistantMessage): readonly ReasoningPart[] {
    const reasoning = message.reasoning_content ?? message.reasoning;
    const { parts, details } = this.#detailsOf(message.reasoning_details ?? []);
    for (const { text, state } of thinkingBlocks(message)) if (state) parts.push({ type: "reasoning", text, state });
    const isText = parts.some(({ text }) => text !== "");
    if (details.length > 0) {
      const text = isText ? "" : (reasoning ?? detailsText(details));
      parts.unshift({ type: "reasoning", text, state: { kind: "details", value: details } });
    } else if (typeof reasoning === "string" && !isText && (reasoning !== "" || parts.length === 0)) {
      // Encrypted reasoning belongs to the summary that the client was shown.
      const at = parts.findIndex(({ state }) => state?.kind === "encrypted");
      const part = parts[at];
      if (part) parts[at] = { ...part, text: reasoning };
      else parts.unshift({ type: "reasoning", text: reasoning });
    }
    return parts;
  }

  /** Returns the entries of other servers, and the reasoning in those of this server. */
  #detailsOf(list: Details): { readonly parts: ReasoningPart[]; readonly details: Details } {
    const parts: ReasoningPart[] = [];
    const details: JsonObject[] = [];
    for (const entry of list) {
      const { data } = entry;
      const opened = typeof data === "string" ? this.#seal.open(data, this.#counter) : undefined;
      if (typeof data !== "string" || !opened) {
        details.push(entry);
        continue;
      }
      this.sealed.set(data, opened);
      const { text = "", id, state } = opened;
      if (state && state.kind !== "call")
        parts.push({ type: "reasoning", text, ...(id !== undefined && { id }), state });
    }
    return { parts, details };
  }
}
