import { describeCacheMiss } from "../../../wire/core/cache-miss.ts";
import type { Timings } from "../../../wire/core/events.ts";
import type {
  InspectedOutcome,
  InspectedRequest,
  RequestPhases,
  RequestSummary,
} from "../../../judge/inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";
import type { AskedFacts, MeasuredAnswer, SentFacts } from "../request-facts.ts";
import type { SearchableText } from "./search.ts";
import { addLine, joinLine, withLine } from "./conversation.ts";
import type { KnownConversations, LineFacts, RequestLine } from "./conversation.ts";

/** What the list of requests shows of a request: its `RequestRecord`. */
export interface RequestFacts {
  readonly asked: Readonly<AskedFacts>;
  readonly sent: Readonly<SentFacts>;
  readonly answer: Readonly<MeasuredAnswer>;
  /** In nanodollars. */
  readonly cost?: number | undefined;
}

/** The facts of an answer that are kept as they are. */
type SameFacts =
  | "firstMs"
  | "lastMs"
  | "timings"
  | "cachedTokens"
  | "cacheMiss"
  | "attempts"
  | "repairs"
  | "turnStateCounts";

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

/** What is kept of a request until someone looks at it: copied from its facts, of which an error or an engine would hold much memory. */
interface KeptFacts
  extends
    Pick<AskedFacts, "model" | "stream" | "route">,
    Pick<SentFacts, "status" | "lost" | "resumes">,
    Pick<MeasuredAnswer, SameFacts> {
  readonly outcome: RequestSummary["outcome"];
  readonly ms: number;
  readonly key: string | undefined;
  readonly api: string | undefined;
  readonly engine: string | undefined;
  readonly engineModel: string | undefined;
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  readonly cost: number | undefined;
  /** "" if no choice has finished. */
  readonly finish: string;
  /** Masked, and limited in length. */
  readonly calls: readonly string[];
  /** Masked. */
  readonly error: string | undefined;
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
  protected readonly receivedAt: number;
  #state: { readonly open: RequestFacts } | { readonly ended: KeptFacts };
  /** The summary of a request that has ended, from when someone looks. */
  #summary: RequestSummary | undefined;
  #facts: LineFacts | undefined;
  #line: RequestLine | undefined;
  protected mask: Mask;
  /** Called when the summary has changed. */
  protected changed: () => void;

  constructor({ id, number, method, path, facts, mask, changed }: ListedRequestOptions) {
    this.id = id;
    this.#number = number;
    this.#method = method;
    this.#path = path;
    this.receivedAt = facts.asked.receivedAt;
    this.#state = { open: facts };
    this.mask = mask;
    this.changed = changed;
  }

  /** Hides a secret of this request. */
  hide(secret: string): void {
    this.mask = this.mask.with(secret);
  }

  /** The size at the beginning, in bytes. */
  get initialBytes(): number {
    return bytesPerRequest;
  }

  ended(outcome: InspectedOutcome, facts: RequestFacts): void {
    this.#state = { ended: this.#keptOf(outcome, facts) };
    this.changed();
    // Thousands of requests are kept: what this function refers to would take memory with each of them.
    this.changed = nothing;
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

  /** What is not kept of the request. */
  protected missing(): Pick<RequestSummary, "brief" | "cut"> {
    return { brief: true };
  }

  #ownSummary(): RequestSummary {
    const state = this.#state;
    if ("open" in state) return this.#summaryOf(this.#keptOf("open", state.open));
    return (this.#summary ??= this.#summaryOf(state.ended));
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
    return "open" in this.#state;
  }

  /** Everything that is kept. */
  shown(): InspectedRequest {
    const nothing = { chunks: [] };
    const response = { headers: [], body: nothing };
    return {
      ...this.summary(),
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
    return performance.now() - this.receivedAt;
  }

  #keptOf(outcome: RequestSummary["outcome"], facts: RequestFacts): KeptFacts {
    const { mask } = this;
    const { asked, sent, answer } = facts;
    const { api, served } = asked;
    const { usage, end, calledTools } = answer;
    const error = end && "failure" in end ? end.failure.message : sent.refusal?.message;
    return {
      outcome,
      ms: this.now(),
      key: asked.keyName,
      api: api?.name,
      model: asked.model,
      route: asked.route,
      engine: served?.from.name,
      engineModel: served?.engineModel,
      stream: asked.stream,
      status: sent.status,
      firstMs: answer.firstMs,
      lastMs: answer.lastMs,
      timings: answer.timings,
      promptTokens: usage?.promptTokens,
      completionTokens: usage?.completionTokens,
      cost: facts.cost,
      cachedTokens: answer.cachedTokens,
      cacheMiss: answer.cacheMiss,
      finish: finishOf(answer),
      calls: calledTools.length === 0 ? none : calledTools.map((name) => mask.text(name).slice(0, maxNameLength)),
      attempts: answer.attempts,
      repairs: answer.repairs,
      turnStateCounts: answer.turnStateCounts,
      lost: sent.lost,
      resumes: sent.resumes,
      error: error === undefined ? undefined : mask.text(error),
    };
  }

  #summaryOf(kept: KeptFacts): RequestSummary {
    const { mask } = this;
    const { key, api, model = this.namedModel(), engine, engineModel, stream, status, firstMs, lastMs } = kept;
    const { timings, promptTokens, completionTokens, cachedTokens, cacheMiss, calls, attempts, repairs, error } = kept;
    const { finish, lost, resumes } = kept;
    const generationMs = firstMs === undefined || lastMs === undefined ? 0 : lastMs - firstMs;
    return {
      id: this.id,
      number: this.#number,
      at: this.#at,
      method: this.#method,
      path: this.#path,
      outcome: kept.outcome,
      ms: rounded(kept.ms),
      key,
      api,
      ...(model !== undefined && { model: mask.text(model) }),
      ...(kept.route && { route: kept.route }),
      ...(engine !== undefined && { engine: mask.text(engine) }),
      ...(engineModel !== undefined && { engine_model: mask.text(engineModel) }),
      stream,
      status,
      ...(firstMs !== undefined && { first_ms: rounded(firstMs) }),
      phases: timings && phasesOf(timings),
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      ...(kept.cost !== undefined && { cost: kept.cost / 1e9 }),
      ...(completionTokens !== undefined &&
        completionTokens > 1 &&
        generationMs >= minGenerationMs && {
          tokens_per_second: rounded(((completionTokens - 1) * 1000) / generationMs),
        }),
      ...(calls.length > 0 && { calls }),
      cached_tokens: cachedTokens,
      ...(finish !== "" && { finish }),
      ...(attempts > 0 && { attempts }),
      ...(repairs.size > 0 && { repairs: Object.fromEntries(repairs) }),
      turn_states: kept.turnStateCounts,
      ...(lost > 0 && { lost }),
      ...(resumes > 0 && { resumes }),
      error,
      ...this.missing(),
      ...(cacheMiss && { cache_miss: mask.value({ ...cacheMiss, says: describeCacheMiss(cacheMiss) }) }),
    };
  }
}

const none: readonly string[] = [];

function nothing(): void {}

/** The finish reasons of the choices, each once. */
function finishOf({ finishes, looped }: Readonly<MeasuredAnswer>): string {
  const [first = "", ...others] = finishes;
  const reasons = others.length === 0 ? first : [...new Set(finishes)].join(", ");
  return looped ? `${reasons} (the answer repeated itself)` : reasons;
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
