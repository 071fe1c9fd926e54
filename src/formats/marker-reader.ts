import type { Format, PlainFormat } from "./format.ts";
import { isSignOf, knownFormats } from "./known.ts";
import { Pile } from "./reading/cursor.ts";
import { TextReader, type TextReaderOptions } from "./text-reader.ts";
import type { GenerationEvent, TokenLogprob } from "../core/events.ts";

/** More white space than this is content, so that what is held back is bounded while a model writes white space for ever. */
const mostSpace = 4096;

/**
 * Reads a choice's text without being told its format: text goes on as it comes, until a marker of a known format stands in it. From
 * there every format that has this marker reads the text; the first that finds a call or a thought gets the rest of it (a thought: up
 * to its end; in a routed format, any message counts). If none does, the marker is text.
 */
export class MarkerReader {
  readonly #options: Omit<TextReaderOptions, "format">;
  readonly #markers: ReadonlyMap<string, readonly Opening[]>;
  readonly #longest: number;
  /** The format that was found. */
  #chosen: TextReader | undefined;
  #trial: Trial | undefined;
  /** White space after the last event: it vanishes if a call follows. */
  #space = new Pile();
  /** What may become a marker, after that. */
  #tail = "";
  readonly #unknownTools = new Set<string>();
  #afterThought = false;
  /** Of tokens whose text is held. */
  #logprobs: TokenLogprob[] = [];

  constructor(options: Omit<TextReaderOptions, "format">) {
    this.#options = options;
    this.#markers = options.callsAllowed === false ? thoughtMarkers : allMarkers;
    this.#longest = Math.max(...[...this.#markers.keys()].map(({ length }) => length));
  }

