import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type { Usage } from "../../wire/core/events.ts";
import { loggedError, loggedFailure, upstreamRequestId } from "../../wire/core/failure.ts";
import type { TurnStateCounts } from "../../wire/core/generation-observer.ts";
import type { RequestUsage } from "../kv/spending.ts";
import { costOf } from "./keys/prices.ts";
import { usageOf } from "./keys/usage-lease.ts";
import type { ListedRequest } from "./inspect/listed-request.ts";
import type { WatchedRequest } from "./inspect/watched-request.ts";
import { MeasuredAnswer } from "./request-facts.ts";
import type { AskedFacts, SentFacts } from "./request-facts.ts";
import type { RequestTrace } from "./tracing/tracing.ts";

/** "refused": an error of the client (4xx); "failed": an error of this server or the source (5xx). */
export type RequestOutcome = "finished" | "refused" | "failed" | "cancelled";

/** Who watches a request. The first stages of the request write it. */
export interface Watchers {
  trace?: RequestTrace | undefined;
  /** Its entry in Inspect; absent if requests are not kept. */
  listed?: ListedRequest | undefined;
  /** The same, if the texts of the request are kept, too. */
  inspection?: WatchedRequest | undefined;
}

/** What is known about one request, for its line in the log, metrics and traces, by who writes it. */
export class RequestRecord {
  readonly asked: AskedFacts;
  readonly sent: SentFacts = { lost: 0, resumes: 0 };
  readonly watchers: Watchers;
  readonly answer: Readonly<MeasuredAnswer>;

  constructor(asked: AskedFacts = { receivedAt: performance.now() }, watchers: Watchers = {}) {
    this.asked = asked;
    this.watchers = watchers;
    this.answer = new MeasuredAnswer(asked, watchers);
  }

  /** The record of a response in the background, which has a line of its own in the log. The request's line only says that it was accepted. */
  inBackground(): RequestRecord {
    const { listed, inspection } = this.watchers;
    const { stream: _, ...asked } = this.asked;
    const own = new RequestRecord({ ...asked, receivedAt: performance.now() }, { listed, inspection });
    own.sent.status = 200;
    return own;
  }

  /** What the answer has used so far, reported or estimated; undefined: no engine was asked, or it failed. */
  get usage(): Usage | undefined {
    return this.answer.isAsked ? usageOf(this.answer, this.asked.estimate ?? 0) : undefined;
  }

  /** In nanodollars; undefined if the model has no price. */
  get cost(): number | undefined {
    const { price, images = 0 } = this.asked;
    const { usage } = this;
    return price && usage && costOf(price, usage, { images, hostedCalls: this.answer.hostedCalls });
  }

  /** What the request adds to the table of what was used. */
  get used(): RequestUsage | undefined {
    const { usage } = this;
    return (
      usage && {
        model: this.answer.fallback ?? this.asked.served?.info.id ?? "",
        promptTokens: usage.promptTokens,
        cachedTokens: usage.promptDetails?.["cached_tokens"] ?? 0,
        completionTokens: usage.completionTokens,
        cost: this.cost ?? 0,
      }
    );
  }

  /** How the request ended. */
  outcome(clientGone: boolean): RequestOutcome {
    if (this.sent.isBroken === true) return "failed";
    if (clientGone) return "cancelled";
    const { end } = this.answer;
    if (end && "failure" in end) return end.failure.status < 500 ? "refused" : "failed";
    const { status = 500 } = this.sent;
    if (status < 400) return "finished";
    return status < 500 ? "refused" : "failed";
  }

  /** The kind of the error; undefined if there was none. */
  errorType(outcome: RequestOutcome): string | undefined {
    if (outcome === "cancelled") return "cancelled";
    const { end } = this.answer;
    const failure = end && "failure" in end ? end.failure : this.sent.refusal;
    return failure?.kind ?? (outcome === "finished" ? undefined : "internal");
  }

  /** Ends the spans of the request. */
  endTrace(outcome: RequestOutcome): void {
    const { receivedAt, keyName } = this.asked;
    const { finishes, usage, timings, firstMs, lastMs } = this.answer;
    const { status } = this.sent;
    const errorType = this.errorType(outcome);
    this.watchers.trace?.end({ receivedAt, status, errorType, keyName, finishes, usage, timings, firstMs, lastMs });
  }

  /** Adds what the request's line in the log shows to `fields`, and returns them. */
  addFields(fields: Record<string, unknown>): Record<string, unknown> {
    const { asked, sent, answer } = this;
    const { usage, cachedTokens, end } = answer;
    const failure = end && "failure" in end ? end.failure : undefined;
    const cause = sent.cause ?? failure?.cause;
    const upstreamId = answer.upstreamId ?? (failure ?? sent.refusal)?.headers?.[upstreamRequestId];
    if (asked.api) fields["api"] = asked.api.name;
    if (asked.keyName !== undefined) fields["key"] = asked.keyName;
    if (asked.model !== undefined) fields["model"] = asked.model;
    if (asked.route) Object.assign(fields, { route: asked.route.rule, routedTo: asked.route.model });
    if (asked.passedTo !== undefined) fields["passedTo"] = asked.passedTo;
    if (asked.stream !== undefined) fields["stream"] = asked.stream;
    if (sent.status !== undefined) fields["status"] = sent.status;
    fields["ms"] = Math.round(performance.now() - asked.receivedAt);
    if (sent.headMs !== undefined) fields["headMs"] = sent.headMs;
    if (answer.timings) fields["queueMs"] = Math.round(answer.timings.queuedMs);
    if (answer.firstMs !== undefined) fields["firstMs"] = Math.round(answer.firstMs);
    if (usage) {
      fields["promptTokens"] = usage.promptTokens;
      if (cachedTokens !== undefined) fields["cachedTokens"] = cachedTokens;
      fields["completionTokens"] = usage.completionTokens;
    }
    const { cost } = this;
    if (cost !== undefined) fields["cost"] = cost / 1e9;
    if (answer.cacheMiss) fields["cache"] = loggedMiss(answer.cacheMiss);
    if (answer.finishes.length > 0) fields["finish"] = [...new Set(answer.finishes)].join(",");
    if (answer.looped) fields["loop"] = "the answer repeated itself";
    if (sent.cut === true) fields["cut"] = "the reader was too slow";
    if (sent.lost > 0) fields["lost"] = sent.lost;
    if (sent.resumes > 0) fields["resumes"] = sent.resumes;
    if (answer.toolCalls > 0) fields["toolCalls"] = answer.toolCalls;
    if (answer.fallback !== undefined) fields["fallback"] = answer.fallback;
    if (upstreamId !== undefined) fields["upstreamRequest"] = upstreamId;
    if (answer.attempts > 1) fields["attempts"] = answer.attempts;
    if (answer.repairs.size > 0) fields["repairs"] = Object.fromEntries(answer.repairs);
    if (answer.turnStateCounts) fields["turnStates"] = nonZero(answer.turnStateCounts);
    const traceId = this.watchers.trace?.traceId;
    if (traceId !== undefined) fields["trace"] = traceId;
    if (failure) {
      fields["end"] = end?.kind;
      fields["error"] = loggedFailure(failure);
    } else if (sent.refusal) fields["error"] = loggedFailure(sent.refusal);
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
