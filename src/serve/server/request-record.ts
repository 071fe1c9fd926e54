import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type {
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  GenerationFailure,
  Timings,
  Usage,
} from "../../wire/core/events.ts";
import { type FallbackReason, loggedError, loggedFailure, upstreamRequestId } from "../../wire/core/failure.ts";
import type {
  AttemptObserver,
  GenerationObserver,
  ObservedAttempt,
  TurnStateCounts,
} from "../../wire/core/generation-observer.ts";
import type { ListedRequest } from "./inspect/listed-request.ts";
import type { WatchedRequest } from "./inspect/watched-request.ts";
import type { ServedModel } from "./model-directory.ts";
import type { RequestTrace } from "./tracing/tracing.ts";

/** "refused": an error of the client (4xx); "failed": an error of this server or the source (5xx). */
export type RequestOutcome = "finished" | "refused" | "failed" | "cancelled";

/** An API, as metrics and traces name it. */
export interface ObservedApi {
  /** The port's name. */
  readonly name: string;
  /** `gen_ai.operation.name` of OpenTelemetry. */
  readonly operation: string;
}

const maxCalledTools = 8;

/** What is known about one request, for its line in the log, metrics and traces. */
export class RequestRecord implements GenerationObserver {
  /** Absent for paths without metrics. */
  api: ObservedApi | undefined;
  /** As the client named it. */
  model: string | undefined;
  /** The listed name; absent if the model does not exist. */
  servedModel: string | undefined;
  /** The model that is asked. */
  served: ServedModel | undefined;
  /** The name of the client's key; never the key. */
  keyName: string | undefined;
  stream: boolean | undefined;
  status: number | undefined;
  /** Milliseconds until status and headers were sent. */
  headMs: number | undefined;
  /** Milliseconds until the first delta, unless the answer was generated and sent as a whole, and until the end. */
  firstMs: number | undefined;
  lastMs: number | undefined;
  /** The response is generated in the background, and has a record of its own. */
  detached = false;
  /** The fallback that was asked last, by the name that clients use. */
  fallback: string | undefined;
  /** Why fallbacks were asked, one reason for each. */
  readonly fallbackReasons: FallbackReason[] = [];
  /** Requests to upstreams. */
  attempts = 0;
  /** Repairs of the source's answer, with their counts. */
  repairs: ReadonlyMap<string, number> = none;
  /** What became of the states of earlier turns; absent: there were none, and none was missing. */
  turnStateCounts: TurnStateCounts | undefined;
  /** Why much of the prompt is processed again. */
  cacheMiss: CacheMiss | undefined;
  /** Called when the reason is known, which may be before the headers are sent. */
  onCacheMiss: ((miss: CacheMiss) => void) | undefined;
  trace: RequestTrace | undefined;
  /** Its entry in Inspect; absent if requests are not kept. */
  watched: ListedRequest | undefined;
  /** The same, if the texts of the request are kept, too. */
  inspection: WatchedRequest | undefined;
  /** The connection was closed because the reader was too slow. */
  cut = false;
  /** How often the stream lost its last client, and how often a client resumed it (`makeResumable`). */
  lost = 0;
  resumes = 0;
  /** The request resumes the stream of another one. */
  resumesStream = false;
  toolCalls = 0;
  /** The names of the first tools that the answer calls. */
  readonly calledTools: string[] = [];
  /** Characters of text, reasoning, refusals and arguments. */
  characters = 0;
  /** The model has reasoned. */
  hasReasoning = false;
  usage: Usage | undefined;
  /** Measured by the process of a local model. */
  timings: Timings | undefined;
  end: GenerationEnd | undefined;
  /** Why the request was refused before an engine was asked. */
  refusal: GenerationFailure | undefined;
  /** The cause of a failure; only for the log. */
  cause: unknown;
  readonly finishes: FinishReason[] = [];
  /** The answer was ended because it repeated itself. */
  looped = false;
  readonly receivedAt: number = performance.now();
  /** The upstream's id of the request. */
  #upstreamId: string | undefined;

