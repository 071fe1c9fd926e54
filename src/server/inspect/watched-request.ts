import { isAdaptation } from "../../apis/adapt/adaptation-names.ts";
import { sentenceOfRepair } from "../../apis/tolerant/repairs.ts";
import { describeCacheMiss } from "../../core/cache-miss.ts";
import type { CacheMiss } from "../../core/cache-miss.ts";
import type { FinishReason, GenerationEnd, GenerationEvent, GenerationFailure, Usage } from "../../core/events.ts";
import type { Inspection, InspectedPrompt, ReceivedAnswer, SentRequest } from "../../core/inspection.ts";
import { isObject } from "../../core/json.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type {
  InspectedAttempt,
  Header,
  InspectedOutcome,
  InspectedRequest,
  KeptText,
  RequestSummary,
  ShownRepair,
} from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";
import { keptText, maskedHeaders, maskedTape, Tape, textBytes, TextTape } from "./recorded-text.ts";

/** What the list of requests shows of a request. Its `RequestRecord` has these members. */
export interface RequestFacts {
  readonly api: { readonly name: string } | undefined;
  readonly model: string | undefined;
  readonly keyName: string | undefined;
  readonly stream: boolean | undefined;
  readonly status: number | undefined;
  readonly firstMs: number | undefined;
  readonly usage: Usage | undefined;
  readonly cachedTokens: number | undefined;
  readonly cacheMiss: CacheMiss | undefined;
  readonly finishes: readonly FinishReason[];
  readonly attempts: number;
  readonly repairs: ReadonlyMap<string, number>;
  readonly end: GenerationEnd | undefined;
  readonly refusal: GenerationFailure | undefined;
  readonly receivedAt: number;
}

export interface WatchedRequestOptions {
  readonly id: string;
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly Header[];
  readonly facts: RequestFacts;
  readonly mask: Mask;
  /** Of each text and list, in bytes. */
  readonly limit: number;
  /** Called when the request takes more memory, or less. */
  readonly grow: (bytes: number) => void;
  /** Called when the summary has changed. */
  readonly changed: () => void;
}

/** The size of a request without texts, in bytes. */
const bytesPerRequest = 2048;
/** The number of choices that share the limit of one text, and the number of attempts that are kept. */
const maxChoices = 16;
const maxAttempts = 8;
/** The size of a number and of a quote in a list, in bytes. */
const bytesPerNumber = 8;
const bytesPerQuote = 96;

/** One inspected request: what was received, how it was read, and what was sent. Copies are bounded. */
export class WatchedRequest implements Inspection {
  readonly #options: WatchedRequestOptions;
  readonly #at = Date.now();
  readonly #receivedAt: number;
  readonly #headers: readonly Header[];
  /** At its end, the summary replaces the record, which would take more memory than is counted. */
  #state: { readonly facts: RequestFacts } | { readonly summary: RequestSummary };
  #body: KeptText | undefined;
  #understood: KeptText | undefined;
  readonly #prompts: InspectedPrompt[] = [];
  #promptBytes = 0;
  readonly #written = new Map<number, TextTape>();
  readonly #events: Tape<readonly GenerationEvent[]>;
  readonly #attempts: WatchedAttempt[] = [];
  #responseHeaders: readonly Header[] = [];
  readonly #response: TextTape;

  constructor(options: WatchedRequestOptions) {
    const { facts, headers, limit, grow } = options;
    this.#options = options;
    this.#state = { facts };
    this.#receivedAt = facts.receivedAt;
    this.#headers = headers;
    this.#events = new Tape(limit, eventMeasures);
    this.#response = new TextTape(limit);
    grow(bytesPerRequest + headerBytes(headers));
  }

  get id(): string {
    return this.#options.id;
  }

  /** The request body, unless it is compressed. */
  body(bytes: Uint8Array): void {
    const { limit, grow } = this.#options;
    const maxLength = Math.floor(limit / 2);
    const text = decoder.decode(bytes.subarray(0, maxLength));
    this.#body = bytes.length > maxLength ? { text, left_out: bytes.length - maxLength } : { text };
    grow(textBytes(text));
  }

