import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type {
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  Timings,
  Usage,
} from "../../wire/core/events.ts";
import { type FallbackReason, upstreamRequestId } from "../../wire/core/failure.ts";
import type {
  AttemptObserver,
  GenerationObserver,
  ObservedAttempt,
  TurnStateCounts,
} from "../../wire/core/generation-observer.ts";
import type { Inspection } from "../../wire/core/inspection.ts";
import type { Price } from "./keys/prices.ts";
import type { ServedModel } from "./model-directory.ts";

/** An API, as metrics and traces name it. */
export interface ObservedApi {
  /** The port's name. */
  readonly name: string;
  /** `gen_ai.operation.name` of OpenTelemetry. */
  readonly operation: string;
}

/** What was asked. The stages of a request (handle.ts) and its endpoint write it. */
export interface AskedFacts {
  /** When the request was received, by `performance.now`. */
  readonly receivedAt: number;
  /** Absent for paths without metrics. */
  api?: ObservedApi;
  /** As the client named it. */
  model?: string | undefined;
  /** The model that is asked; absent if it does not exist. */
  served?: ServedModel;
  /** The rule of the configuration that chose this model, and its name of the model; absent: the client did. */
  route?: { readonly rule: string; readonly model: string };
  /** The name of the client's key; never the key. */
  keyName?: string | undefined;
  stream?: boolean;
  /** Of the model that answers; absent: it has none. */
  price?: Price | undefined;
  /** The prompt's tokens, estimated, and its images. */
  estimate?: number;
  images?: number;
  /** The upstream to which the path is passed on. */
  passedTo?: string;
}

/** How the answer was sent. What sends it writes it: `Reply`, and what the answer is written to. */
export interface SentFacts {
  status?: number;
  /** Milliseconds until status and headers were sent. */
  headMs?: number;
  /** The response is generated in the background, and has a record of its own. */
  detached?: boolean;
  /** The connection was closed because the reader was too slow. */
  cut?: boolean;
  /** The source broke the answer off, and the client's connection was closed. */
  isBroken?: boolean;
  /** How often the stream lost its last client, and how often a client resumed it (`makeResumable`). */
  lost: number;
  resumes: number;
  /** The request resumes the stream of another one. */
  resumesStream?: boolean;
  /** Why the request was refused before an engine was asked. */
  refusal?: GenerationFailure;
  /** The cause of a failure; only for the log. */
  cause?: unknown;
}

const maxCalledTools = 8;

/** Who watches the generation. */
export interface AnswerWatchers {
  readonly trace?: { attempt(attempt: ObservedAttempt): AttemptObserver } | undefined;
  readonly inspection?: Inspection | undefined;
}

/**
 * What was measured of an answer: from events (`see`), and from what its engine reports. Other code cannot write it: a record has it
 * as `Readonly<MeasuredAnswer>`.
 */
export class MeasuredAnswer implements GenerationObserver {
  readonly #asked: AskedFacts;
  readonly #watchers: AnswerWatchers;
  /** Milliseconds until the first delta, unless the answer was generated and sent as a whole, and until the end. */
  firstMs: number | undefined;
  lastMs: number | undefined;
  /** The fallback that was asked last, by the name that clients use, and why fallbacks were asked, one reason for each. */
  fallback: string | undefined;
  fallbackReasons: readonly FallbackReason[] = [];
  /** Requests to upstreams. */
  attempts = 0;
  /** Repairs of the source's answer, with their counts. */
  repairs: ReadonlyMap<string, number> = none;
  /** The numbers of states of earlier turns, by what happened to them; absent: no turn has or lacks a state. */
  turnStateCounts: TurnStateCounts | undefined;
  /** Why much of the prompt is processed again. */
  cacheMiss: CacheMiss | undefined;
  toolCalls = 0;
  /** The names of the first tools that the answer calls. */
  readonly calledTools: string[] = [];
  /** An engine is asked: what it does is counted. */
  isAsked = false;
  /** Calls of hosted tools. */
  hostedCalls = 0;
  /** Characters of text, reasoning, refusals and arguments. */
  characters = 0;
  /** The model has reasoned. */
  hasReasoning = false;
  usage: Usage | undefined;
  /** Measured by the process of a local model. */
  timings: Timings | undefined;
  end: GenerationEnd | undefined;
  readonly finishes: FinishReason[] = [];
  /** The answer was ended because it repeated itself. */
  looped = false;
  /** The upstream's id of the request. */
  upstreamId: string | undefined;
  #missListener: ((miss: CacheMiss) => void) | undefined;