  attempt(attempt: ObservedAttempt): AttemptObserver {
    this.attempts++;
    return this.trace?.attempt(attempt) ?? unobserved;
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
    this.onCacheMiss?.(miss);
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
        case "finish":
          this.finishes.push(event.reason);
          if (event.limit === "loop") this.looped = true;
          break;
        case "usage":
          this.usage = event.usage;
          this.timings = event.timings ?? this.timings;
          break;
        case "start":
          this.#upstreamId ??= event.source?.headers?.[upstreamRequestId];
          break;
        case "end":
          this.lastMs = this.#now();
          this.end = event.end;
      }
    }
  }

  /** An answer that is generated and sent as a whole has no first delta. */
  #noteFirst(events: readonly GenerationEvent[]): void {
    const isWhole = this.stream !== true && events.at(-1)?.type === "end";
    if (!isWhole && events.some(isDelta)) this.firstMs = this.#now();
  }

  /** How the request ended. */
  outcome(clientGone: boolean): RequestOutcome {
    if (clientGone) return "cancelled";
    if (this.end && "failure" in this.end) return this.end.failure.status < 500 ? "refused" : "failed";
    const status = this.status ?? 500;
    if (status < 400) return "finished";
    return status < 500 ? "refused" : "failed";
  }

  /** The kind of the error; undefined if there was none. */
  errorType(outcome: RequestOutcome): string | undefined {
    if (outcome === "cancelled") return "cancelled";
    const failure = this.end && "failure" in this.end ? this.end.failure : this.refusal;
    return failure?.kind ?? (outcome === "finished" ? undefined : "internal");
  }

  /** Ends the spans of the request. */
  endTrace(outcome: RequestOutcome): void {
    const { receivedAt, status, keyName, finishes, usage, timings, firstMs, lastMs } = this;
    const errorType = this.errorType(outcome);
    this.trace?.end({ receivedAt, status, errorType, keyName, finishes, usage, timings, firstMs, lastMs });
  }

  /** Prompt tokens that were found in a cache. */
  get cachedTokens(): number | undefined {
    return this.usage?.promptDetails?.["cached_tokens"];
  }

  #now(): number {
    return performance.now() - this.receivedAt;
  }

  /** Adds what the request's line in the log shows to `fields`, and returns them. */
  addFields(fields: Record<string, unknown>): Record<string, unknown> {
    const failure = this.end && "failure" in this.end ? this.end.failure : undefined;
    const cause = this.cause ?? failure?.cause;
    const upstreamId = this.#upstreamId ?? (failure ?? this.refusal)?.headers?.[upstreamRequestId];
    if (this.api) fields["api"] = this.api.name;
    if (this.keyName !== undefined) fields["key"] = this.keyName;
    if (this.model !== undefined) fields["model"] = this.model;
    if (this.stream !== undefined) fields["stream"] = this.stream;
    if (this.status !== undefined) fields["status"] = this.status;
    fields["ms"] = Math.round(this.#now());
    if (this.headMs !== undefined) fields["headMs"] = this.headMs;
    if (this.timings) fields["queueMs"] = Math.round(this.timings.queuedMs);
    if (this.firstMs !== undefined) fields["firstMs"] = Math.round(this.firstMs);
    if (this.usage) {
      fields["promptTokens"] = this.usage.promptTokens;
      if (this.cachedTokens !== undefined) fields["cachedTokens"] = this.cachedTokens;
      fields["completionTokens"] = this.usage.completionTokens;
    }
    if (this.cacheMiss) fields["cache"] = loggedMiss(this.cacheMiss);
    if (this.finishes.length > 0) fields["finish"] = [...new Set(this.finishes)].join(",");
    if (this.looped) fields["loop"] = "the answer repeated itself";
    if (this.cut) fields["cut"] = "the reader was too slow";
    if (this.lost > 0) fields["lost"] = this.lost;
    if (this.resumes > 0) fields["resumes"] = this.resumes;
    if (this.toolCalls > 0) fields["toolCalls"] = this.toolCalls;
    if (this.fallback !== undefined) fields["fallback"] = this.fallback;
    if (upstreamId !== undefined) fields["upstreamRequest"] = upstreamId;
    if (this.attempts > 1) fields["attempts"] = this.attempts;
    if (this.repairs.size > 0) fields["repairs"] = Object.fromEntries(this.repairs);
    if (this.turnStateCounts) fields["turnStates"] = nonZero(this.turnStateCounts);
    const traceId = this.trace?.traceId;
    if (traceId !== undefined) fields["trace"] = traceId;
    if (failure) {
      fields["end"] = this.end?.kind;
      fields["error"] = loggedFailure(failure);
    } else if (this.refusal) fields["error"] = loggedFailure(this.refusal);
    if (cause !== undefined) fields["cause"] = typeof cause === "string" ? cause : loggedError(cause);
    return fields;
  }
}

/** The states by what became of them, without those that did not occur. */
export function nonZero(counts: TurnStateCounts): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

/** Without texts, which are part of the conversation. */
function loggedMiss({ cause, where, at, knownTokens }: CacheMiss): Readonly<Record<string, string | number>> {
  return { cause, ...(where !== undefined && { where }), at, ...(knownTokens !== undefined && { knownTokens }) };
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
