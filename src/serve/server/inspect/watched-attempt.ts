import { sentenceOfRepair } from "../../../wire/apis/tolerant/repairs.ts";
import type { GenerationEnd, GenerationEvent } from "../../../wire/core/events.ts";
import type {
  AnswerHeaders,
  AnswerReading,
  ReceivedAnswer,
  RepairPlace,
  SentRequest,
} from "../../../wire/core/inspection.ts";
import type {
  InspectedAttempt,
  Header,
  KeptText,
  LeftOut,
  ShownRepair,
  TapeContents,
  TimedEvents,
} from "../../../judge/inspect/inspected-request.ts";
import { rounded } from "./listed-request.ts";
import type { Mask } from "../mask.ts";
import { keptText, maskedHeaders, maskedTape, textBytes } from "./recorded-text.ts";
import { TextTape } from "./text-tape.ts";

interface WatchedAttemptOptions {
  /** Of each text, in bytes. */
  readonly limit: number;
  readonly mask: Mask;
  /** When the request was received, by `performance.now()`. */
  readonly receivedAt: number;
  readonly grow: (bytes: number) => void;
}

/** One request to another server, and its response, as an inspected request keeps them. Copies are bounded. */
export class WatchedAttempt implements ReceivedAnswer {
  readonly #options: WatchedAttemptOptions;
  readonly #url: string;
  readonly #ms: number;
  readonly #headers: AnswerHeaders;
  readonly #body: KeptText;
  readonly #adaptations: SentRequest["adaptations"];
  readonly #reread: SentRequest["reread"];
  readonly #isWhole: boolean;
  readonly #response: TextTape;
  #status: number | undefined;
  #responseHeaders: AnswerHeaders = {};
  /** Reads how the answer ended; undefined: it has not. */
  #readEnd: ((reading: AnswerReading) => readonly GenerationEvent[]) | undefined;
  #error: string | undefined;

