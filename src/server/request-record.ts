import type { CacheMiss } from "../core/cache-miss.ts";
import type { FailureKind, FinishReason, GenerationEnd, GenerationEvent, Timings, Usage } from "../core/events.ts";
import { mostText, withoutTexts } from "../core/without-texts.ts";
import type { AttemptObserver, GenerationObserver, ObservedAttempt } from "../core/generation-observer.ts";
import type { WatchedRequest } from "./inspect/watched-request.ts";
import type { LogFields } from "./log.ts";
import type { RequestTrace } from "./tracing/tracing.ts";

/** The body of a request. */
export interface ReceivedJson {
  readonly value: unknown;
  /** The length of its text, unpacked; undefined: a framework has read it. */
  readonly bytes: number | undefined;
}

/** "refused": the client's own fault, a status from 400 on; "failed": ours or the source's, from 500 on. */
export type Outcome = "finished" | "refused" | "failed" | "cancelled";

/** An API that generates, as numbers and traces name it. */
export interface ObservedApi {
  /** The port's name. */
  readonly name: string;
  /** As OpenTelemetry's `gen_ai.operation.name` has it. */
  readonly operation: string;
}

/** What happened to one request: collected while it runs, logged in one line at its end. */
export class RequestRecord implements GenerationObserver {
  /** Absent for paths that do not generate. */
  api: ObservedApi | undefined;
  /** As the client named it. */
  model: string | undefined;
  /** As it is listed; absent where the client named one that is not. */
  servedModel: string | undefined;
  /** The name of the client's key, where it has one; never the key. */
  keyName: string | undefined;
  stream: boolean | undefined;
  status: number | undefined;
  /** Milliseconds until the answer's head was sent. */
  headMs: number | undefined;
  /** Milliseconds until the first piece of the answer, where it came in pieces or was to be sent so, and until its end. */
  firstMs: number | undefined;
  lastMs: number | undefined;
  /** The answer went on without its client, and has a record of its own. */
  detached = false;
  /** How many times another server was asked. */
  attempts = 0;
  /** What was mended in the source's answer, and how often. */
  repairs: ReadonlyMap<string, number> = none;
  /** Why much of the prompt is read again. */
  cacheMiss: CacheMiss | undefined;
  /** Called with it: the answer's head is not sent yet, or has had to be sent without. */
  onCacheMiss: ((miss: CacheMiss) => void) | undefined;
  trace: RequestTrace | undefined;
  /** Present: somebody wants to see what is inside. */
  inspection: WatchedRequest | undefined;
  /** The reader was too slow, and was given up. */
  cut = false;
  toolCalls = 0;
  /** Characters of text, reasoning, refusals and arguments. */
  characters = 0;
  usage: Usage | undefined;
  /** Of the model's process. */
  timings: Timings | undefined;
  end: GenerationEnd | undefined;
  /** Why the request was refused, when that happened before an engine was asked. */
  refusal: string | undefined;
  refusalKind: FailureKind | undefined;
  /** The cause of a failure, for the log alone. */
  cause: unknown;
  readonly finishes: FinishReason[] = [];
  readonly receivedAt: number = performance.now();
  /** An error that repeats some of it is logged without. null: it is too long to be compared, and not kept for that. */
  #said: unknown[] | null = [];

  attempt(attempt: ObservedAttempt): AttemptObserver {
    this.attempts++;
    return this.trace?.attempt(attempt) ?? unobserved;
  }

  repaired(counts: Readonly<Record<string, number>>): void {
    const repairs = new Map(this.repairs);
    for (const [kind, count] of Object.entries(counts)) repairs.set(kind, (repairs.get(kind) ?? 0) + count);
    this.repairs = repairs;
  }

  cacheMissed(miss: CacheMiss): void {
    // Of several prompts the first one is told of.
    if (this.cacheMiss) return;
    this.cacheMiss = miss;
    this.onCacheMiss?.(miss);
  }

  see(events: readonly GenerationEvent[]): void {
    if (this.firstMs === undefined) this.#lookForFirst(events);
    for (const event of events) {
      switch (event.type) {
        case "text-delta":
        case "reasoning-delta":
        case "refusal-delta":
          this.characters += event.text.length;
          break;
        case "tool-call-delta":
          this.characters += event.arguments.length;
          break;
        case "tool-call-start":
          this.toolCalls++;
          break;
        case "finish":
          this.finishes.push(event.reason);
          break;
        case "usage":
          this.usage = event.usage;
          this.timings = event.timings ?? this.timings;
          break;
        case "end":
          this.lastMs = this.#now();
          this.end = event.end;
      }
    }
  }

