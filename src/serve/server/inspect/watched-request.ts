import type { GenerationEvent } from "../../../wire/core/events.ts";
import type {
  AnswerHeaders,
  Inspection,
  InspectedPrompt,
  ReceivedAnswer,
  SentRequest,
} from "../../../wire/core/inspection.ts";
import { loggedError } from "../../../wire/core/failure.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import type {
  InspectedOutcome,
  Header,
  InspectedRequest,
  RequestSummary,
  KeptText,
  SearchedPlace,
  TapeContents,
  TimedEvents,
} from "../../../judge/inspect/inspected-request.ts";
import { type LineFacts, lineFacts } from "./conversation.ts";
import { ListedRequest, type ListedRequestOptions, type RequestFacts, rounded } from "./listed-request.ts";
import type { SearchableText } from "./search.ts";
import type { Mask } from "../mask.ts";
import { bytesPerText, keptText, maskedHeaders, maskedTape, Tape, textBytes } from "./recorded-text.ts";
import { TextTape } from "./text-tape.ts";

import { eventMeasures, fieldBytes, headersOf, WatchedAttempt } from "./watched-attempt.ts";

export interface WatchedRequestOptions extends ListedRequestOptions {
  readonly headers: readonly Header[];
  /** Of each text and list, in bytes. */
  readonly limit: number;
  /** Called when the request takes more memory, or less. */
  readonly grow: (bytes: number) => void;
}

/** The number of choices that share the limit of one text, and the number of attempts that are kept. */
const maxChoices = 16;
const maxAttempts = 8;
/** The size of a number and of a quote in a list, in bytes. */
const bytesPerNumber = 8;
const bytesPerQuote = 96;
/** The size of the objects and texts of a parsed request for each byte of its body. */
const bytesPerParsedByte = 4;

/** One inspected request: what was received, how it was read, and what was sent. Copies are bounded. */
export class WatchedRequest extends ListedRequest implements Inspection {
  readonly #headers: readonly Header[];
  readonly #limit: number;
  readonly #grow: (bytes: number) => void;
  #body: KeptBytes | undefined;
  /** A request that is kept as an object is converted to JSON when it is shown. */
  #understood: { readonly request: object } | KeptText | undefined;
  readonly #prompts: InspectedPrompt[] = [];
  #promptBytes = 0;
  readonly #written = new Map<number, TextTape>();
  readonly #events: Tape<readonly GenerationEvent[]>;
  readonly #attempts: WatchedAttempt[] = [];
  /** The attempt whose answer has the events. */
  #answering: WatchedAttempt | undefined;
  #joinsAnswers = false;
  #responseHeaders: AnswerHeaders = {};
  readonly #response: TextTape;
  #cause: KeptText | undefined;

  constructor(options: WatchedRequestOptions) {
    super(options);
    const { headers, limit, grow } = options;
    this.#headers = headers;
    this.#limit = limit;
    this.#grow = grow;
    this.#events = new Tape(limit, eventMeasures);
    this.#response = this.#newTape(limit);
  }

