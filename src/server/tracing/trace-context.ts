import { createTraceState, INVALID_SPAN_CONTEXT, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import type { Context, SpanContext } from "@opentelemetry/api";
import type { HeaderReader } from "../../apis/voice.ts";

/**
 * How traces go on from one process to the next: the headers `traceparent` and `tracestate`. Source: W3C Trace Context, section 3.
 */
const traceparent = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The context of a request whose client has a trace; the root where it has none, or says nothing that is one. */
export function contextIn(header: HeaderReader): Context {
  const [, version, traceId, spanId, flags, more] = traceparent.exec(header("traceparent")?.trim() ?? "") ?? [];
  // Later versions may say more; this one may not.
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

/** The headers with which another server's trace continues this span. */
export function headersOf({ traceId, spanId, traceFlags, traceState }: SpanContext): Record<string, string> {
  const headers = { traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}` };
  const state = traceState?.serialize() ?? "";
  return state === "" ? headers : { ...headers, tracestate: state };
}
