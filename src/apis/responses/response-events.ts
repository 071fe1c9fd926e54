import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { ResponseFrame, ResponseState } from "./response-frame.ts";

type Members = { readonly [name: string]: JsonValue | undefined };

/** The events of one response: their numbers, and the items that are complete. */
export class ResponseEvents {
  readonly frame: ResponseFrame;
  /** As the whole response shows them. */
  readonly output: JsonValue[] = [];
  #number = 0;

  constructor(frame: ResponseFrame) {
    this.frame = frame;
  }

  /** The number of the next event, which is taken with it. */
  next(): number {
    return this.#number++;
  }

  /** An event whose members stand by the alphabet, its number among them. */
  write(type: string, before: Members, after: Members = {}): string {
    return `event: ${type}\ndata: ${jsonText({ type, ...before, sequence_number: this.next(), ...after })}\n\n`;
  }

  /** An event that shows the response as it stands. */
  response(state: Omit<ResponseState, "output">, output: readonly JsonValue[] = this.output): string {
    return this.write(`response.${state.event}`, { response: this.frame.response({ ...state, output }) });
  }

  itemAdded(item: JsonValue): string {
    return this.write("response.output_item.added", { item, output_index: this.output.length });
  }

  /** The item is complete. */
  itemDone(item: JsonValue): string {
    const text = this.write("response.output_item.done", { item, output_index: this.output.length });
    this.output.push(item);
    return text;
  }
}