  /** An answer that came whole, and is sent whole, tells nothing of its first piece. */
  #lookForFirst(events: readonly GenerationEvent[]): void {
    const isWhole = this.stream !== true && events.at(-1)?.type === "end";
    if (!isWhole && events.some(isPiece)) this.firstMs = this.#now();
  }

  /** How the request ended, in one word. */
  outcome(clientGone: boolean): Outcome {
    if (clientGone) return "cancelled";
    if (this.end && "failure" in this.end) return this.end.failure.status < 500 ? "refused" : "failed";
    const status = this.status ?? 500;
    if (status < 400) return "finished";
    return status < 500 ? "refused" : "failed";
  }

  /** What went wrong, in one word of few; undefined: nothing did. */
  errorType(outcome: Outcome): string | undefined {
    if (outcome === "cancelled") return "cancelled";
    const failure = this.end && "failure" in this.end ? this.end.failure.kind : this.refusalKind;
    return failure ?? (outcome === "finished" ? undefined : "internal");
  }

  /** The spans end; what was learnt stands in them. */
  endTrace(outcome: Outcome): void {
    const { receivedAt, status, keyName, finishes, usage, timings, firstMs, lastMs } = this;
    const errorType = this.errorType(outcome);
    this.trace?.end({ receivedAt, status, errorType, keyName, finishes, usage, timings, firstMs, lastMs });
  }

  /** Prompt tokens that were read from a cache. */
  get cachedTokens(): number | undefined {
    return this.usage?.promptDetails?.["cached_tokens"];
  }

  /** What the client sent. */
  received({ value, bytes }: ReceivedJson): void {
    if (bytes !== undefined && bytes > mostText) this.#said = null;
    else this.#said?.push(value);
  }

  /** What the client asks the model, earlier turns included. */
  prompted(prompt: unknown): void {
    this.#said?.push(prompt);
  }

  /** For the log: without what it quotes of what the client wrote. Names of models and tools may be told. */
  #shown(message: string): string {
    return withoutTexts(message, this.#said?.flatMap(withoutNames) ?? null);
  }

  #now(): number {
    return performance.now() - this.receivedAt;
  }

  fields(): LogFields {
    const failure = this.end && "failure" in this.end ? this.end.failure : undefined;
    const cause = this.cause ?? failure?.cause;
    const fields: Record<string, unknown> = {};
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
    if (this.cut) fields["cut"] = "the reader was too slow";
    if (this.toolCalls > 0) fields["toolCalls"] = this.toolCalls;
    if (this.attempts > 1) fields["attempts"] = this.attempts;
    if (this.repairs.size > 0) fields["repairs"] = Object.fromEntries(this.repairs);
    const traceId = this.trace?.traceId;
    if (traceId !== undefined) fields["trace"] = traceId;
    if (failure) {
      fields["end"] = this.end?.kind;
      fields["error"] = this.#shown(failure.message);
    } else if (this.refusal !== undefined) fields["error"] = this.#shown(this.refusal);
    if (cause !== undefined) {
      fields["cause"] = this.#shown(causeText(cause));
    }
    return fields;
  }
}

/** Without the texts: they are of a conversation. */
function loggedMiss({ cause, where, at, knownTokens }: CacheMiss): Readonly<Record<string, string | number>> {
  return { cause, ...(where !== undefined && { where }), at, ...(knownTokens !== undefined && { knownTokens }) };
}

function isPiece({ type }: GenerationEvent): boolean {
  return pieces.has(type);
}

const pieces: ReadonlySet<GenerationEvent["type"]> = new Set([
  "text-delta",
  "reasoning-delta",
  "refusal-delta",
  "tool-call-start",
  "tool-call-delta",
]);

/** The values of an object's members, but for those that name things. */
function withoutNames(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [value];
  const members = value as Readonly<Record<string, unknown>>;
  return Object.keys(members).flatMap((name) => (name === "model" || name === "tools" ? [] : [members[name]]));
}

const none: ReadonlyMap<string, number> = new Map();

const unobserved: AttemptObserver = { headers: {}, ended() {} };

function causeText(cause: unknown): string {
  if (cause instanceof Error) return cause.stack ?? cause.message;
  return typeof cause === "string" ? cause : JSON.stringify(cause);
}
