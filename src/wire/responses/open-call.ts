import type { ToolCallStartEvent } from "../../generation/event.ts";
import { callPrefixes } from "./call-kind.ts";
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

  constructor(events: ResponseEvents, { id, name, kind: told = "function", namespace, itemId }: ToolCallStartEvent) {
    this.#events = events;
    const outputIndex = (this.#outputIndex = events.output.length);
    const { frame } = events;
    const kind = frame.callKind(told, name);
    const ownId = frame.itemId(callPrefixes[kind], itemId);
    this.#call = { id: ownId, callId: id, kind, ...frame.callName(name, namespace) };
    const type = kind === "custom" ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
    this.#frame = new DeltaFrame(type, { itemId: ownId, outputIndex, obfuscate: frame.obfuscate });
  }

  begin(): string {
    return this.#events.itemAdded(callItem(this.#call, "in_progress", ""));
  }

  input(text: string): string {
    if (text === "") return "";
    this.#pieces.push(text);
    // A search is told as a whole item alone (recordings of 2026).
    if (this.#call.kind === "search") return "";
    return this.#frame.write(text, this.#events.next());
  }

  close(status: ItemStatus): string {
    const { id, kind } = this.#call;
    // A call without arguments has an empty object (17 of 17 recordings).
    const empty = status === "completed" && this.#pieces.length === 0 ? this.input(emptyInput(kind)) : "";
    const text = this.#pieces.join("");
    const place = { item_id: id, output_index: this.#outputIndex };
    let done = "";
    if (kind === "custom") done = this.#events.write("response.custom_tool_call_input.done", { input: text, ...place });
    else if (kind === "function") {
      done = this.#events.write("response.function_call_arguments.done", { arguments: text, ...place });
    }
    return empty + done + this.#events.itemDone(callItem(this.#call, status, text));
  }
}
