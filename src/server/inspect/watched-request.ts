import { sentenceOfRepair } from "../../apis/tolerant/repairs.ts";
import { cacheMissWords } from "../../core/cache-miss.ts";
import type { CacheMiss } from "../../core/cache-miss.ts";
import type { FailureKind, FinishReason, GenerationEnd, GenerationEvent, Usage } from "../../core/events.ts";
import type { InspectedPrompt, Inspection, ReceivedAnswer, SentRequest } from "../../core/inspection.ts";
import { isObject } from "../../core/json.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type {
  AskedServer,
  Header,
  InspectedOutcome,
  InspectedRequest,
  KeptText,
  RequestSummary,
  ShownRepair,
} from "../../inspect/inspected-request.ts";
import { keptText, maskedHeaders, maskedTape, Tape, textBytes, TextTape } from "./recorded-text.ts";
import type { Mask } from "../mask.ts";

export interface WatchedRequestOptions {
  readonly id: string;
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly Header[];
  readonly facts: RequestFacts;
  readonly mask: Mask;
  /** Of each of its texts and lists, in bytes. */
  readonly limit: number;
  /** It takes so many bytes more. */
  readonly grow: (bytes: number) => void;
  /** What a list shows of it has changed. */
  readonly changed: () => void;
}

/** What a request takes however little was said, in bytes. */
const perRequest = 2048;

/** One request that is watched: what came, what was made of it, and what went out. Copies are bounded. */
export class WatchedRequest implements Inspection {
  readonly #options: WatchedRequestOptions;
  readonly #at = Date.now();
  readonly #receivedAt: number;
  readonly #headers: readonly Header[];
  /** What is known of it while it is open, and what was known at its end: what it holds then would take more room than is counted. */
  #story: { readonly facts: RequestFacts } | { readonly summary: RequestSummary };
  #body: KeptText | undefined;
  #understood: KeptText | undefined;
  readonly #prompts: InspectedPrompt[] = [];
  #promptBytes = 0;
  readonly #written = new Map<number, TextTape>();
  readonly #events: Tape<readonly GenerationEvent[]>;
  readonly #attempts: WatchedAttempt[] = [];
  #answerHeaders: readonly Header[] = [];
  readonly #answer: TextTape;

