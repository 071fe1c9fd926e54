import { cacheMissWords } from "../../generation/cache-miss.ts";
import type { GenerationEvent } from "../../generation/event.ts";
import type { Inspection, InspectedPrompt, ReceivedAnswer, SentRequest } from "../../generation/inspection.ts";
import { isObject } from "../../generation/json.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type {
  Header,
  InspectedOutcome,
  InspectedRequest,
  KeptText,
  RequestSummary,
  TimedEvents,
} from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";
import { eventBytes } from "./event-bytes.ts";
import { EventPage } from "./event-page.ts";
import { keptText } from "./kept-text.ts";
import { maskedHeaders } from "./masked-headers.ts";
import { maskedTape } from "./masked-tape.ts";
import type { PackedTexts } from "./packed-texts.ts";
import { PagedTape } from "./paged-tape.ts";
import type { RequestFacts } from "./request-facts.ts";
import { rounded } from "./rounded.ts";
import { textBytes } from "./text-bytes.ts";
import { TextTape } from "./text-tape.ts";
import { WatchedAttempt } from "./watched-attempt.ts";

export interface WatchedRequestOptions {
  readonly id: string;
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly Header[];
  readonly mask: Mask;
  /** Of each of its texts and lists, in bytes. */
  readonly limit: number;
  readonly packedTexts: PackedTexts;
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
  /** What is known of it while it is open, and what was known at its end: the facts hold on to more than is counted. */
  #story: { readonly facts: RequestFacts } | { readonly summary: RequestSummary };
  #body: KeptText | undefined;
  #understood: KeptText | undefined;
  readonly #prompts: InspectedPrompt[] = [];
  #promptBytes = 0;
  readonly #written = new Map<number, TextTape>();
  readonly #events: PagedTape<readonly GenerationEvent[], TimedEvents>;
  readonly #attempts: WatchedAttempt[] = [];
  #answerHeaders: Readonly<Record<string, string>> = {};
  readonly #answer: TextTape;

  constructor(options: WatchedRequestOptions, facts: RequestFacts) {
    const { headers, limit, packedTexts, grow } = options;
    this.#options = options;
    this.#story = { facts };
    this.#receivedAt = facts.receivedAt;
    this.#events = new PagedTape(limit, () => new EventPage(packedTexts));
    this.#answer = new TextTape(limit, packedTexts);
    let bytes = perRequest;
    for (const [name, value] of headers) bytes += textBytes(name) + textBytes(value);
    grow(bytes);
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
    this.#options.grow(this.#events.add(this.#now(), events, eventBytes(events)));
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
    const { limit, packedTexts, grow } = this.#options;
    let tape = this.#written.get(choice);
    if (!tape) {
      if (this.#written.size >= mostChoices) return;
      this.#written.set(choice, (tape = new TextTape(limit / mostChoices, packedTexts)));
    }
    grow(tape.add(this.#now(), text));
  }

  sent(request: SentRequest): ReceivedAnswer {
    const { limit, packedTexts, mask, grow } = this.#options;
    const count = this.#attempts.length;
    // Each has half the room of the one before: all of them together have that of two.
    if (count >= mostAttempts) return unheard;
    const attempt = new WatchedAttempt(request, {
      limit: limit / 2 ** count,
      packedTexts,
      mask,
      now: () => this.#now(),
      grow,
    });
    this.#attempts.push(attempt);
    return attempt;
  }

  /** Status and headers of the answer go out. */
  opens(headers: Readonly<Record<string, string>>): void {
    const { grow, changed } = this.#options;
    this.#answerHeaders = headers;
    let bytes = 0;
    for (const name in headers) bytes += textBytes(name) + textBytes(headers[name] ?? "");
    grow(bytes);
    changed();
  }

  /** A piece of the answer's body goes out. */
  tells(text: string): void {
    if (text === "") return;
    this.#options.grow(this.#answer.add(this.#now(), text));
  }

  ended(outcome: InspectedOutcome, facts: RequestFacts): void {
    this.#story = { summary: this.#summaryOf(outcome, facts) };
    this.#events.end();
    for (const tape of this.#written.values()) tape.end();
    for (const attempt of this.#attempts) attempt.end();
    this.#answer.end();
    this.#options.changed();
  }

  /** Nobody can look at it any more. */
  letGo(): void {
    this.#events.letGo();
    for (const tape of this.#written.values()) tape.letGo();
    for (const attempt of this.#attempts) attempt.letGo();
    this.#answer.letGo();
  }

  summary(): RequestSummary {
    return "summary" in this.#story ? this.#story.summary : this.#summaryOf("open", this.#story.facts);
  }

  shown(): InspectedRequest {
    const { headers, mask } = this.#options;
    const text = (kept: KeptText): KeptText => ({ ...kept, text: mask.text(kept.text) });
    return {
      ...this.summary(),
      request: {
        headers: maskedHeaders(headers, mask),
        ...(this.#body && { body: text(this.#body) }),
        ...(this.#understood && { understood: text(this.#understood) }),
      },
      prompts: this.#prompts.map((prompt) => {
        const shown = mask.text(prompt.text);
        // Where something is masked, places in the text are not what they were.
        return shown === prompt.text ? prompt : { text: shown, lengths: [], control: [], quotes: [] };
      }),
      written: [...this.#written].map(([choice, tape]) => ({ choice, text: maskedTape(tape.contents(), mask).tape })),
      events: mask.value(this.#events.contents()),
      response: {
        headers: maskedHeaders(Object.entries(this.#answerHeaders), mask),
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

const decoder = new TextDecoder();

const unheard: ReceivedAnswer = { answered() {}, received() {}, failed() {} };

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