  /** Names in calls of tools that the request does not have, as far as it was clear that they are calls. */
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
      this.#decide(events, true);
    }
    if (this.#chosen) events.push(...this.#chosen.end());
    else if (this.#isHolding) this.#tellText(this.#space.take() + this.#tail, events);
    this.#tail = "";
    return events;
  }

  get #isHolding(): boolean {
    return this.#space.length > 0 || this.#tail !== "";
  }

  /** A token's logprob goes with the text that holds its last character; those of calls, thoughts and markers vanish. */
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
      rest = this.#trial ? this.#try(rest, events) : this.#watch(rest, events);
    }
    return events;
  }

  /** Looks for a marker; returns what follows it. */
  #watch(text: string, events: GenerationEvent[]): string {
    const all = this.#tail + text;
    this.#tail = "";
    if (!beginnings.test(all)) {
      this.#tellButSpace(all, "", events);
      return "";
    }
    let at = Number.POSITIVE_INFINITY;
    let found = "";
    for (const marker of this.#markers.keys()) {
      const place = all.indexOf(marker);
      if (place !== -1 && (place < at || (place === at && marker.length > found.length))) [at, found] = [place, marker];
    }
    if (found === "") {
      const keep = this.#tailLength(all);
      this.#tellButSpace(all.slice(0, all.length - keep), all.slice(all.length - keep), events);
      return "";
    }
    this.#tellButSpace(all.slice(0, at), "", events);
    const openings = this.#markers.get(found) ?? [];
    this.#trial = {
      raw: this.#space.take(),
      marker: found,
      candidates: openings.map(({ format, prefix }) => ({
        format,
        reader: new TextReader({ ...this.#options, format, prefix }),
        events: [],
      })),
    };
    return all.slice(at);
  }

  /** Lets the candidates read; returns what is left for others. */
  #try(text: string, events: GenerationEvent[]): string {
    const trial = this.#trial;
    if (!trial) return text;
    // Character by character, because the format of what follows a thought is not known yet.
    for (let i = 0; i < text.length; i++) {
      const piece = text.charAt(i);
      trial.raw += piece;
      for (const candidate of trial.candidates) candidate.events.push(...candidate.reader.push(piece));
      if (this.#decide(events, false)) return text.slice(i + 1);
    }
    return "";
  }

  /** True when the trial is over. */
  #decide(events: GenerationEvent[], atEnd: boolean): boolean {
    const trial = this.#trial;
    if (!trial) return true;
    if (trial.thinking) {
      events.push(...trial.thinking.events.splice(0));
      if (!atEnd && trial.thinking.reader.phase === "reasoning") return false;
      if (!atEnd) events.push(...trial.thinking.reader.end());
      this.#trial = undefined;
      this.#afterThought = true;
      return true;
    }
    const message = trial.candidates.find((candidate) => readsMessage(candidate, trial.marker));
    const caller =
      trial.candidates.find(({ events }) => events.some(({ type }) => type === "tool-call-start")) ?? message;
    // What is a message to one may be a call to another, a few characters later.
    if (caller === message && message && !atEnd && !trial.candidates.every(hasSpoken) && !hasSaidEnough(message))
      return false;
    if (caller) {
      events.push(...caller.events);
      this.#chosen = caller.reader;
      this.#trial = undefined;
      return true;
    }
    const thinker = trial.candidates.find(({ reader, events }) => reader.phase === "reasoning" && !events.some(isText));
    if (thinker) {
      trial.thinking = thinker;
      trial.candidates = [thinker];
      return false;
    }
    // Of several formats that take it for a call of an unknown tool, the first tells its name.
    trial.unknown ??= trial.candidates.find(({ reader }) => reader.unknownTools.size > 0)?.reader.unknownTools;
    trial.candidates = trial.candidates.filter(({ events }) => !events.some(isText));
    if (trial.candidates.length > 0 && !atEnd) return false;
    for (const name of trial.unknown ?? []) this.#unknownTools.add(name);
    // Nobody made anything of it. Its first character is text; a marker may begin after it.
    this.#trial = undefined;
    this.#tellText(trial.raw, events);
    return true;
  }

  /** Tells text but for the white space at its end, which vanishes if a call follows; holds that, and `tail`. */
  #tellButSpace(text: string, tail: string, events: GenerationEvent[]): void {
    const shown = text.trimEnd();
    if (shown !== "") this.#tellText(this.#space.take() + shown, events);
    this.#space.add(text.slice(shown.length));
    if (this.#space.length > mostSpace) this.#tellText(this.#space.take(), events);
    this.#tail = tail;
  }

  #tellText(text: string, events: GenerationEvent[]): void {
    const shown = this.#afterThought ? text.trimStart() : text;
    if (shown === "") return;
    this.#afterThought = false;
    events.push({ type: "text-delta", choice: this.#options.choice, text: shown });
  }

  /** How much of the text's end may be the beginning of a marker. */
  #tailLength(text: string): number {
    for (let length = Math.min(text.length, this.#longest - 1); length > 0; length--) {
      const tail = text.slice(text.length - length);
      for (const marker of this.#markers.keys()) if (marker.startsWith(tail)) return length;
    }
    return 0;
  }
}

interface Trial {
  readonly marker: string;
  candidates: Candidate[];
  /** The candidate that reads a thought. */
  thinking?: Candidate;
  /** The text since the marker, for when it was none. */
  raw: string;
  /** Names in what may be calls of tools that the request does not have. */
  unknown?: ReadonlySet<string> | undefined;
}

interface Candidate {
  readonly format: Format;
  readonly reader: TextReader;
  readonly events: GenerationEvent[];
}

function isText(event: GenerationEvent): boolean {
  return event.type === "text-delta" && event.text.trim() !== "";
}

/** Whether a format whose messages have headers has read one: all that follows is its, too. */
function readsMessage({ format, reader, events }: Candidate, marker: string): boolean {
  if (format.kind !== "routed") return false;
  return reader.phase === "reasoning" || events.some((event) => isText(event) && !startsWith(event, marker));
}

function hasSpoken({ reader, events }: Candidate): boolean {
  return events.length > 0 || reader.phase === "reasoning";
}

function hasSaidEnough({ reader, events }: Candidate): boolean {
  const length = events.reduce((sum, event) => sum + (event.type === "text-delta" ? event.text.length : 0), 0);
  return reader.phase === "reasoning" || length >= 8;
}

function startsWith(event: GenerationEvent, marker: string): boolean {
  return event.type === "text-delta" && event.text.startsWith(marker);
}

/** A format that a marker opens, and the prefix that its reader needs. */
interface Opening {
  readonly format: Format;
  readonly prefix: string;
}

type Marker = readonly [text: string, prefix?: string];

const allMarkers = gather((format) => [...thoughtMarkersOf(format), ...callMarkersOf(format)]);
const thoughtMarkers = gather(thoughtMarkersOf);

/** The markers of all formats; of several formats with the same one, those that are known by it come first. */
function gather(openers: (format: Format) => readonly Marker[]): Map<string, Opening[]> {
  const markers = new Map<string, Opening[]>();
  for (const format of knownFormats) {
    for (const [marker, prefix = ""] of openers(format)) {
      // A single bracket is everyday text.
      if (marker.trim().length < 4) continue;
      const openings = markers.get(marker) ?? [];
      if (!openings.some((opening) => opening.format === format)) openings.push({ format, prefix });
      markers.set(marker, openings);
    }
  }
  for (const [marker, openings] of markers) {
    const isKnownBy = ({ format }: Opening): number => Number(isSignOf(format, marker));
    openings.sort((a, b) => isKnownBy(b) - isKnownBy(a));
  }
  return markers;
}

/** What opens a thought; of a format whose messages have headers, any message. */
function thoughtMarkersOf(format: Format): readonly Marker[] {
  if (format.kind !== "routed") return (format.reasoning?.open ?? []).map((open) => [open]);
  // The prompt ends within the first header, so the text begins with the rest of it.
  const rest = format.routes.flatMap(({ write = [] }) => write.flatMap((header) => /^<\|\w+\|>/.exec(header) ?? []));
  return [[format.start], ...rest.map((marker): Marker => [marker, `${format.start}assistant`])];
}

function callMarkersOf(format: Format): readonly Marker[] {
  if (format.kind === "routed") return [];
  const calls = (format as PlainFormat).calls.flatMap((call) => call.open ?? []);
  return [...(format.section?.open ?? []), ...calls].map((marker) => [marker]);
}

/** The characters that markers begin with: text without any of them goes on unseen. */
const beginnings = new RegExp(
  `[${[...new Set([...allMarkers.keys()].map((marker) => marker.charAt(0)))].join("").replace(/[\\\]^-]/g, "\\$&")}]`,
);