  constructor(options: WatchedRequestOptions) {
    const { facts, headers, limit, grow } = options;
    this.#options = options;
    this.#story = { facts };
    this.#receivedAt = facts.receivedAt;
    this.#headers = headers;
    this.#events = new Tape(limit, eventMeasures);
    this.#answer = new TextTape(limit);
    grow(perRequest + this.#headers.reduce((sum, [name, value]) => sum + textBytes(name) + textBytes(value), 0));
  }

  get id(): string {
    return this.#options.id;
  }

  /** The body came. */
  came(bytes: Uint8Array): void {
    const { limit, grow } = this.#options;
    const most = Math.floor(limit / 2);
    const text = decoder.decode(bytes.subarray(0, most));
    this.#body = bytes.length > most ? { text, left_out: bytes.length - most } : { text };
    grow(textBytes(text));
  }

  understood(request: GenerationRequest): void {
    // The body is there already. What has no room as a body has none as what was made of it.
    if (this.#body?.left_out !== undefined) return;
    const { passthrough: _, ...own } = request;
    this.#understood = this.#kept(JSON.stringify(own));
  }

  events(events: readonly GenerationEvent[]): void {
    this.#options.grow(this.#events.add(this.#now(), events));
  }

  prompt(prompt: InspectedPrompt): void {
    const { limit, grow } = this.#options;
    const { text, lengths, control, quotes } = prompt;
    const bytes = textBytes(text) + perNumber * (lengths.length + control.length) + perQuote * quotes.length;
    const room = limit - this.#promptBytes;
    if (bytes <= room) this.#prompts.push(prompt);
    // Its text is worth more than the places in it. Of several prompts, those that have room.
    else if (this.#prompts.length === 0)
      this.#prompts.push({ text: keptText(text, room).text, lengths: [], control: [], quotes: [] });
    else return;
    const taken = Math.min(bytes, room);
    this.#promptBytes += taken;
    grow(taken);
  }

  written(choice: number, text: string): void {
    const { limit, grow } = this.#options;
    let tape = this.#written.get(choice);
    if (!tape) {
      if (this.#written.size >= mostChoices) return;
      this.#written.set(choice, (tape = new TextTape(limit / mostChoices)));
    }
    grow(tape.add(this.#now(), text));
  }

  sent(request: SentRequest): ReceivedAnswer {
    const { limit, mask, grow } = this.#options;
    const count = this.#attempts.length;
    // Each has half the room of the one before: all of them together have that of two.
    if (count >= mostAttempts) return unheard;
    const attempt = new WatchedAttempt(request, { limit: limit / 2 ** count, mask, now: () => this.#now(), grow });
    this.#attempts.push(attempt);
    return attempt;
  }

  /** Status and headers of the answer go out. */
  opens(headers: Readonly<Record<string, string>>): void {
    const { grow, changed } = this.#options;
    this.#answerHeaders = Object.entries(headers);
    grow(this.#answerHeaders.reduce((sum, [name, value]) => sum + textBytes(name) + textBytes(value), 0));
    changed();
  }

  /** A piece of the answer's body goes out. */
  tells(text: string): void {
    if (text === "") return;
    this.#options.grow(this.#answer.add(this.#now(), text));
  }

  ended(outcome: InspectedOutcome, facts: RequestFacts): void {
    this.#story = { summary: this.#summaryOf(outcome, facts) };
    this.#options.changed();
  }

  summary(): RequestSummary {
    return "summary" in this.#story ? this.#story.summary : this.#summaryOf("open", this.#story.facts);
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
        // Where something is masked, places in the text are not what they were.
        return shown === prompt.text ? prompt : { text: shown, lengths: [], control: [], quotes: [] };
      }),
      written: [...this.#written].map(([choice, tape]) => ({ choice, text: maskedTape(tape.contents(), mask).tape })),
      events: mask.value(this.#events.contents((ms, events) => ({ ms: rounded(ms), events }))),
      response: {
        headers: maskedHeaders(this.#answerHeaders, mask),
        body: maskedTape(this.#answer.contents(), mask).tape,
      },
      asked: this.#attempts.map((attempt) => attempt.shown()),
    };
  }

  #kept(text: string): KeptText {
    const { limit, grow } = this.#options;
    const kept = keptText(text, limit);
    grow(textBytes(kept.text));
    return kept;
  }

  #summaryOf(outcome: InspectedOutcome, facts: RequestFacts): RequestSummary {
    const { id, number, method, path, mask } = this.#options;
    const {
      api,
      model = modelIn(this.#body),
      keyName,
      stream,
      status,
      firstMs,
      usage,
      cachedTokens,
      attempts,
      repairs,
    } = facts;
    const { cacheMiss } = facts;
    const error = errorOf(facts);
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
      ...(cacheMiss && { cache_miss: mask.value({ ...cacheMiss, says: cacheMissWords(cacheMiss) }) }),
    };
  }

  #now(): number {
    return performance.now() - this.#receivedAt;
  }
}

/** So many choices share the room of one text, and so many attempts are kept. */
const mostChoices = 16;
const mostAttempts = 8;
/** What a number and a quote take in a list, in bytes. */
const perNumber = 8;
const perQuote = 96;

const eventMeasures = { bytes: eventBytes, characters: (): number => 0 };

const decoder = new TextDecoder();

const unheard: ReceivedAnswer = { answered() {}, received() {}, failed() {} };

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** A longer body is not read again only to tell which model it names. In characters. */
const mostParsed = 256 * 1024;

/** The name in a request that was refused before it was read. */
function modelIn(body: KeptText | undefined): string | undefined {
  if (!body || body.left_out !== undefined || body.text.length > mostParsed) return undefined;
  try {
    const value: unknown = JSON.parse(body.text);
    return isObject(value) && typeof value["model"] === "string" ? value["model"] : undefined;
  } catch {
    return undefined;
  }
}

function errorOf({ end, refusal }: RequestFacts): string | undefined {
  return end && "failure" in end ? end.failure.message : refusal;
}

export interface WatchedAttemptOptions {
  /** Of each text, in bytes. */
  readonly limit: number;
  readonly mask: Mask;
  /** Milliseconds since the request arrived. */
  readonly now: () => number;
  /** It takes so many bytes more. */
  readonly grow: (bytes: number) => void;
}

/** One request to another server, and what came back. */
export class WatchedAttempt implements ReceivedAnswer {
  readonly #options: WatchedAttemptOptions;
  readonly #url: string;
  readonly #ms: number;
  readonly #headers: readonly Header[];
  readonly #body: KeptText;
  readonly #repairs: SentRequest["repairs"];
  readonly #answer: TextTape;
  #status: number | undefined;
  #answerHeaders: readonly Header[] = [];
  #error: string | undefined;

  constructor({ url, headers, body, repairs }: SentRequest, options: WatchedAttemptOptions) {
    const { limit, now, grow } = options;
    this.#options = options;
    this.#url = url;
    this.#ms = now();
    this.#headers = Object.entries(headers);
    this.#body = keptText(body, limit);
    this.#repairs = repairs;
    this.#answer = new TextTape(limit);
    grow(textBytes(this.#body.text) + headerBytes(this.#headers));
  }

  answered(status: number, headers: Parameters<ReceivedAnswer["answered"]>[1]): void {
    this.#status = status;
    this.#answerHeaders = Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): Header => [name, one]),
    );
    this.#options.grow(headerBytes(this.#answerHeaders));
  }

  received(text: string): void {
    const { now, grow } = this.#options;
    grow(this.#answer.add(now(), text));
  }

  failed(message: string): void {
    this.#error = message;
  }

  shown(): AskedServer {
    const { mask } = this.#options;
    const { tape, isChanged } = maskedTape(this.#answer.contents(), mask);
    return {
      url: mask.text(this.#url),
      ms: Math.round(this.#ms * 100) / 100,
      headers: maskedHeaders(this.#headers, mask),
      body: { ...this.#body, text: mask.text(this.#body.text) },
      ...(this.#status !== undefined && { status: this.#status }),
      response_headers: maskedHeaders(this.#answerHeaders, mask),
      response: tape,
      repairs: this.#repairs.map(({ id, at }): ShownRepair => {
        const sentence = sentenceOfRepair(id) ?? id;
        return isChanged ? { id, sentence } : { id, sentence, at };
      }),
      ...(this.#error !== undefined && { error: mask.text(this.#error) }),
    };
  }
}

function headerBytes(headers: readonly Header[]): number {
  return headers.reduce((sum, [name, value]) => sum + textBytes(name) + textBytes(value), 0);
}

/** What a batch, an event beside its text, and an alternative of a token take, in bytes: about what V8 needs, and not less. */
const perBatch = 48;
const perEvent = 80;
const perAlternative = 112;
const perUsage = 400;

/** An estimate of what a batch of events takes in memory, in bytes. */
export function eventBytes(events: readonly GenerationEvent[]): number {
  let sum = perBatch;
  for (const event of events) sum += perEvent + bytesBeside(event);
  return sum;
}

function bytesBeside(event: GenerationEvent): number {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
    case "refusal-delta":
      return 2 * event.text.length + (event.logprobs ? logprobBytes(event.logprobs) : 0);
    case "tool-call-delta":
      return 2 * event.arguments.length;
    case "finish":
    case "progress":
      return perEvent;
    case "usage":
      return perUsage;
    case "tokens":
      return event.tokens.length * 8;
    // These come once or seldom, and may hold anything.
    default:
      return JSON.stringify(event).length * 4;
  }
}

function logprobBytes(logprobs: readonly { readonly top: readonly unknown[] }[]): number {
  return logprobs.reduce((sum, { top }) => sum + (1 + top.length) * perAlternative, 0);
}

/** What a list of requests shows of one; the record of the request has it. */
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
  readonly refusal: string | undefined;
  readonly refusalKind: FailureKind | undefined;
  readonly receivedAt: number;
}
