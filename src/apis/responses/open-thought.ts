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
  /** Pieces of the thought itself. */
  readonly #pieces: string[] = [];
  /** Its frame, where it is shown as it is. */
  #frame: DeltaFrame | null = null;
  readonly #summary: string[] = [];
  #parts = 0;
  #part: SummaryPart | null = null;

  constructor(events: ResponseEvents, ownId: string | undefined) {
    this.#events = events;
    this.#outputIndex = events.output.length;
    this.id = events.frame.itemId("rs_", ownId);
  }

  begin(): string {
    return this.#events.itemAdded(reasoningItem(this.id, null, this.#events.frame));
  }

  /** A piece of the thought itself. It is shown as a part of a summary where no more than that is asked for. */
  text(text: string): string {
    if (text === "") return "";
    this.#pieces.push(text);
    if (this.#events.frame.summarizes) return this.summary(-1, text);
    let events = "";
    if (this.#frame === null) {
      const place = { content_index: 0, item_id: this.id, output_index: this.#outputIndex };
      events = this.#events.write("response.content_part.added", {
        ...place,
        part: { type: "reasoning_text", text: "" },
      });
      this.#frame = this.#deltas("response.reasoning_text.delta", { contentIndex: 0, obfuscate: undefined });
    }
    return events + this.#frame.write(text, this.#events.next());
  }

  close(signature: string | undefined, encrypted: string | undefined): string {
    const events = this.#endText() + this.#endPart();
    const texts = this.#pieces.length === 0 ? [] : [this.#pieces.join("")];
    const thought: Thought = { texts, summary: this.#summary, signature, encrypted };
    return events + this.#events.itemDone(reasoningItem(this.id, thought, this.#events.frame));
  }

  /** A piece of the summary's part with this number. */
  summary(number: number, text: string): string {
    let events = "";
    if (this.#part?.number !== number) {
      events = this.#endPart();
      const summaryIndex = this.#parts;
      events += this.#events.write("response.reasoning_summary_part.added", this.#place(""), {
        summary_index: summaryIndex,
      });
      const { obfuscate } = this.#events.frame;
      const frame = this.#deltas("response.reasoning_summary_text.delta", { summaryIndex, obfuscate });
      this.#part = { number, pieces: [], frame };
    }
    const part = this.#part as SummaryPart;
    part.pieces.push(text);
    return text === "" ? events : events + part.frame.write(text, this.#events.next());
  }

  #endText(): string {
    if (this.#frame === null) return "";
    const text = this.#pieces.join("");
    const place = { content_index: 0, item_id: this.id, output_index: this.#outputIndex };
    return (
      this.#events.write("response.reasoning_text.done", place, { text }) +
      this.#events.write("response.content_part.done", { ...place, part: { type: "reasoning_text", text } })
    );
  }

  #endPart(): string {
    const part = this.#part;
    if (part === null) return "";
    this.#part = null;
    const text = part.pieces.join("");
    const index = { summary_index: this.#parts };
    const place = { item_id: this.id, output_index: this.#outputIndex };
    this.#parts++;
    if (part.number >= 0) this.#summary.push(text);
    return (
      this.#events.write("response.reasoning_summary_text.done", place, { ...index, text }) +
      this.#events.write("response.reasoning_summary_part.done", this.#place(text), index)
    );
  }

  #place(text: string): { item_id: string; output_index: number; part: { type: string; text: string } } {
    return { item_id: this.id, output_index: this.#outputIndex, part: { type: "summary_text", text } };
  }

  #deltas(
    type: string,
    place: {
      readonly contentIndex?: number;
      readonly summaryIndex?: number;
      readonly obfuscate: (() => number) | undefined;
    },
  ): DeltaFrame {
    return new DeltaFrame(type, { itemId: this.id, outputIndex: this.#outputIndex, ...place });
  }
}

interface SummaryPart {
  /** The source's number of it; −1: it is the thought itself. */
  readonly number: number;
  readonly pieces: string[];
  readonly frame: DeltaFrame;
}