  constructor({ url, headers, body, adaptations, reread, isWhole }: SentRequest, options: WatchedAttemptOptions) {
    const { limit, receivedAt, grow } = options;
    this.#options = options;
    this.#url = url;
    this.#ms = performance.now() - receivedAt;
    this.#headers = headers;
    this.#body = keptText(body, limit);
    this.#adaptations = adaptations;
    this.#reread = reread;
    this.#isWhole = isWhole;
    this.#response = new TextTape({ limit, receivedAt, grow });
    grow(textBytes(this.#body.text) + fieldBytes(headers));
  }

  /** Its events are those of the generation, and are read again when they are shown. */
  get isReadAgain(): boolean {
    return this.#isWhole && this.#status === 200;
  }

  get response(): TextTape {
    return this.#response;
  }

  answered(status: number, headers: AnswerHeaders): void {
    this.#status = status;
    this.#responseHeaders = headers;
    this.#options.grow(fieldBytes(headers));
  }

  received(text: string): void {
    this.#response.add(text);
  }

  ended(): void {
    this.#readEnd = (reading) => reading.end();
  }

  failed(message: string): void {
    this.#error ??= message;
    this.#readEnd ??= (reading) => reading.end(new Error(message));
  }

  abandoned(end: GenerationEnd): void {
    if ("failure" in end) this.#error ??= end.failure.message;
    this.#readEnd ??= (reading) => reading.abandon(end);
  }

  /** The events of a whole answer without its end; of one that is too long, those of its beginning. */
  events(): TapeContents<TimedEvents> | undefined {
    if (!this.isReadAgain) return undefined;
    const { batches, leftOut } = this.#read();
    return {
      chunks: batches.map(({ ms, events }) => ({ ms, events: events.filter(({ type }) => type !== "end") })),
      ...(leftOut && { left_out: leftOut }),
    };
  }

  shown(): InspectedAttempt {
    const { mask } = this.#options;
    const { tape, isChanged } = maskedTape(this.#response.contents(), mask);
    return {
      url: mask.text(this.#url),
      ms: rounded(this.#ms),
      headers: maskedHeaders(headersOf(this.#headers), mask),
      body: { ...this.#body, text: mask.text(this.#body.text) },
      ...(this.#status !== undefined && { status: this.#status }),
      response_headers: maskedHeaders(headersOf(this.#responseHeaders), mask),
      response: tape,
      adaptations: this.#adaptations.map(({ id, place }) => ({
        id,
        sentence: sentenceOfRepair(id) ?? id,
        ...(place !== undefined && { place: mask.text(place) }),
      })),
      repairs: (this.#status === 200 ? this.#read().repairs : []).map(({ id, at }): ShownRepair => {
        const sentence = sentenceOfRepair(id) ?? id;
        return isChanged ? { id, sentence } : { id, sentence, at };
      }),
      ...(this.#error !== undefined && { error: mask.text(this.#error) }),
    };
  }

  /** Reads the answer again, up to what was left out. */
  #read(): { readonly batches: TimedEvents[]; readonly repairs: readonly RepairPlace[]; readonly leftOut?: LeftOut } {
    const { chunks, left_out: leftOut } = this.#response.contents();
    const reading = this.#reread(this.#responseHeaders);
    const { repairs } = reading;
    const batches = [...this.batches(reading)];
    if (!leftOut) return { batches, repairs };
    return { batches, repairs, leftOut: { ...leftOut, chunks: leftOut.chunks + chunks.length - leftOut.after } };
  }

  /** The events of each chunk up to what was left out, and up to their end: of the rest, nothing was read. */
  *batches(reading: AnswerReading = this.#reread(this.#responseHeaders)): Generator<TimedEvents> {
    const { chunks, left_out: leftOut } = this.#response.contents();
    let last: readonly GenerationEvent[] = [];
    for (const { ms, text } of chunks.slice(0, leftOut?.after)) {
      last = reading.push(text);
      // A reader adds later events to an empty list.
      if (last.length > 0) yield { ms, events: last };
      if (last.at(-1)?.type === "end") return;
    }
    if (!leftOut && this.#readEnd) yield { ms: chunks.at(-1)?.ms ?? this.#ms, events: this.#readEnd(reading) };
  }
}

/** The size of headers in memory, in bytes. */
export function fieldBytes(fields: AnswerHeaders): number {
  let sum = 0;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === "string") sum += textBytes(name) + textBytes(value);
    else for (const one of value ?? []) sum += textBytes(name) + textBytes(one);
  }
  return sum;
}

/** Headers are kept as they were given: their list is made when they are shown. */
export function headersOf(fields: AnswerHeaders): Header[] {
  return Object.entries(fields).flatMap(([name, value]) => [value ?? []].flat().map((one): Header => [name, one]));
}

/** The sizes of a batch, an event without its text, an alternative token, and usage, in bytes: about what V8 needs, and not less. */
const bytesPerBatch = 48;
const bytesPerEvent = 80;
const bytesPerAlternative = 112;
const bytesPerUsage = 400;

/** How large a batch of events is, for a `Tape`. */
export const eventMeasures = { bytes: eventBytes, characters: (): number => 0 } as const;

/** Estimates the size of a batch in memory, in bytes. */
function eventBytes(events: readonly GenerationEvent[]): number {
  let sum = bytesPerBatch;
  for (const event of events) sum += bytesPerEvent + contentBytes(event);
  return sum;
}

function contentBytes(event: GenerationEvent): number {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
    case "refusal-delta":
      return 2 * event.text.length + (event.logprobs ? logprobBytes(event.logprobs) : 0);
    case "tool-call-delta":
      return 2 * event.arguments.length;
    case "finish":
    case "progress":
      return bytesPerEvent;
    case "usage":
      return bytesPerUsage;
    case "tokens":
      return event.tokens.length * 8;
    // Rare events, of any content.
    default:
      return JSON.stringify(event).length * 4;
  }
}

function logprobBytes(logprobs: readonly { readonly top: readonly unknown[] }[]): number {
  return logprobs.reduce((sum, { top }) => sum + (1 + top.length) * bytesPerAlternative, 0);
}
