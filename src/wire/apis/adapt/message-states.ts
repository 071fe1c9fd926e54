import { assistantParts, type Message, type ReasoningPart } from "../../core/message.ts";
import type { SealedValues } from "../../core/request.ts";

/** Reasoning that has a state, and the number of texts before it since the last call. */
interface PlacedReasoning {
  readonly part: ReasoningPart;
  readonly texts: number;
}

/** The states in the messages of a request, to be written into the client's own JSON of the same API. */
export class MessageStates {
  /** The states that the server gets. */
  readonly #values = new Set<unknown>();
  /**
   * By the id of the call that follows it: the reasoning that has a state. A list for each call with the id, in order: some servers give the
   * same ids in every answer.
   */
  readonly #before = new Map<unknown, { readonly ofCalls: (readonly PlacedReasoning[])[]; next: number }>();
  /** The states that the client's JSON has. */
  readonly #sent = new Set<unknown>();

  constructor(messages: readonly Message[]) {
    for (const message of messages) {
      if (message.role !== "assistant") continue;
      let reasoning: PlacedReasoning[] = [];
      let texts = 0;
      for (const part of assistantParts(message)) {
        if (part.type === "reasoning" && part.state) {
          this.#values.add(part.state.value);
          reasoning.push({ part, texts });
        } else if (part.type === "text" && part.text !== "") texts++;
        else if (part.type === "tool-call") {
          const known = this.#before.get(part.id);
          if (known) known.ofCalls.push(reasoning);
          else this.#before.set(part.id, { ofCalls: [reasoning], next: 0 });
          reasoning = [];
          texts = 0;
        }
      }
    }
  }

  /**
   * Returns the value to send in place of one that the client has sent; undefined: the server does not get it. `sealed`: what the sealed values
   * contain (see `Passthrough`).
   */
  kept(sent: unknown, sealed: SealedValues | undefined): string | undefined {
    const opened = typeof sent === "string" ? sealed?.get(sent) : undefined;
    const value: unknown = opened ? opened.state?.value : sent;
    if (typeof value !== "string" || !this.#values.has(value)) return undefined;
    this.#sent.add(value);
    return value;
  }

  /**
   * Returns the reasoning before a call that the client's JSON has not had up to this call, with the place of each. To be called once for each
   * call, in order.
   */
  missingBefore(callId: unknown): readonly PlacedReasoning[] {
    const known = this.#before.get(callId);
    const reasoning = known?.ofCalls[known.next++] ?? [];
    return reasoning.filter(({ part }) => !this.#sent.has(part.state?.value));
  }
}
