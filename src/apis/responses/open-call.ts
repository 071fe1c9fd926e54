import type { ToolCallStartEvent } from "../../core/events.ts";
import { callPrefixes } from "./call-kind.ts";
import { DeltaFrame } from "./delta-frame.ts";
import { callItem, emptyInput } from "./items.ts";
import type { CallItem, ItemStatus } from "./items.ts";
import type { ResponseEvents } from "./response-events.ts";

/** A call while it is written: nothing of it before it begins. Methods return the events' text. */
export class OpenCall {
  readonly kind = "call";
  readonly #events: ResponseEvents;
  readonly #outputIndex: number;
  readonly #call: CallItem;
  readonly #pieces: string[] = [];
  readonly #frame: DeltaFrame;
  #begun = false;

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

  get hasBegun(): boolean {
    return this.#begun;
  }

  /** Tells that there is a call, with the input that has come; once. */
  begin(): string {
    if (this.#begun) return "";
    this.#begun = true;
    let events = this.#events.itemAdded(callItem(this.#call, "in_progress", ""));
    for (const piece of this.#pieces) events += this.#delta(piece);
    return events;
  }

  input(text: string): string {
    if (text === "") return "";
    this.#pieces.push(text);
    return this.#begun ? this.#delta(text) : "";
  }

  close(status: ItemStatus): string {
    const { id, kind } = this.#call;
    const begun = this.begin();
    // A call without arguments has an empty object (17 of 17 recordings).
    const empty = status === "completed" && this.#pieces.length === 0 ? this.input(emptyInput(kind)) : "";
    const text = this.#pieces.join("");
    const place = { item_id: id, output_index: this.#outputIndex };
    let done = "";
    if (kind === "custom") done = this.#events.write("response.custom_tool_call_input.done", { input: text, ...place });
    else if (kind === "function") {
      done = this.#events.write("response.function_call_arguments.done", { arguments: text, ...place });
    }
    return begun + empty + done + this.#events.itemDone(callItem(this.#call, status, text));
  }

  #delta(text: string): string {
    // A search is told as a whole item alone (recordings of 2026).
    return this.#call.kind === "search" ? "" : this.#frame.write(text, this.#events.next());
  }
}