  constructor(asked: AskedFacts, watchers: AnswerWatchers) {
    this.#asked = asked;
    this.#watchers = watchers;
  }

  get inspection(): Inspection | undefined {
    return this.#watchers.inspection;
  }

  /** Prompt tokens that were found in a cache. */
  get cachedTokens(): number | undefined {
    return this.usage?.promptDetails?.["cached_tokens"];
  }

  begins(): void {
    this.isAsked = true;
  }

  attempt(attempt: ObservedAttempt): AttemptObserver {
    this.attempts++;
    return this.#watchers.trace?.attempt(attempt) ?? unobserved;
  }

  repaired(counts: Readonly<Record<string, number>>): void {
    const repairs = new Map(this.repairs);
    for (const [kind, count] of Object.entries(counts)) repairs.set(kind, (repairs.get(kind) ?? 0) + count);
    this.repairs = repairs;
  }

  turnStates(counts: TurnStateCounts): void {
    this.turnStateCounts = Object.values(counts).some((count) => count > 0) ? counts : undefined;
  }

  cacheMissed(miss: CacheMiss): void {
    // Only the first of several prompts is reported.
    if (this.cacheMiss) return;
    this.cacheMiss = miss;
    this.#missListener?.(miss);
  }

  /** Calls `listener` when it is known why much of the prompt is processed again, which may be before the headers are sent. */
  onCacheMiss(listener: (miss: CacheMiss) => void): void {
    this.#missListener = listener;
  }

  /** A fallback is asked. */
  fellBack(name: string, reason: FallbackReason): void {
    this.fallback = name;
    this.fallbackReasons = [...this.fallbackReasons, reason];
  }

  see(events: readonly GenerationEvent[]): void {
    if (this.firstMs === undefined) this.#noteFirst(events);
    for (const event of events) {
      switch (event.type) {
        case "reasoning-delta":
          if (event.text !== "") this.hasReasoning = true;
          this.characters += event.text.length;
          break;
        case "text-delta":
        case "refusal-delta":
          this.characters += event.text.length;
          break;
        case "tool-call-delta":
          this.characters += event.arguments.length;
          break;
        case "tool-call-start":
          if (this.toolCalls++ < maxCalledTools) this.calledTools.push(event.name);
          break;
        case "hosted-call-start":
          this.hostedCalls++;
          break;
        case "finish":
          this.finishes.push(event.reason);
          if (event.limit === "loop") this.looped = true;
          break;
        case "usage":
          this.usage = event.usage;
          this.timings = event.timings ?? this.timings;
          break;
        case "start":
          this.upstreamId ??= event.source?.headers?.[upstreamRequestId];
          break;
        case "end":
          this.lastMs = this.#now();
          this.end = event.end;
      }
    }
  }

  /** An answer that is generated and sent as a whole has no first delta. */
  #noteFirst(events: readonly GenerationEvent[]): void {
    const isWhole = this.#asked.stream !== true && events.at(-1)?.type === "end";
    if (!isWhole && events.some(isDelta)) this.firstMs = this.#now();
  }

  #now(): number {
    return performance.now() - this.#asked.receivedAt;
  }
}

function isDelta({ type }: GenerationEvent): boolean {
  return deltas.has(type);
}

const deltas: ReadonlySet<GenerationEvent["type"]> = new Set([
  "text-delta",
  "reasoning-delta",
  "refusal-delta",
  "tool-call-start",
  "tool-call-delta",
]);

const none: ReadonlyMap<string, number> = new Map();

const unobserved: AttemptObserver = { headers: {}, ended() {} };
