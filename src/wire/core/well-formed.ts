import type { ChoiceEvent, GenerationEvent, TokenLogprob } from "./events.ts";

/** Half of a surrogate pair without its other half. */
const loneSurrogate = /\p{Surrogate}/u;
const loneSurrogates = /\p{Surrogate}/gu;
const replacement = "\ufffd";

/** An event whose text grows from event to event. */
type TextEvent = Extract<ChoiceEvent, { type: "text-delta" | "reasoning-delta" | "refusal-delta" | "tool-call-delta" }>;

/** The end of a text that waits for the next event. */
interface HeldHalf {
  /** The first half of a surrogate pair. */
  readonly high: string;
  /** The last event of the text. */
  readonly event: TextEvent;
}

/**
 * Makes the texts of a generation well-formed: a half of a surrogate pair at the end of a delta waits for the delta with its other half, and
 * a half that stays alone becomes U+FFFD, in deltas and in all other members of events. A source may cut its text between two UTF-16
 * units, or write the escape of only one. JSON can express a lone half, but UTF-8 cannot: some clients fail on it, others show two wrong
 * characters. Source: RFC 8259, section 8.2; RFC 3629, section 3.
 */
export class WellFormedEvents {
  /** By choice: within a choice, texts are consecutive. */
  readonly #held = new Map<number, HeldHalf>();

  /** Returns the events with well-formed texts; the same array if they are, as almost always. */
  read(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    if (this.#held.size === 0 && events.every(isPlain)) return events;
    const out: GenerationEvent[] = [];
    for (const event of events) this.#readOne(event, out);
    return out;
  }

  #readOne(event: GenerationEvent, out: GenerationEvent[]): void {
    if (hasNoText(event)) {
      out.push(event);
      return;
    }
    if (!isTextEvent(event)) {
      const choice = "choice" in event ? event.choice : undefined;
      for (const held of choice === undefined ? [...this.#held.keys()] : [choice]) this.#flush(held, out);
      out.push(wellFormed(event));
      return;
    }
    const open = this.#held.get(event.choice);
    if (open && keyOf(open.event) !== keyOf(event)) this.#flush(event.choice, out);
    const held = this.#held.get(event.choice);
    this.#held.delete(event.choice);
    const text = held ? held.high + textOf(event) : textOf(event);
    const last = text.charCodeAt(text.length - 1);
    const isOpen = last >= 0xd800 && last <= 0xdbff;
    if (isOpen) this.#held.set(event.choice, { high: text.slice(-1), event });
    const shown = wellFormedText(isOpen ? text.slice(0, -1) : text);
    const logprobs = "logprobs" in event ? event.logprobs : undefined;
    if (shown !== "" || textOf(event) === "" || (logprobs?.length ?? 0) > 0) out.push(withText(event, shown, logprobs));
  }

  /** Emits the half that waits in a choice, whose text has ended. */
  #flush(choice: number, out: GenerationEvent[]): void {
    const held = this.#held.get(choice);
    if (!held) return;
    this.#held.delete(choice);
    out.push(withText(held.event, replacement, undefined));
  }
}

/** Returns a JSON value in which all texts are well-formed: the same value if they are. */
export function wellFormed<T>(value: T): T {
  if (typeof value === "string") return wellFormedText(value) as T & string;
  if (typeof value !== "object" || value === null || value instanceof Error) return value;
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => wellFormed(item));
    return items.some((item, at) => item !== value[at]) ? (items as T) : value;
  }
  let copy: [name: string, member: unknown][] | undefined;
  const entries = Object.entries(value);
  for (const [at, [name, member]] of entries.entries()) {
    const shown = [wellFormedText(name), wellFormed<unknown>(member)] as const;
    if (shown[0] !== name || shown[1] !== member) (copy ??= [...entries])[at] = [...shown];
  }
  return copy ? (Object.fromEntries(copy) as T) : value;
}

/** Returns a text in which each lone half of a surrogate pair is U+FFFD. */
export function wellFormedText(text: string): string {
  return loneSurrogate.test(text) ? text.replace(loneSurrogates, replacement) : text;
}

/** Whether an event needs no change: almost every one. */
function isPlain(event: GenerationEvent): boolean {
  if (hasNoText(event)) return true;
  if (!isTextEvent(event)) return wellFormed(event) === event;
  if (loneSurrogate.test(textOf(event))) return false;
  return !("logprobs" in event) || !event.logprobs?.some(isIllFormed);
}

/** Events of these types may come between the deltas of a text, and do not end it. */
function hasNoText({ type }: GenerationEvent): boolean {
  return type === "tokens" || type === "prompt" || type === "progress" || type === "usage";
}

function isIllFormed({ token, top }: TokenLogprob): boolean {
  return loneSurrogate.test(token) || top.some((other) => loneSurrogate.test(other.token));
}

function isTextEvent(event: GenerationEvent): event is TextEvent {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
    case "refusal-delta":
    case "tool-call-delta":
      return true;
    default:
      return false;
  }
}

function textOf(event: TextEvent): string {
  return event.type === "tool-call-delta" ? event.arguments : event.text;
}

/** The text of a choice that an event belongs to. */
function keyOf(event: TextEvent): string {
  if (event.type === "tool-call-delta") return `${event.type} ${event.index}`;
  return event.type === "reasoning-delta" ? `${event.type} ${event.summary ?? ""}` : event.type;
}

function withText(event: TextEvent, text: string, logprobs: readonly TokenLogprob[] | undefined): TextEvent {
  if (event.type === "tool-call-delta") return { ...event, arguments: text };
  if (!("logprobs" in event)) return { ...event, text };
  const { logprobs: _, ...rest } = event;
  return { ...rest, text, ...(logprobs && { logprobs: wellFormed(logprobs) }) };
}
