import type { Format, PlainFormat } from "../../formats/format.ts";
import { knownFormats } from "../../formats/known.ts";
import { TextReader } from "../../formats/text-reader.ts";
import type { TextReaderOptions } from "../../formats/text-reader.ts";
import type { GenerationEvent, TokenLogprob } from "../../generation/event.ts";

/**
 * Reads a choice's text without being told its format: text goes on as it comes, until a marker of a known format stands in it. From
 * there all formats that have this marker read along; the first that makes a call or a thought of it has the rest of the text (a
 * thought: up to its end). When none does, it was text.
 */
export class MarkerReader {
  readonly #options: Omit<TextReaderOptions, "format">;
  readonly #markers: ReadonlyMap<string, readonly Format[]>;
  readonly #longest: number;
  /** The format that was found. */
  #chosen: TextReader | undefined;
  #trial: Trial | undefined;
  /** A tail that may become a marker. */
  #held = "";
  #sawCalls = false;
  readonly #unknownTools = new Set<string>();
  #afterThought = false;
  /** Of tokens whose text is held. */
  #logprobs: TokenLogprob[] = [];

  constructor(options: Omit<TextReaderOptions, "format">) {
    this.#options = options;
    this.#markers = options.callsAllowed === false ? thoughtMarkers : allMarkers;
    this.#longest = Math.max(...[...this.#markers.keys()].map(({ length }) => length));
  }

  get sawCalls(): boolean {
    return this.#sawCalls;
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
    else if (this.#held !== "") this.#tellText(this.#held, events);
    this.#held = "";
    return this.#noted(events);
  }

  /** A token's logprob goes with the text that holds its last character; those of calls, thoughts and markers vanish. */
  #attachLogprobs(events: GenerationEvent[], logprob: TokenLogprob | undefined): void {
    const isHeld = this.#held !== "" || this.#trial !== undefined;
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
    return this.#noted(events);
  }

  /** Looks for a marker; returns what follows it. */
  #watch(text: string, events: GenerationEvent[]): string {
    const all = this.#held + text;
    this.#held = "";
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
    const space = this.#held;
    this.#held = "";
    const formats = this.#markers.get(found) ?? [];
    this.#trial = {
      raw: space,
      candidates: formats.map((format) => ({
        format,
        reader: new TextReader({ ...this.#options, format, prefix: "" }),
        events: [],
      })),
    };
    return all.slice(at);
  }

  /** Lets the candidates read; returns what is left for others. */
  #try(text: string, events: GenerationEvent[]): string {
    const trial = this.#trial;
    if (!trial) return text;
    // Character by character around the decision: what follows a thought belongs to nobody yet.
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
    const caller = trial.candidates.find(({ events }) => events.some(({ type }) => type === "tool-call-start"));
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
    this.#held = text.slice(shown.length) + tail;
    this.#tellText(shown, events);
  }

  #tellText(text: string, events: GenerationEvent[]): void {
    const shown = this.#afterThought ? text.trimStart() : text;
    if (shown === "") return;
    this.#afterThought = false;
    events.push({ type: "text-delta", choice: this.#options.choice, text: shown });
  }

  #noted(events: GenerationEvent[]): GenerationEvent[] {
    this.#sawCalls ||= events.some(({ type }) => type === "tool-call-start");
    return events;
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

const allMarkers = gather((format) => [...(format.reasoning?.open ?? []), ...callMarkers(format)]);
const thoughtMarkers = gather((format) => format.reasoning?.open ?? []);

function gather(openers: (format: Format) => readonly string[]): Map<string, Format[]> {
  const markers = new Map<string, Format[]>();
  for (const format of knownFormats) {
    for (const opener of new Set(openers(format))) {
      // A single bracket is everyday text.
      if (opener.trim().length < 4) continue;
      const formats = markers.get(opener);
      if (formats) formats.push(format);
      else markers.set(opener, [format]);
    }
  }
  return markers;
}

function callMarkers(format: Format): readonly string[] {
  if (format.kind === "routed") return [format.start];
  return [...(format.section?.open ?? []), ...(format as PlainFormat).calls.flatMap((call) => call.open ?? [])];
}

/** The characters that markers begin with: text without any of them goes on unseen. */
const beginnings = new RegExp(
  `[${[...new Set([...allMarkers.keys()].map((marker) => marker.charAt(0)))].join("").replace(/[\\\]^-]/g, "\\$&")}]`,
);
