import type { GenerationEvent, TokenLogprob } from "../../wire/core/events.ts";
import type { Format } from "./format.ts";
import { isSignOf, knownFormats } from "./known.ts";
import { TextBuffer } from "./reading/cursor.ts";
import { MarkerSet } from "./reading/marker-set.ts";
import { TextReader, type TextReaderOptions } from "./text-reader.ts";

/** More white space than this is emitted as content, so that what is held back stays bounded. */
const maxHeldSpace = 4096;

/**
 * Parses the text of a choice whose format is unknown. Text is emitted as it arrives until it contains a marker of a known format. From
 * there, every format with this marker reads the text. The first that finds a call reads the rest of the text; one that finds reasoning
 * reads up to its end; in a routed format, any message counts. If no format finds anything, the marker is text.
 */
export class MarkerReader {
  readonly #options: Omit<TextReaderOptions, "format">;
  readonly #markers: MarkerTable;
  /** The reader of the format that was found. */
  #chosen: TextReader | undefined;
  #trial: Trial | undefined;
  /** White space after the last event: dropped if a call follows. */
  #space = new TextBuffer();
  /** The end of the text, after that, which may be the beginning of a marker. */
  #tail = "";
  readonly #unknownTools = new Set<string>();
  #afterReasoning = false;
  /** Logprobs of tokens whose text is held back. */
  #logprobs: TokenLogprob[] = [];

  constructor(options: Omit<TextReaderOptions, "format">) {
    this.#options = options;
    this.#markers = options.callsAllowed === false ? reasoningMarkers : allMarkers;
  }

