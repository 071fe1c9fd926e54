import {
  context,
  createTraceState,
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { Attributes, Context, Span, SpanContext, Tracer } from "@opentelemetry/api";
import type { HeaderReader } from "../../../wire/apis/api-error-format.ts";
import { Accumulator } from "../../../wire/core/accumulate.ts";
import type { GenerationEnd, GenerationEvent, Timings, Usage } from "../../../wire/core/events.ts";
import type { AttemptObserver, ObservedAttempt } from "../../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { inputMessages, outputMessages } from "./message-content.ts";

/** Creates the traces of requests. */
export interface Tracing {
  begin(request: TracedRequest): RequestTrace | undefined;
}

/**
 * Opens tracing with a tracer; default: that of the OpenTelemetry SDK which the process has registered, if any. Prompts and answers are in
 * spans only if the environment says so, as in OpenTelemetry's own instrumentations.
 */
export function openTracing(environment: Environment, tracer: Tracer = trace.getTracer("truewire")): Tracing {
  const asked = environment["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"]?.toLowerCase() ?? "";
  const options = { tracer, capturesContent: ["true", "span_only", "span_and_event"].includes(asked) };
  return { begin: (request) => RequestTrace.begin(options, request) };
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface TracedRequest {
  readonly requestId: string;
  readonly method: string;
  /** The documented path: `/v1/chat/completions`. */
  readonly route: string;
  readonly header: HeaderReader;
  /** Removes the secrets of the configuration from a text. */
  readonly masked: (text: string) => string;
}

/** The result of a request; times in milliseconds from `receivedAt`. */
export interface TracedOutcome {
  /** By `performance.now`. */
  readonly receivedAt: number;
  readonly status: number | undefined;
  /** The kind of the error; undefined if there was none. */
  readonly errorType: string | undefined;
  readonly keyName: string | undefined;
  readonly finishes: readonly string[];
  readonly usage: Usage | undefined;
  readonly timings: Timings | undefined;
  readonly firstMs: number | undefined;
  readonly lastMs: number | undefined;
}

export interface TracingOptions {
  readonly tracer: Tracer;
  /** Whether spans contain prompts and answers. */
  readonly capturesContent: boolean;
}

/**
 * The spans of one request: the request; within it the operation, as in the semantic conventions for generative AI; within that the phases of
 * a local model, or the requests to upstreams. If the trace is not recorded (no provider, not sampled), a client's trace context is only
 * passed on.
 */
export class RequestTrace {
  readonly #options: TracingOptions;
  readonly #server: Span;
  readonly #masked: TracedRequest["masked"];
  #operation: Span | undefined;
  #output: Accumulator | undefined;

  private constructor(options: TracingOptions, server: Span, masked: TracedRequest["masked"]) {
    this.#options = options;
    this.#server = server;
    this.#masked = masked;
  }

  /** undefined: there is no trace, neither of this server nor of the client. */
  static begin(options: TracingOptions, request: TracedRequest): RequestTrace | undefined {
    const { requestId, method, route, header, masked } = request;
    // A host application may have a span already.
    const active = context.active();
    const parent = trace.getSpan(active) ? active : contextIn(header);
    const attributes: Attributes = {
      "http.request.method": method,
      "http.route": route,
      "truewire.request.id": requestId,
    };
    const server = options.tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent);
    return trace.isSpanContextValid(server.spanContext()) ? new RequestTrace(options, server, masked) : undefined;
  }

  /** For the log; undefined if the trace is not recorded. */
  get traceId(): string | undefined {
    return this.#server.isRecording() ? this.#server.spanContext().traceId : undefined;
  }

  /** Begins the span of the operation. `model`: the listed name. */
  operationBegins(operation: string, model: string, request?: GenerationRequest): void {
    if (!this.#server.isRecording()) return;
    const { tracer, capturesContent } = this.#options;
    const attributes: Attributes = {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": "truewire",
      "gen_ai.request.model": model,
      ...(request && attributesOf(request)),
    };
    if (capturesContent && request) {
      attributes["gen_ai.input.messages"] = this.#masked(JSON.stringify(inputMessages(request)));
      this.#output = new Accumulator();
    }
    const kind = SpanKind.INTERNAL;
    this.#operation = tracer.startSpan(`${operation} ${model}`, { kind, attributes }, within(this.#server));
  }

  see(events: readonly GenerationEvent[]): void {
    this.#output?.add(events);
  }

  attempt({ url, model }: ObservedAttempt): AttemptObserver {
    if (!this.#operation) return { headers: headersOf(this.#server.spanContext()), ended() {} };
    const attributes: Attributes = {
      "http.request.method": "POST",
      "url.full": url,
      "gen_ai.request.model": model,
      ...addressOf(url.replace("[key]@", "")),
    };
    const parent = within(this.#operation);
    const span = this.#options.tracer.startSpan("attempt", { kind: SpanKind.CLIENT, attributes }, parent);
    return {
      headers: headersOf(span.spanContext()),
      ended(end) {
        const failure = failureOf(end);
        if (failure) fail(span, failure);
        span.end();
      },
    };
  }

  /** Ends the spans: the answer is complete, refused or cancelled. */
  end(outcome: TracedOutcome): void {
    const { status, errorType, keyName, receivedAt, firstMs } = outcome;
    const operation = this.#operation;
    const zero = performance.timeOrigin + receivedAt;
    const now = performance.timeOrigin + performance.now();
    if (operation) {
      operation.setAttributes(attributesOfAnswer(outcome));
      if (firstMs !== undefined) operation.addEvent("first_token", zero + firstMs);
      this.#phases(operation, outcome, zero);
      if (this.#output) {
        const { choices } = this.#output.result();
        operation.setAttribute("gen_ai.output.messages", this.#masked(JSON.stringify(outputMessages(choices))));
      }
      if (errorType !== undefined) fail(operation, errorType);
      operation.end(now);
    }
    if (status !== undefined) this.#server.setAttribute("http.response.status_code", status);
    if (keyName !== undefined) this.#server.setAttribute("truewire.key.name", keyName);
    // An error of the client does not set the status of a server span. Source: semantic conventions for HTTP spans, "Status".
    if (errorType !== undefined) {
      this.#server.setAttribute("error.type", errorType);
      if ((status ?? 500) >= 500 || (status ?? 0) < 400) this.#server.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#server.end(now);
  }

  /** Adds spans for the phases of a local model, which are consecutive and end with the answer. */
  #phases(operation: Span, { timings, lastMs }: TracedOutcome, zero: number): void {
    if (!timings || lastMs === undefined) return;
    const { preparingMs, queuedMs, promptMs, generationMs } = timings;
    const parent = within(operation);
    let end = zero + lastMs;
    const before = (name: string, ms: number | undefined): void => {
      if (ms === undefined) return;
      const startTime = Math.max(zero, end - ms);
      this.#options.tracer.startSpan(name, { startTime }, parent).end(end);
      end = startTime;
    };
    before("generation", generationMs);
    before("prefill", promptMs);
    before("queue", queuedMs);
    before("template", preparingMs);
  }
}

function addressOf(url: string): Attributes {
  if (!URL.canParse(url)) return {};
  const { hostname, port, protocol } = new URL(url);
  return { "server.address": hostname, "server.port": Number(port) || (protocol === "https:" ? 443 : 80) };
}

function within(span: Span): Context {
  return trace.setSpan(context.active(), span);
}

function fail(span: Span, errorType: string): void {
  span.setAttribute("error.type", errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function failureOf(end: GenerationEnd): string | undefined {
  if ("failure" in end) return end.failure.kind;
  return end.kind === "client-gone" ? "cancelled" : undefined;
}

/** Parameters of the request, without texts of the client. */
function attributesOf({ sampling, limits, n, output, stream }: GenerationRequest): Attributes {
  const { temperature, topP, topK, seed, frequencyPenalty, presencePenalty } = sampling;
  return {
    "gen_ai.request.temperature": temperature,
    "gen_ai.request.top_p": topP,
    "gen_ai.request.top_k": topK,
    "gen_ai.request.seed": seed,
    "gen_ai.request.frequency_penalty": frequencyPenalty,
    "gen_ai.request.presence_penalty": presencePenalty,
    "gen_ai.request.max_tokens": limits.maxTokens,
    "gen_ai.request.choice.count": n === 1 ? undefined : n,
    "gen_ai.request.stream": stream,
    "gen_ai.output.type": output?.type.startsWith("json") === true ? "json" : undefined,
  };
}

function attributesOfAnswer({ usage, finishes }: TracedOutcome): Attributes {
  return {
    "gen_ai.usage.input_tokens": usage?.promptTokens,
    "gen_ai.usage.output_tokens": usage?.completionTokens,
    "gen_ai.usage.cache_read.input_tokens": usage?.promptDetails?.["cached_tokens"],
    "gen_ai.response.finish_reasons": finishes.length > 0 ? [...finishes] : undefined,
  };
}

/** The header `traceparent`. Source: W3C Trace Context, section 3. */
const traceparent = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The trace context of the client; the root context if it has none, or an invalid one. */
export function contextIn(header: HeaderReader): Context {
  const [, version, traceId, spanId, flags, more] = traceparent.exec(header("traceparent")?.trim() ?? "") ?? [];
  // Only later versions may have further fields.
  if (!traceId || !spanId || !flags || version === "ff" || (version === "00" && more !== undefined))
    return ROOT_CONTEXT;
  if (traceId === INVALID_SPAN_CONTEXT.traceId || spanId === INVALID_SPAN_CONTEXT.spanId) return ROOT_CONTEXT;
  const state = header("tracestate");
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  });
}

/** The headers with which another server continues the trace of a span. */
export function headersOf({ traceId, spanId, traceFlags, traceState }: SpanContext): Record<string, string> {
  const headers = { traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}` };
  const state = traceState?.serialize() ?? "";
  return state === "" ? headers : { ...headers, tracestate: state };
}
