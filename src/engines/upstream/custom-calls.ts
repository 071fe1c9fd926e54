import { CustomInput } from "../../formats/reading/custom-input.ts";
import type { GenerationEvent } from "../../core/events.ts";

/**
 * Gives calls of custom tools their form back, where a server was offered functions in their place (or answers with functions anyway): the
 * argument `input` becomes the text of the call, as it arrives. Arguments of another form are the text as they are, so that nothing is lost.
 */
export class CustomCalls {
  readonly #names: ReadonlySet<string>;
  /** By choice and index: the calls whose arguments are being read. */
  readonly #open = new Map<string, CustomInput>();

  /** `names`: of the request's custom tools. */
  constructor(names: ReadonlySet<string>) {
    this.#names = names;
  }

  /** The events that replace these. */
  readonly transform = (events: GenerationEvent[]): GenerationEvent[] =>
    events.flatMap((event) => this.#changed(event));

  #changed(event: GenerationEvent): readonly GenerationEvent[] {
    switch (event.type) {
      case "tool-call-start": {
        if (event.kind === "custom" || !this.#names.has(event.name)) return [event];
        this.#open.set(keyOf(event), new CustomInput());
        return [{ ...event, kind: "custom" }];
      }
      case "tool-call-delta": {
        const input = this.#open.get(keyOf(event));
        return input ? withText(event, input.push(event.arguments)) : [event];
      }
      case "tool-call-end": {
        const input = this.#open.get(keyOf(event));
        if (!input) return [event];
        this.#open.delete(keyOf(event));
        const { choice, index } = event;
        const rest = withText({ type: "tool-call-delta", choice, index, arguments: "" }, input.end());
        return [...rest, { type: "tool-call-end", choice, index, status: "succeeded" }];
      }
      default:
        return [event];
    }
  }
}

function keyOf({ choice, index }: { readonly choice: number; readonly index: number }): string {
  return `${choice}:${index}`;
}

function withText(
  event: Extract<GenerationEvent, { type: "tool-call-delta" }>,
  text: string,
): readonly GenerationEvent[] {
  return text === "" ? [] : [{ ...event, arguments: text }];
}
