import type { GenerationEvent } from "../../core/events.ts";
import { readChatContent } from "../chat/read.ts";
import { ChoicesReader } from "../tolerant/choices-reader.ts";
import type { ChoiceState } from "../tolerant/answer-choices.ts";
import type { Hole } from "../tolerant/known-chunks.ts";
import { readLogprobs } from "../tolerant/read-logprobs.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** Reads a legacy completion of any server that is compatible with OpenAI's API into generation events. See `ChoicesReader`. */
export class CompletionsStreamReader extends ChoicesReader<ChoiceState> {
  protected readonly chunkObject: string = "text_completion";
  protected readonly bodyObject: string = "text_completion";

  protected newChoice(choice: number): ChoiceState {
    return { choice, started: false, finish: null, stop: undefined, finished: false };
  }

  protected readChoice(raw: JsonObject, state: ChoiceState, out: GenerationEvent[]): boolean {
    const { choice } = state;
    const text = this.#textOf(raw);
    const logprobs = readLogprobs(raw["logprobs"], text, this.repairs)?.text ?? [];
    if (text === "" && logprobs.length === 0) {
      if (raw["finish_reason"] === null) this.repairs.note("empty-delta");
      return false;
    }
    this.start(state, out);
    out.push({ type: "text-delta", choice, text, ...(logprobs.length > 0 && { logprobs }) });
    return true;
  }

  protected closeChoice(): void {}

  protected callCount(): number {
    return 0;
  }

  protected holePath(raw: JsonObject, event: GenerationEvent): Hole | null {
    if (event.type !== "text-delta" || raw["logprobs"] || raw["text"] !== event.text) return null;
    return { path: ["text"], kind: "text" };
  }

  /** Returns `text`, or the content of a delta or message, which servers send that support only chat. */
  #textOf(raw: JsonObject): string {
    if (typeof raw["text"] === "string") return raw["text"];
    const delta = [raw["delta"], raw["message"]].find(isObject) ?? { content: raw["text"] };
    if (raw["delta"] !== undefined || raw["message"] !== undefined) this.repairs.note("content");
    return readChatContent(delta, this.repairs).text;
  }
}
