import { trace } from "@opentelemetry/api";
import type { Tracer } from "@opentelemetry/api";
import { RequestTrace } from "./request-trace.ts";
import type { TracedRequest } from "./request-trace.ts";

/** Makes the traces of requests. */
export interface Tracing {
  begin(request: TracedRequest): RequestTrace | undefined;
}

/**
 * Traces by a tracer; default: the one of whatever OpenTelemetry SDK the process has registered, which records nothing where there is
 * none. Prompts and answers are in spans only where the environment says so, as OpenTelemetry's own instrumentations have it.
 */
export function openTracing(environment: Environment, tracer: Tracer = trace.getTracer("truewire")): Tracing {
  const asked = environment["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"]?.toLowerCase() ?? "";
  const options = { tracer, capturesContent: ["true", "span_only", "span_and_event"].includes(asked) };
  return { begin: (request) => RequestTrace.begin(options, request) };
}

export type Environment = Readonly<Record<string, string | undefined>>;
