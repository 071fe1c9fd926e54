import type { TokenLogprob } from "../../core/events.ts";
import { JsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import { DeltaFrame } from "./delta-frame.ts";
import { messageItem, refusalPart, textPart } from "./items.ts";
import type { ItemStatus, MessagePart } from "./items.ts";
import type { ResponseEvents } from "./response-events.ts";
import { logprobsText } from "./response-logprobs.ts";

/** A message while it is written. Methods return the events' text. */
export class OpenMessage {
  readonly kind = "message";
  readonly id: string;
  readonly phase: string | undefined;
  /** The source's own id. */
  readonly ownId: string | undefined;
  readonly #events: ResponseEvents;
  readonly #outputIndex: number;
  readonly #parts: MessagePart[] = [];
  #part: TextPart | RefusalPart | null = null;

  constructor(events: ResponseEvents, ownId: string | undefined, phase: string | undefined) {
    this.#events = events;
    this.#outputIndex = events.output.length;
    this.ownId = ownId;
    this.phase = phase;
    this.id = events.frame.itemId("msg_", ownId);
  }

  get openPart(): "text" | "refusal" | undefined {
    return this.#part?.type;
  }

  begin(): string {
    return this.#events.itemAdded(messageItem(this, "in_progress", [], this.#events.frame));
  }

  text(text: string, logprobs: readonly TokenLogprob[] | undefined): string {
    // The way of almost every delta.
    const open = this.#part;
    if (logprobs === undefined && text !== "" && open?.type === "text" && open.held.length === 0) {
      open.pieces.push(text);
      return open.frame.write(text, this.#events.next());
    }
    const events = this.beginText();
    const part = this.#part as TextPart;
    if (logprobs !== undefined && this.#events.frame.showsLogprobs) part.held.push(...logprobs);
    return text === "" ? events : events + this.#delta(part, text);
  }

  /** Opens a text part, where none is open. */
  beginText(): string {
    if (this.#part?.type === "text") return "";
    const closed = this.endPart();
    const frame = this.#deltaFrame("response.output_text.delta", true);
    this.#part = { type: "text", pieces: [], annotations: [], logprobs: [], held: [], frame };
    return closed + this.#added(textPart({ text: "", annotations: [] }, []));
  }

  annotation(annotation: JsonValue): string {
    const events = this.beginText();
    const { annotations } = this.#part as TextPart;
    const place = { content_index: this.#parts.length, item_id: this.id, output_index: this.#outputIndex };
    const members = { annotation, annotation_index: annotations.length, ...place };
    annotations.push(annotation);
    return events + this.#events.write("response.output_text.annotation.added", members);
  }

  refusal(text: string): string {
    let events = "";
    if (this.#part?.type !== "refusal") {
      events = this.endPart();
      this.#part = { type: "refusal", pieces: [], frame: this.#deltaFrame("response.refusal.delta", false) };
      events += this.#added(refusalPart(""));
    }
    const part = this.#part as RefusalPart;
    if (text === "") return events;
    part.pieces.push(text);
    return events + part.frame.write(text, this.#events.next());
  }

  /** Closes the part that is open. */
  endPart(): string {
    const part = this.#part;
    if (part === null) return "";
    const flushed = part.type === "text" && part.held.length > 0 ? this.#delta(part, "") : "";
    this.#part = null;
    const place = { item_id: this.id, output_index: this.#outputIndex };
    const content_index = this.#parts.length;
    const text = part.pieces.join("");
    if (part.type === "refusal") {
      this.#parts.push({ type: "refusal", refusal: text });
      const members = { content_index, item_id: this.id, output_index: this.#outputIndex, refusal: text };
      return (
        this.#events.write("response.refusal.done", members) +
        this.#events.write("response.content_part.done", { content_index, ...place, part: refusalPart(text) })
      );
    }
    const { annotations, logprobs } = part;
    this.#parts.push({ type: "text", text, annotations, logprobs });
    const shown = new JsonText(logprobsText(logprobs, this.#events.frame.number));
    const members = { content_index, item_id: this.id, logprobs: shown, output_index: this.#outputIndex };
    return (
      flushed +
      this.#events.write("response.output_text.done", members, { text }) +
      // The whole part has no log probabilities, the whole item has (recordings of 2026-04 and 2026-05).
      this.#events.write("response.content_part.done", {
        content_index,
        ...place,
        part: textPart({ text, annotations }, []),
      })
    );
  }

  close(status: ItemStatus): string {
    const closed = this.endPart();
    return closed + this.#events.itemDone(messageItem(this, status, this.#parts, this.#events.frame));
  }

  #delta(part: TextPart, text: string): string {
    const { held } = part;
    part.pieces.push(text);
    if (held.length === 0) return part.frame.write(text, this.#events.next());
    part.held = [];
    for (const token of held) part.logprobs.push(token);
    return part.frame.write(text, this.#events.next(), logprobsText(held, this.#events.frame.number));
  }

  #added(part: JsonValue): string {
    const place = { content_index: this.#parts.length, item_id: this.id, output_index: this.#outputIndex };
    return this.#events.write("response.content_part.added", { ...place, part });
  }

  /** Deltas of refusals have neither log probabilities nor obfuscation. */
  #deltaFrame(type: string, isText: boolean): DeltaFrame {
    return new DeltaFrame(type, {
      itemId: this.id,
      outputIndex: this.#outputIndex,
      contentIndex: this.#parts.length,
      hasLogprobs: isText,
      obfuscate: isText ? this.#events.frame.obfuscate : undefined,
    });
  }
}

interface TextPart {
  readonly type: "text";
  readonly pieces: string[];
  readonly annotations: JsonValue[];
  readonly logprobs: TokenLogprob[];
  /** Tokens whose text is not decided yet; they go out with the next text. */
  held: TokenLogprob[];
  readonly frame: DeltaFrame;
}

interface RefusalPart {
  readonly type: "refusal";
  readonly pieces: string[];
  readonly frame: DeltaFrame;
}
