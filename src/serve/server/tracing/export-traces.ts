import { trace } from "@opentelemetry/api";
import type { Tracer } from "@opentelemetry/api";
import type { Log } from "../log.ts";
import type { Environment } from "./tracing.ts";

export interface TraceExport {
  readonly tracer: Tracer;
  /** Sends the remaining spans. */
  close(): Promise<void>;
}

/** The time limit for sending the remaining spans, in milliseconds. */
const flushTimeoutMs = 3000;

/**
 * Exports spans by OTLP (HTTP, JSON) if the environment names a collector. OpenTelemetry's SDK reads its other variables
 * (`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`, `OTEL_EXPORTER_OTLP_HEADERS`) itself. Registers no global provider; if the
 * process has one, spans go there. Returns undefined if nothing is exported: no collector is named, or a package is missing, which is
 * logged.
 */
export async function exportTraces(environment: Environment, log: Log): Promise<TraceExport | undefined> {
  const endpoint =
    environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] || environment["OTEL_EXPORTER_OTLP_ENDPOINT"] || undefined;
  if (endpoint === undefined || environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return undefined;
  if (environment["OTEL_TRACES_EXPORTER"]?.toLowerCase() === "none" || hasProvider()) return undefined;
  const sdk = await loadSdk();
  if (!sdk) {
    log.warn(
      {},
      "OTEL_EXPORTER_OTLP_ENDPOINT is set, but no traces are sent: npm install @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-http @opentelemetry/resources",
    );
    return undefined;
  }
  const { NodeTracerProvider, BatchSpanProcessor, OTLPTraceExporter, resources } = sdk;
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = resources;
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "truewire" }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  return {
    tracer: provider.getTracer("truewire"),
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, flushTimeoutMs);
      });
      // A collector that does not answer must not keep the server from stopping.
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
    },
  };
}

/** Whether the process has an SDK, which creates spans with ids. The probe span is never ended, so it is not exported. */
function hasProvider(): boolean {
  return trace.isSpanContextValid(trace.getTracer("truewire").startSpan("probe").spanContext());
}

/** Imports the optional peer dependencies; undefined if one is missing. */
async function loadSdk() {
  try {
    const [{ NodeTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, resources] = await Promise.all([
      import("@opentelemetry/sdk-trace-node"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
    ]);
    return { NodeTracerProvider, BatchSpanProcessor, OTLPTraceExporter, resources };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
