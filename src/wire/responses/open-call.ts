import type { ToolCallStartEvent } from "../../generation/event.ts";
import { DeltaFrame } from "./delta-frame.ts";
import { callItem, emptyInput } from "./items.ts";
import type { CallItem, ItemStatus } from "./items.ts";
import type { ResponseEvents } from "./response-events.ts";

/** A call while it is written. Methods return the events' text. */
export class OpenCall {
  readonly kind = "call";
  readonly #events: ResponseEvents;
  readonly #outputIndex: number;
  readonly #call: CallItem;
  readonly #pieces: string[] = [];
  readonly #frame: DeltaFrame;

  constructor(events: ResponseEvents, { id, name, kind = "function", namespace, itemId }: ToolCallStartEvent) {
    this.#events = events;
    const outputIndex = (this.#outputIndex = events.output.length);
    const { frame } = events;
    const isCustom = kind === "custom";
    const ownId = frame.itemId(isCustom ? "ctc_" : "fc_", itemId);
    this.#call = { id: ownId, callId: id, kind, ...frame.callName(name, namespace) };
    const type = isCustom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
    this.#frame = new DeltaFrame(type, { itemId: ownId, outputIndex, obfuscate: frame.obfuscate });
  }

  begin(): string {
    return this.#events.itemAdded(callItem(this.#call, "in_progress", ""));
  }

  input(text: string): string {
    if (text === "") return "";
    this.#pieces.push(text);
    return this.#frame.write(text, this.#events.next());
  }

  close(status: ItemStatus): string {
    const { id, kind } = this.#call;
    // A call without arguments has an empty object (17 of 17 recordings).
    const empty = status === "completed" && this.#pieces.length === 0 ? this.input(emptyInput(kind)) : "";
    const text = this.#pieces.join("");
    const place = { item_id: id, output_index: this.#outputIndex };
    const done =
      kind === "custom"
        ? this.#events.write("response.custom_tool_call_input.done", { input: text, ...place })
        : this.#events.write("response.function_call_arguments.done", { arguments: text, ...place });
    return empty + done + this.#events.itemDone(callItem(this.#call, status, text));
  }
}
