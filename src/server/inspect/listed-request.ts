import { describeCacheMiss } from "../../core/cache-miss.ts";
import type { CacheMiss } from "../../core/cache-miss.ts";
import type { FinishReason, GenerationEnd, GenerationFailure, Timings, Usage } from "../../core/events.ts";
import type {
  InspectedOutcome,
  InspectedRequest,
  RequestPhases,
  RequestSummary,
} from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";
import type { ServedModel } from "../model-directory.ts";
import type { SearchableText } from "./search.ts";
import { addLine, joinLine, withLine } from "./conversation.ts";
import type { KnownConversations, LineFacts, RequestEntry, RequestLine } from "./conversation.ts";

/** What the list of requests shows of a request. Its `RequestRecord` has these members. */
export interface RequestFacts {
  readonly api: { readonly name: string } | undefined;
  readonly model: string | undefined;
  /** The model that was asked. */
  readonly served: ServedModel | undefined;
  readonly keyName: string | undefined;
  readonly stream: boolean | undefined;
  readonly status: number | undefined;
  readonly firstMs: number | undefined;
  readonly lastMs: number | undefined;
  readonly usage: Usage | undefined;
  readonly timings: Timings | undefined;
  readonly cachedTokens: number | undefined;
  readonly cacheMiss: CacheMiss | undefined;
  readonly finishes: readonly FinishReason[];
  readonly looped: boolean;
  readonly calledTools: readonly string[];
  readonly attempts: number;
  readonly repairs: ReadonlyMap<string, number>;
  readonly lost: number;
  readonly resumes: number;
  readonly end: GenerationEnd | undefined;
  readonly refusal: GenerationFailure | undefined;
  readonly receivedAt: number;
}

export interface ListedRequestOptions {
  readonly id: string;
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly facts: RequestFacts;
  readonly mask: Mask;
  /** Called when the summary has changed. */
  readonly changed: () => void;
}

/** The size of a request without texts, in bytes. */
const bytesPerRequest = 2048;
/** A shorter generation has no rate, in milliseconds. */
const minGenerationMs = 20;
/** Of a tool, in characters. */
const maxNameLength = 64;

/** What the list of requests shows of one request. */
export class ListedRequest {
  readonly id: string;
  readonly #number: number;
  readonly #method: string;
  readonly #path: string;
  readonly #at = Date.now();
  readonly #receivedAt: number;
  /** At its end, the summary replaces the record, which would take more memory than is counted. */
  #state: { readonly facts: RequestFacts } | { readonly summary: RequestSummary };
  #facts: LineFacts | undefined;
  #line: RequestLine | undefined;
  protected readonly mask: Mask;
  /** Called when the summary has changed. */
  protected readonly changed: () => void;

  constructor({ id, number, method, path, facts, mask, changed }: ListedRequestOptions) {
    this.id = id;
    this.#number = number;
    this.#method = method;
    this.#path = path;
    this.#receivedAt = facts.receivedAt;
    this.#state = { facts };
    this.mask = mask;
    this.changed = changed;
  }

  /** The size at the beginning, in bytes. */
  get initialBytes(): number {
    return bytesPerRequest;
  }

  ended(outcome: InspectedOutcome, facts: RequestFacts): void {
    this.#state = { summary: this.#summaryOf(outcome, facts) };
    this.changed();
  }

  summary(): RequestSummary {
    const summary = this.#ownSummary();
    return this.#line ? withLine(summary, this.#line) : summary;
  }