  parsedRequest(request: GenerationRequest): void {
    // A request whose body is too long is too long in this form, too.
    if (this.#body?.left_out !== undefined) return;
    const { limit, grow } = this.#options;
    const { passthrough: _, ...own } = request;
    this.#understood = keptText(JSON.stringify(own), limit);
    grow(textBytes(this.#understood.text));
  }

  events(events: readonly GenerationEvent[]): void {
    this.#options.grow(this.#events.add(this.#now(), events));
  }

  prompt(prompt: InspectedPrompt): void {
    const { limit, grow } = this.#options;
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
    grow(taken);
  }

  rawText(choice: number, text: string): void {
    const { limit, grow } = this.#options;
    let tape = this.#written.get(choice);
    if (!tape) {
      if (this.#written.size >= maxChoices) return;
      this.#written.set(choice, (tape = new TextTape(limit / maxChoices)));
    }
    grow(tape.add(this.#now(), text));
  }

  sent(request: SentRequest): ReceivedAnswer {
    const { limit, mask, grow } = this.#options;
    const count = this.#attempts.length;
    // Each attempt has half the limit of the one before: together, they take at most twice the limit.
    if (count >= maxAttempts) return ignored;
    const attempt = new WatchedAttempt(request, { limit: limit / 2 ** count, mask, now: () => this.#now(), grow });
    this.#attempts.push(attempt);
    return attempt;
  }

  responseHeaders(headers: Readonly<Record<string, string>>): void {
    const { grow, changed } = this.#options;
    this.#responseHeaders = Object.entries(headers);
    grow(headerBytes(this.#responseHeaders));
    changed();
  }

  /** A chunk of the response body. */
  responseText(text: string): void {
    if (text === "") return;
    this.#options.grow(this.#response.add(this.#now(), text));
  }

  ended(outcome: InspectedOutcome, facts: RequestFacts): void {
    this.#state = { summary: this.#summaryOf(outcome, facts) };
    this.#options.changed();
  }

  summary(): RequestSummary {
    return "summary" in this.#state ? this.#state.summary : this.#summaryOf("open", this.#state.facts);
  }

  shown(): InspectedRequest {
    const { mask } = this.#options;
    const text = (kept: KeptText): KeptText => ({ ...kept, text: mask.text(kept.text) });
    return {
      ...this.summary(),
      request: {
        headers: maskedHeaders(this.#headers, mask),
        ...(this.#body && { body: text(this.#body) }),
        ...(this.#understood && { understood: text(this.#understood) }),
      },
      prompts: this.#prompts.map((prompt) => {
        const shown = mask.text(prompt.text);
        // Masking moves the positions in a text.
        return shown === prompt.text ? prompt : { text: shown, lengths: [], control: [], quotes: [] };
      }),
      written: [...this.#written].map(([choice, tape]) => ({ choice, text: maskedTape(tape.contents(), mask).tape })),
      events: mask.value(this.#events.contents((ms, events) => ({ ms: rounded(ms), events }))),
      response: {
        headers: maskedHeaders(this.#responseHeaders, mask),
        body: maskedTape(this.#response.contents(), mask).tape,
      },
      asked: this.#attempts.map((attempt) => attempt.shown()),
    };
  }

  #summaryOf(outcome: InspectedOutcome, facts: RequestFacts): RequestSummary {
    const { id, number, method, path, mask } = this.#options;
    const { api, model = modelIn(this.#body), keyName, stream, status, firstMs } = facts;
    const { usage, cachedTokens, cacheMiss, attempts, repairs, end, refusal } = facts;
    const error = end && "failure" in end ? end.failure.message : refusal?.message;
    const finish = [...new Set(facts.finishes)].join(", ");
    return {
      id,
      number,
      at: this.#at,
      method,
      path,
      outcome,
      ms: rounded(this.#now()),
      ...(keyName !== undefined && { key: keyName }),
      ...(api && { api: api.name }),
      ...(model !== undefined && { model: mask.text(model) }),
      ...(stream !== undefined && { stream }),
      ...(status !== undefined && { status }),
      ...(firstMs !== undefined && { first_ms: rounded(firstMs) }),
      ...(usage && { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens }),
      ...(cachedTokens !== undefined && { cached_tokens: cachedTokens }),
      ...(finish !== "" && { finish }),
      ...(attempts > 0 && { attempts }),
      ...(repairs.size > 0 && { repairs: Object.fromEntries(repairs) }),
      ...(error !== undefined && { error: mask.text(error) }),
      ...(cacheMiss && { cache_miss: mask.value({ ...cacheMiss, says: describeCacheMiss(cacheMiss) }) }),
    };
  }

  #now(): number {
    return performance.now() - this.#receivedAt;
  }
}

const decoder = new TextDecoder();

const ignored: ReceivedAnswer = { answered() {}, received() {}, failed() {} };

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

function headerBytes(headers: readonly Header[]): number {
  return headers.reduce((sum, [name, value]) => sum + textBytes(name) + textBytes(value), 0);
}

/** A longer body is not parsed again for the name of its model. In characters. */
const maxParsedLength = 256 * 1024;

/** The model name in a request that was refused before it was read. */
function modelIn(body: KeptText | undefined): string | undefined {
  if (!body || body.left_out !== undefined || body.text.length > maxParsedLength) return undefined;
  try {
    const value: unknown = JSON.parse(body.text);
    return isObject(value) && typeof value["model"] === "string" ? value["model"] : undefined;
  } catch {
    return undefined;
  }
}

interface WatchedAttemptOptions {
  /** Of each text, in bytes. */
  readonly limit: number;
  readonly mask: Mask;
  /** Milliseconds since the request was received. */
  readonly now: () => number;
  readonly grow: (bytes: number) => void;
}

/** One request to another server, and its response. */
class WatchedAttempt implements ReceivedAnswer {
  readonly #options: WatchedAttemptOptions;
  readonly #url: string;
  readonly #ms: number;
  readonly #headers: readonly Header[];
  readonly #body: KeptText;
  readonly #adaptations: NonNullable<SentRequest["adaptations"]>;
  readonly #repairs: SentRequest["repairs"];
  readonly #response: TextTape;
  #status: number | undefined;
  #responseHeaders: readonly Header[] = [];
  #error: string | undefined;

  constructor({ url, headers, body, adaptations = [], repairs }: SentRequest, options: WatchedAttemptOptions) {
    const { limit, now, grow } = options;
    this.#options = options;
    this.#url = url;
    this.#ms = now();
    this.#headers = Object.entries(headers);
    this.#body = keptText(body, limit);
    this.#adaptations = adaptations;
    this.#repairs = repairs;
    this.#response = new TextTape(limit);
    grow(textBytes(this.#body.text) + headerBytes(this.#headers));
  }

  answered(status: number, headers: Parameters<ReceivedAnswer["answered"]>[1]): void {
    this.#status = status;
    this.#responseHeaders = Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): Header => [name, one]),
    );
    this.#options.grow(headerBytes(this.#responseHeaders));
  }

  received(text: string): void {
    const { now, grow } = this.#options;
    grow(this.#response.add(now(), text));
  }

  failed(message: string): void {
    this.#error = message;
  }

  shown(): InspectedAttempt {
    const { mask } = this.#options;
    const { tape, isChanged } = maskedTape(this.#response.contents(), mask);
    return {
      url: mask.text(this.#url),
      ms: rounded(this.#ms),
      headers: maskedHeaders(this.#headers, mask),
      body: { ...this.#body, text: mask.text(this.#body.text) },
      ...(this.#status !== undefined && { status: this.#status }),
      response_headers: maskedHeaders(this.#responseHeaders, mask),
      response: tape,
      adaptations: this.#adaptations.map(({ id, place }) => ({
        id,
        sentence: sentenceOfRepair(id) ?? id,
        ...(place !== undefined && { place: mask.text(place) }),
      })),
      // Adaptations have no place in the answer.
      repairs: this.#repairs
        .filter(({ id }) => !isAdaptation(id))
        .map(({ id, at }): ShownRepair => {
          const sentence = sentenceOfRepair(id) ?? id;
          return isChanged ? { id, sentence } : { id, sentence, at };
        }),
      ...(this.#error !== undefined && { error: mask.text(this.#error) }),
    };
  }
}

/** The sizes of a batch, an event without its text, an alternative token, and usage, in bytes: about what V8 needs, and not less. */
const bytesPerBatch = 48;
const bytesPerEvent = 80;
const bytesPerAlternative = 112;
const bytesPerUsage = 400;

const eventMeasures = { bytes: eventBytes, characters: (): number => 0 };

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
