import { DeltaFrame } from "./delta-frame.ts";
import { reasoningItem } from "./items.ts";
import type { Thought } from "./items.ts";
import type { ResponseEvents } from "./response-events.ts";

/** A thought while it is written: its own text, its summary, or both. Methods return the events' text. */
export class OpenThought {
  readonly kind = "reasoning";
  readonly id: string;
  readonly #events: ResponseEvents;
  readonly #outputIndex: number;
  readonly #summary: string[] = [];
  #text: OpenText | null = null;
  #summaryPart: OpenText | null = null;

  constructor(events: ResponseEvents, ownId: string | undefined) {
    this.#events = events;
    this.#outputIndex = events.output.length;
    this.id = events.frame.itemId("rs_", ownId);
  }

  begin(): string {
    return this.#events.itemAdded(reasoningItem(this.id, null, "added", this.#events.frame));
  }

  /** A piece of the thought itself. */
  text(text: string): string {
    if (text === "") return "";
    let events = "";
    if (this.#text === null) {
      const place = { content_index: 0, item_id: this.id, output_index: this.#outputIndex };
      events = this.#events.write("response.content_part.added", { ...place, part: { type: "reasoning_text", text: "" } });
      const frame = this.#frame("response.reasoning_text.delta", { contentIndex: 0, obfuscate: undefined });
      this.#text = { part: 0, pieces: [], frame };
    }
    this.#text.pieces.push(text);
    return events + this.#text.frame.write(text, this.#events.next());
  }

  /** A piece of the summary's part with this number. */
  summary(part: number, text: string): string {
    let events = "";
    if (this.#summaryPart?.part !== part) {
      events = this.#endSummaryPart();
      const summaryIndex = this.#summary.length;
      events += this.#events.write("response.reasoning_summary_part.added", this.#place(""), { summary_index: summaryIndex });
      const { obfuscate } = this.#events.frame;
      const frame = this.#frame("response.reasoning_summary_text.delta", { summaryIndex, obfuscate });
      this.#summaryPart = { part, pieces: [], frame };
    }
    const open = this.#summaryPart as OpenText;
    open.pieces.push(text);
    if (text === "" && !this.#events.frame.keepsEmptyDeltas) return events;
    return events + open.frame.write(text, this.#events.next());
  }

  close(signature: string | undefined, encrypted: string | undefined): string {
    const events = this.#endText() + this.#endSummaryPart();
    const texts = this.#text === null ? [] : [this.#text.pieces.join("")];
    const thought: Thought = { id: this.id, texts, summary: this.#summary, signature, encrypted };
    const { frame } = this.#events;
    return (
      events +
      this.#events.itemDone(
        reasoningItem(this.id, thought, "done", frame),
        reasoningItem(this.id, thought, "output", frame),
      )
    );
  }

  #endText(): string {
    if (this.#text === null) return "";
    const text = this.#text.pieces.join("");
    const place = { content_index: 0, item_id: this.id, output_index: this.#outputIndex };
    return (
      this.#events.write("response.reasoning_text.done", place, { text }) +
      this.#events.write("response.content_part.done", { ...place, part: { type: "reasoning_text", text } })
    );
  }

  #endSummaryPart(): string {
    if (this.#summaryPart === null) return "";
    const text = this.#summaryPart.pieces.join("");
    this.#summaryPart = null;
    const index = { summary_index: this.#summary.length };
    const place = { item_id: this.id, output_index: this.#outputIndex };
    this.#summary.push(text);
    return (
      this.#events.write("response.reasoning_summary_text.done", place, { ...index, text }) +
      this.#events.write("response.reasoning_summary_part.done", this.#place(text), index)
    );
  }

  #place(text: string): { item_id: string; output_index: number; part: { type: string; text: string } } {
    return { item_id: this.id, output_index: this.#outputIndex, part: { type: "summary_text", text } };
  }

  #frame(
    type: string,
    place: { readonly contentIndex?: number; readonly summaryIndex?: number; readonly obfuscate: (() => number) | undefined },
  ): DeltaFrame {
    return new DeltaFrame(type, { itemId: this.id, outputIndex: this.#outputIndex, ...place });
  }
}

interface OpenText {
  readonly part: number;
  readonly pieces: string[];
  readonly frame: DeltaFrame;
}
