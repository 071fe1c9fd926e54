import type { GenerationEvent, ReasoningDeltaEvent, TextDeltaEvent } from "../../generation/event.ts";
import type { TimedEvents } from "../../inspect/inspected-request.ts";
import type { PackedText, PackedTexts } from "./packed-texts.ts";
import type { Page } from "./paged-tape.ts";
import { rounded } from "./rounded.ts";

/** A page has at most about so many events: until it is packed, each is an object. */
const mostEvents = 128;

/** An event that is a text and no more. Most events are, many in a row of one kind and choice. */
type PlainEvent = TextDeltaEvent | ReasoningDeltaEvent;

/**
 * Events in one text: for each plain one a character whose code is `plain` and the length of its text, and the text; `other` for one that
 * stays an object, `batchEnd` behind those that became known together.
 */
const batchEnd = "\u0000";
const other = "\u0001";
const plain = 2;
/** Longer texts stay in their objects. All codes are below the surrogates. */
const longest = 50_000;

/** Batches of events. */
export class EventPage implements Page<readonly GenerationEvent[], TimedEvents> {
  readonly #packedTexts: PackedTexts;
  readonly #times: number[] = [];
  /** As they came, while they are not packed. */
  #batches: (readonly GenerationEvent[])[] = [];
  #packed: PackedEvents | undefined;
  #events = 0;
  bytes = 0;
  readonly characters = 0;

  constructor(packedTexts: PackedTexts) {
    this.#packedTexts = packedTexts;
  }

  get pieces(): number {
    return this.#times.length;
  }

  get isFull(): boolean {
    return this.#packed !== undefined || this.#events >= mostEvents;
  }

  add(ms: number, batch: readonly GenerationEvent[], bytes: number): void {
    this.#times.push(ms);
    this.#batches.push(batch);
    this.#events += batch.length;
    this.bytes += bytes;
  }

  close(): void {
    if (this.#packed) return;
    this.#packed = packedEvents(this.#batches, this.bytes, this.#packedTexts);
    if (this.#packed) this.#batches = [];
  }

  letGo(): void {
    this.#packed?.text.letGo();
    this.#packed = undefined;
    this.#batches = [];
  }

  shown(): TimedEvents[] {
    const batches = this.#packed ? unpackedEvents(this.#packed) : this.#batches;
    return batches.map((events, at) => ({ ms: rounded(this.#times[at]), events }));
  }
}

interface PackedEvents {
  readonly text: PackedText;
  /** Of the plain ones. */
  readonly type: PlainEvent["type"];
  readonly choice: number;
  readonly others: readonly GenerationEvent[];
}

function packedEvents(
  batches: readonly (readonly GenerationEvent[])[],
  most: number,
  packedTexts: PackedTexts,
): PackedEvents | undefined {
  let first: PlainEvent | undefined;
  let text = "";
  const others: GenerationEvent[] = [];
  for (const batch of batches) {
    for (const event of batch) {
      if (isPlain(event) && event.type === (first ??= event).type && event.choice === first.choice)
        text += String.fromCharCode(plain + event.text.length) + event.text;
      else {
        text += other;
        others.push(event);
      }
    }
    text += batchEnd;
  }
  if (!first) return undefined;
  const packed = packedTexts.pack(text, most);
  return packed && { text: packed, type: first.type, choice: first.choice, others };
}

function unpackedEvents({ text: packed, type, choice, others }: PackedEvents): GenerationEvent[][] {
  const text = packed.read();
  const batches: GenerationEvent[][] = [];
  let batch: GenerationEvent[] = [];
  let othersRead = 0;
  for (let at = 0; at < text.length;) {
    const code = text[at++];
    if (code === batchEnd) {
      batches.push(batch);
      batch = [];
    } else if (code === other) batch.push(others[othersRead++] as GenerationEvent);
    else {
      const length = text.charCodeAt(at - 1) - plain;
      batch.push({ type, choice, text: text.slice(at, (at += length)) });
    }
  }
  return batches;
}

function isPlain(event: GenerationEvent): event is PlainEvent {
  if (event.type !== "text-delta" && event.type !== "reasoning-delta") return false;
  let members = 0;
  for (const _ in event) members++;
  return members === 3 && event.text.length <= longest;
}