  /** Finds the conversation of the request once its messages are known. Called in the order of arrival, and only when someone looks. */
  join(known: KnownConversations): void {
    if (this.#line) addLine(this.#line, known);
    else {
      const facts = this.#knownFacts();
      if (facts) this.#line = joinLine(this.id, facts, known);
    }
  }

  /** For another process, which finds the conversations of the requests of all. */
  entry(): RequestEntry {
    const facts = this.#knownFacts();
    return { summary: this.#ownSummary(), ...(facts && { facts }) };
  }

  #ownSummary(): RequestSummary {
    return "summary" in this.#state ? this.#state.summary : this.#summaryOf("open", this.#state.facts);
  }

  #knownFacts(): LineFacts | undefined {
    return (this.#facts ??= this.lineFacts());
  }

  /** undefined: the messages are not known. */
  protected lineFacts(): LineFacts | undefined {
    return undefined;
  }

  /** The texts for a search, without secrets. */
  *texts(): Generator<SearchableText | undefined, void> {
    const { id, path, model, engine_model: engineModel, key, error, calls = [], cache_miss: miss } = this.summary();
    const line = [id, path, model, engineModel, key, error, ...calls, miss?.says];
    yield { place: "line", text: line.filter((text) => text !== undefined).join("\n") };
  }

  protected get isOpen(): boolean {
    return "facts" in this.#state;
  }

  /** Everything that is kept. */
  shown(): InspectedRequest {
    const nothing = { chunks: [] };
    const response = { headers: [], body: nothing };
    return {
      ...this.summary(),
      brief: true,
      request: { headers: [] },
      prompts: [],
      written: [],
      events: nothing,
      response,
      asked: [],
    };
  }

  /** The name of the model, if the request was refused before it was read. */
  protected namedModel(): string | undefined {
    return undefined;
  }

  /** Milliseconds since the request was received. */
  protected now(): number {
    return performance.now() - this.#receivedAt;
  }

  #summaryOf(outcome: InspectedOutcome, facts: RequestFacts): RequestSummary {
    const { id, mask } = this;
    const { api, model = this.namedModel(), keyName, stream, status, firstMs, lastMs } = facts;
    const { usage, timings, cachedTokens, cacheMiss, attempts, repairs, end, refusal, calledTools, served } = facts;
    const { lost, resumes } = facts;
    const generationMs = firstMs === undefined || lastMs === undefined ? 0 : lastMs - firstMs;
    const error = end && "failure" in end ? end.failure.message : refusal?.message;
    const finish = [...new Set(facts.finishes)].join(", ") + (facts.looped ? " (the answer repeated itself)" : "");
    return {
      id,
      number: this.#number,
      at: this.#at,
      method: this.#method,
      path: this.#path,
      outcome,
      ms: rounded(this.now()),
      ...(keyName !== undefined && { key: keyName }),
      ...(api && { api: api.name }),
      ...(model !== undefined && { model: mask.text(model) }),
      ...(served && { engine: mask.text(served.from.name), engine_model: mask.text(served.engineModel) }),
      ...(stream !== undefined && { stream }),
      ...(status !== undefined && { status }),
      ...(firstMs !== undefined && { first_ms: rounded(firstMs) }),
      ...(timings && { phases: phasesOf(timings) }),
      ...(usage && { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens }),
      ...(usage &&
        usage.completionTokens > 1 &&
        generationMs >= minGenerationMs && {
          tokens_per_second: rounded(((usage.completionTokens - 1) * 1000) / generationMs),
        }),
      ...(calledTools.length > 0 && { calls: calledTools.map((name) => mask.text(name).slice(0, maxNameLength)) }),
      ...(cachedTokens !== undefined && { cached_tokens: cachedTokens }),
      ...(finish !== "" && { finish }),
      ...(attempts > 0 && { attempts }),
      ...(repairs.size > 0 && { repairs: Object.fromEntries(repairs) }),
      ...(lost > 0 && { lost }),
      ...(resumes > 0 && { resumes }),
      ...(error !== undefined && { error: mask.text(error) }),
      ...(cacheMiss && { cache_miss: mask.value({ ...cacheMiss, says: describeCacheMiss(cacheMiss) }) }),
    };
  }
}

function phasesOf({ preparingMs = 0, queuedMs, promptMs, generationMs }: Timings): RequestPhases {
  return {
    preparing: rounded(preparingMs),
    queue: rounded(queuedMs),
    prefill: rounded(promptMs),
    generation: rounded(generationMs),
  };
}

/** Milliseconds with two decimals. */
export function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