  /** The tools that were called although the request does not have them, as far as it was clear that these were calls. */
  get unknownTools(): ReadonlySet<string> {
    return new Set([...this.#unknownTools, ...(this.#chosen?.unknownTools ?? [])]);
  }

  push(text: string, logprob?: TokenLogprob): GenerationEvent[] {
    const events = this.#read(text);
    this.#attachLogprobs(events, logprob);
    return events;
  }

  end(): GenerationEvent[] {
    const events: GenerationEvent[] = [];
    if (this.#trial) {
      for (const candidate of this.#trial.candidates) candidate.events.push(...candidate.reader.end());
      this.#decide(this.#trial, events, true);
    }
    if (this.#chosen) events.push(...this.#chosen.end());
    else if (this.#isHolding) this.#emitText(this.#space.take() + this.#tail, events);
    this.#tail = "";
    return events;
  }

  get #isHolding(): boolean {
    return this.#space.length > 0 || this.#tail !== "";
  }

  /** Attaches a token's logprob to the text that contains its last character. Logprobs of calls, reasoning and markers are dropped. */
  #attachLogprobs(events: GenerationEvent[], logprob: TokenLogprob | undefined): void {
    const isHeld = this.#isHolding || this.#trial !== undefined;
    if (logprob && !isHeld) this.#logprobs.push(logprob);
    const last = events.at(-1);
    if (last?.type === "text-delta" && this.#logprobs.length > 0) {
      events[events.length - 1] = { ...last, logprobs: this.#logprobs };
    }
    if (events.length > 0 || !isHeld) this.#logprobs = [];
    if (logprob && isHeld) this.#logprobs.push(logprob);
  }

  #read(text: string): GenerationEvent[] {
    const events: GenerationEvent[] = [];
    let rest = text;
    while (rest !== "") {
      if (this.#chosen) {
        events.push(...this.#chosen.push(rest));
        break;
      }
      rest = this.#trial ? this.#try(this.#trial, rest, events) : this.#findMarker(rest, events);
    }
    return events;
  }

  /** Looks for a marker and starts a trial at it. Returns the text from the marker on. */
  #findMarker(text: string, events: GenerationEvent[]): string {
    const all = this.#tail + text;
    const { set, openings } = this.#markers;
    let node = 0;
    let at = -1;
    let found = "";
    for (let i = 0; i < all.length; i++) {
      if (node === 0 && found === "") {
        i = set.skip(all, i);
        if (i === all.length) break;
      }
      node = set.step(node, all.charCodeAt(i));
      // No longer a continuation of a marker that begins where the match begins, or before it.
      if (found !== "" && i + 1 - (set.depth[node] ?? 0) > at) break;
      const marker = set.markers[set.ends[node] ?? -1];
      if (marker !== undefined && (found === "" || i + 1 - marker.length <= at)) {
        at = i + 1 - marker.length;
        found = marker;
      }
    }
    if (found === "") {
      const end = all.length - (set.depth[node] ?? 0);
      this.#emitButSpace(all.slice(0, end), events);
      this.#tail = all.slice(end);
      return "";
    }
    this.#tail = "";
    this.#emitButSpace(all.slice(0, at), events);
    const candidates = (openings.get(found) ?? []).map(({ format, prefix }) => ({
      format,
      reader: new TextReader({ ...this.#options, format, prefix }),
      events: [],
    }));
    this.#trial = { raw: this.#space.take(), marker: found, candidates };
    return all.slice(at);
  }

  /** Lets the candidates read the text. Returns what is left when the trial is over. */
  #try(trial: Trial, text: string, events: GenerationEvent[]): string {
    // Character by character, because the format of what follows reasoning is not known yet.
    for (let i = 0; i < text.length; i++) {
      const character = text.charAt(i);
      trial.raw += character;
      for (const candidate of trial.candidates) candidate.events.push(...candidate.reader.push(character));
      if (this.#decide(trial, events, false)) return text.slice(i + 1);
    }
    return "";
  }

  /** Returns whether the trial is over. */
  #decide(trial: Trial, events: GenerationEvent[], atEnd: boolean): boolean {
    if (trial.reasoning) {
      const { reader, events: found } = trial.reasoning;
      events.push(...found.splice(0));
      if (!atEnd && reader.phase === "reasoning") return false;
      if (!atEnd) events.push(...reader.end());
      this.#trial = undefined;
      this.#afterReasoning = true;
      return true;
    }
    const message = trial.candidates.find((candidate) => readsMessage(candidate, trial.marker));
    const caller =
      trial.candidates.find(({ events }) => events.some(({ type }) => type === "tool-call-start")) ?? message;
    // What is a message in one format may turn out to be a call in another a few characters later.
    if (caller === message && message && !atEnd && !trial.candidates.every(hasEmitted) && !hasEmittedEnough(message))
      return false;
    if (caller) {
      events.push(...caller.events);
      this.#chosen = caller.reader;
      this.#trial = undefined;
      return true;
    }
    const reasoner = trial.candidates.find(
      ({ reader, events }) => reader.phase === "reasoning" && !events.some(hasText),
    );
    if (reasoner) {
      trial.reasoning = reasoner;
      trial.candidates = [reasoner];
      return false;
    }
    // If several formats read it as a call of an unknown tool, the first of them determines the name.
    trial.unknown ??= trial.candidates.find(({ reader }) => reader.unknownTools.size > 0)?.reader.unknownTools;
    trial.candidates = trial.candidates.filter(({ events }) => !events.some(hasText));
    if (trial.candidates.length > 0 && !atEnd) return false;
    for (const name of trial.unknown ?? []) this.#unknownTools.add(name);
    this.#trial = undefined;
    this.#emitText(trial.raw, events);
    return true;
  }

  /** Emits text except for the white space at its end, which is held back. */
  #emitButSpace(text: string, events: GenerationEvent[]): void {
    const shown = text.trimEnd();
    if (shown !== "") this.#emitText(this.#space.take() + shown, events);
    this.#space.add(text.slice(shown.length));
    if (this.#space.length > maxHeldSpace) this.#emitText(this.#space.take(), events);
  }

  #emitText(text: string, events: GenerationEvent[]): void {
    const shown = this.#afterReasoning ? text.trimStart() : text;
    if (shown === "") return;
    this.#afterReasoning = false;
    events.push({ type: "text-delta", choice: this.#options.choice, text: shown });
  }
}

/** The formats with one marker, reading the text from this marker on. */
interface Trial {
  readonly marker: string;
  candidates: Candidate[];
  /** The candidate that reads reasoning. */
  reasoning?: Candidate;
  /** The text from the marker on, which is emitted if no candidate finds anything. */
  raw: string;
  /** The tools of what may be calls, if the request does not have them. */
  unknown?: ReadonlySet<string> | undefined;
}

interface Candidate {
  readonly format: Format;
  readonly reader: TextReader;
  readonly events: GenerationEvent[];
}

function hasText(event: GenerationEvent): boolean {
  return event.type === "text-delta" && event.text.trim() !== "";
}

/** Whether a routed format has read a message; then everything that follows is in this format, too. */
function readsMessage({ format, reader, events }: Candidate, marker: string): boolean {
  if (format.kind !== "routed") return false;
  if (reader.phase === "reasoning") return true;
  return events.some((event) => event.type === "text-delta" && hasText(event) && !event.text.startsWith(marker));
}

function hasEmitted({ reader, events }: Candidate): boolean {
  return events.length > 0 || reader.phase === "reasoning";
}

function hasEmittedEnough({ reader, events }: Candidate): boolean {
  const length = events.reduce((sum, event) => sum + (event.type === "text-delta" ? event.text.length : 0), 0);
  return reader.phase === "reasoning" || length >= 8;
}

/** A format that a marker opens, and the prefix that its reader needs. */
interface Opening {
  readonly format: Format;
  readonly prefix: string;
}

interface MarkerTable {
  readonly set: MarkerSet;
  readonly openings: ReadonlyMap<string, readonly Opening[]>;
}

type Opener = readonly [marker: string, prefix?: string];

const allMarkers = markersOf((format) => [...reasoningOpeners(format), ...callOpeners(format)]);
const reasoningMarkers = markersOf(reasoningOpeners);

/** The openers of all known formats. Of several formats with the same opener, those that are recognized by it come first. */
function markersOf(openersOf: (format: Format) => readonly Opener[]): MarkerTable {
  const openings = new Map<string, Opening[]>();
  for (const format of knownFormats) {
    for (const [marker, prefix = ""] of openersOf(format)) {
      // Shorter markers, such as a single bracket, are common in text.
      if (marker.trim().length < 4) continue;
      const known = openings.get(marker) ?? [];
      if (!known.some((opening) => opening.format === format)) known.push({ format, prefix });
      openings.set(marker, known);
    }
  }
  for (const [marker, known] of openings) {
    const isRecognized = ({ format }: Opening): number => Number(isSignOf(format, marker));
    known.sort((a, b) => isRecognized(b) - isRecognized(a));
  }
  return { set: new MarkerSet([...openings.keys()]), openings };
}

/** What opens reasoning; in a routed format, what opens any message. */
function reasoningOpeners(format: Format): readonly Opener[] {
  if (format.kind !== "routed") return (format.reasoning?.open ?? []).map((open) => [open]);
  // The prompt ends within the first header, so the text begins with the rest of it.
  const rest = format.routes.flatMap(({ write = [] }) => write.flatMap((header) => /^<\|\w+\|>/.exec(header) ?? []));
  return [[format.start], ...rest.map((marker): Opener => [marker, `${format.start}assistant`])];
}

function callOpeners(format: Format): readonly Opener[] {
  if (format.kind === "routed") return [];
  const calls = format.calls.flatMap((call) => call.open ?? []);
  return [...(format.section?.open ?? []), ...calls].map((marker) => [marker]);
}