  override get initialBytes(): number {
    return super.initialBytes + headerBytes(this.#headers);
  }

  /** The request body, unless it is compressed. */
  body(bytes: Uint8Array): void {
    const limit = this.#limit;
    const maxLength = Math.floor(limit / 2);
    // A part of the bytes would keep all of them in memory.
    this.#body =
      bytes.length > maxLength
        ? { bytes: bytes.slice(0, maxLength), leftOut: bytes.length - maxLength }
        : { bytes, leftOut: 0 };
    this.#grow(bytesPerText + this.#body.bytes.length);
  }

  parsedRequest(request: GenerationRequest): void {
    // A request whose body is too long is too long in this form, too.
    if (this.#body && this.#body.leftOut > 0) return;
    const limit = this.#limit;
    const { passthrough: _, ...own } = request;
    const bytes = this.#body && bytesPerText + bytesPerParsedByte * this.#body.bytes.length;
    if (bytes !== undefined && bytes <= limit) {
      this.#understood = { request: own };
      return this.#grow(bytes);
    }
    this.#understood = keptText(JSON.stringify(own), limit);
    this.#grow(textBytes(this.#understood.text));
  }

  events(events: readonly GenerationEvent[]): void {
    const end = events.at(-1);
    // The events of a whole answer are read again when they are shown. Its end may be the server's own, such as a timeout.
    if (this.#answering?.isReadAgain !== true) this.#grow(this.#events.add(this.now(), events));
    else if (end?.type === "end") this.#grow(this.#events.add(this.now(), [end]));
  }

  prompt(prompt: InspectedPrompt): void {
    const limit = this.#limit;
    const { text, lengths, control, quotes } = prompt;
    const bytes = textBytes(text) + bytesPerNumber * (lengths.length + control.length) + bytesPerQuote * quotes.length;
    const left = limit - this.#promptBytes;
    if (bytes <= left) this.#prompts.push(prompt);
    // Of a prompt that is too long, the beginning of the text is kept. Further prompts are kept if they fit.
    else if (this.#prompts.length === 0)
      this.#prompts.push({ text: keptText(text, left).text, lengths: [], control: [], quotes: [] });
    else return;
    const taken = Math.min(bytes, left);
    this.#promptBytes += taken;
    this.#grow(taken);
  }

  rawText(choice: number, text: string): void {
    const limit = this.#limit;
    let tape = this.#written.get(choice);
    if (!tape) {
      if (this.#written.size >= maxChoices) return;
      this.#written.set(choice, (tape = this.#newTape(limit / maxChoices)));
    }
    tape.add(text);
  }

  #newTape(limit: number): TextTape {
    return new TextTape({ limit, receivedAt: this.receivedAt, grow: this.#grow });
  }

  sent(request: SentRequest): ReceivedAnswer {
    const { mask, receivedAt } = this;
    const limit = this.#limit;
    const grow = this.#grow;
    const count = this.#attempts.length;
    // Each attempt has half the limit of the one before: together, they take at most twice the limit.
    if (count >= maxAttempts) {
      this.anotherSource();
      return ignored;
    }
    const attempt = new WatchedAttempt(request, { limit: limit / 2 ** count, mask, receivedAt, grow });
    this.#attempts.push(attempt);
    if (!this.#joinsAnswers) this.#answering = attempt;
    return attempt;
  }

  /** The events are those of several answers, with what this server adds: they are kept, and no answer is read again in their place. */
  joinsAnswers(): void {
    this.#joinsAnswers = true;
  }

  /** The next events do not come from an attempt that was recorded before. */
  anotherSource(): void {
    this.#answering = undefined;
  }

  responseHeaders(headers: Readonly<Record<string, string>>): void {
    this.#responseHeaders = headers;
    this.#grow(fieldBytes(headers));
    this.changed();
  }

  /** A chunk of the response body. */
  responseText(text: string): void {
    if (text !== "") this.#response.add(text);
  }

  override ended(outcome: InspectedOutcome, facts: RequestFacts): void {
    const { end } = facts.answer;
    const cause = end && "failure" in end ? end.failure.cause : undefined;
    if (cause !== undefined) {
      this.#cause = keptText(causeText(cause), maxCauseBytes);
      this.#grow(textBytes(this.#cause.text));
    }
    super.ended(outcome, facts);
  }

  protected override lineFacts(): LineFacts | undefined {
    const understood = this.#understood;
    // A request that has not been read yet.
    if (!understood && this.isOpen) return undefined;
    const isKept = understood !== undefined && !("left_out" in understood);
    const request = isKept ? requestOf(understood) : undefined;
    return lineFacts({ headers: this.#headers, mask: this.mask, request });
  }

  protected override missing(): Pick<RequestSummary, "brief" | "cut"> {
    return (this.#body?.leftOut ?? 0) > 0 || this.#response.isCut ? { cut: true } : {};
  }

  protected override namedModel(): string | undefined {
    return modelIn(this.#body);
  }

  override shown(): InspectedRequest {
    const { mask } = this;
    const text = (kept: KeptText): KeptText => ({ ...kept, text: mask.text(kept.text) });
    return {
      ...this.summary(),
      request: {
        headers: maskedHeaders(this.#headers, mask),
        ...(this.#body && { body: text(textOfBytes(this.#body)) }),
        ...(this.#understood && { understood: text(textOfRequest(this.#understood)) }),
      },
      prompts: this.#prompts.map((prompt) => {
        const shown = mask.text(prompt.text);
        // Masking moves the positions in a text.
        return shown === prompt.text ? prompt : { text: shown, lengths: [], control: [], quotes: [] };
      }),
      written: [...this.#written].map(([choice, tape]) => ({ choice, text: maskedTape(tape.contents(), mask).tape })),
      events: this.#shownEvents(),
      response: {
        headers: maskedHeaders(headersOf(this.#responseHeaders), mask),
        body: maskedTape(this.#response.contents(), mask).tape,
      },
      asked: this.#attempts.map((attempt) => attempt.shown()),
      ...(this.#cause && { stack: text(this.#cause).text }),
    };
  }

  override *texts(): Generator<SearchableText | undefined, void> {
    const { mask } = this;
    yield* super.texts();
    if (this.#body) yield { place: "request", text: mask.text(textOfBytes(this.#body).text), isJson: true };
    for (const { text } of this.#prompts) yield { place: "prompt", text: mask.text(text) };
    const answer = new AnswerTexts();
    for (const batch of this.#eventBatches()) {
      answer.add(batch);
      yield undefined;
    }
    yield* answer.texts(mask);
    // An error, or an answer without events, such as embeddings.
    if (answer.isEmpty) yield { place: "answer", text: tapeText(this.#response, mask), isJson: true };
    for (const attempt of this.#attempts)
      if (attempt !== this.#answering || !attempt.isReadAgain)
        yield { place: "upstream answer", text: tapeText(attempt.response, mask), isJson: true };
  }

  *#eventBatches(): Generator<readonly GenerationEvent[]> {
    const answering = this.#answering;
    if (answering?.isReadAgain === true) for (const { events } of answering.batches()) yield events;
    for (const events of this.#events.contents((_, events) => events).chunks) yield events;
  }

  /** The events that were kept, after those of a whole answer, which is read again. */
  #shownEvents(): TapeContents<TimedEvents> {
    const { mask } = this;
    const kept = mask.value(this.#events.contents((ms, events) => ({ ms: rounded(ms), events })));
    const read = this.#answering?.events();
    if (!read) return kept;
    return { ...read, chunks: [...mask.value(read.chunks), ...kept.chunks] };
  }
}

const decoder = new TextDecoder();

const ignored: ReceivedAnswer = { answered() {}, received() {}, ended() {}, failed() {}, abandoned() {} };

/** Of the stack of a failure, in bytes. */
const maxCauseBytes = 16 * 1024;

/** The stack of an error, which names the place in a user's program; a text as it is. */
function causeText(cause: unknown): string {
  if (typeof cause === "string") return cause;
  return loggedError(cause);
}

function headerBytes(headers: readonly Header[]): number {
  return headers.reduce((sum, [name, value]) => sum + textBytes(name) + textBytes(value), 0);
}

/** A longer body is not parsed again for the name of its model. In bytes. */
const maxParsedLength = 256 * 1024;

/** Bytes of a text in UTF-8 that may be truncated. */
interface KeptBytes {
  readonly bytes: Uint8Array;
  /** The number of bytes that were truncated. */
  readonly leftOut: number;
}

function textOfBytes({ bytes, leftOut }: KeptBytes): KeptText {
  return { text: decoder.decode(bytes), ...(leftOut > 0 && { left_out: leftOut }) };
}

function textOfRequest(understood: { readonly request: object } | KeptText): KeptText {
  return "request" in understood ? { text: JSON.stringify(understood.request) } : understood;
}

function requestOf(understood: { readonly request: object } | KeptText): object {
  return "request" in understood ? understood.request : (JSON.parse(understood.text) as object);
}

/** The model name in a request that was refused before it was read. */
function modelIn(body: KeptBytes | undefined): string | undefined {
  if (!body || body.leftOut > 0 || body.bytes.length > maxParsedLength) return undefined;
  try {
    const value: unknown = JSON.parse(decoder.decode(body.bytes));
    return isObject(value) && typeof value["model"] === "string" ? value["model"] : undefined;
  } catch {
    return undefined;
  }
}

/** The texts of an answer's events, each in one text: a stream has them in parts. */
class AnswerTexts {
  readonly #texts = new Map<string, { readonly place: SearchedPlace; text: string }>();

  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  add(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      if (event.type === "text-delta" || event.type === "refusal-delta") this.#add("answer", event.choice, event.text);
      else if (event.type === "reasoning-delta") this.#add("reasoning", event.choice, event.text);
      else if (event.type === "tool-call-start")
        this.#add("tool call", `${event.choice} ${event.index}`, `${event.name} `);
      else if (event.type === "tool-call-delta")
        this.#add("tool call", `${event.choice} ${event.index}`, event.arguments);
    }
  }

  *texts(mask: Mask): Generator<SearchableText> {
    for (const { place, text } of this.#texts.values())
      yield { place, text: mask.text(text), isJson: place === "tool call" };
  }

  #add(place: SearchedPlace, part: number | string, text: string): void {
    const key = `${place} ${part}`;
    const known = this.#texts.get(key);
    if (known) known.text += text;
    else this.#texts.set(key, { place, text });
  }
}

function tapeText(tape: TextTape, mask: Mask): string {
  const { chunks } = maskedTape(tape.contents(), mask).tape;
  return chunks.map(({ text }) => text).join("");
}
