import { trace } from "@opentelemetry/api";
import type { Tracer } from "@opentelemetry/api";
import type { Log } from "../log.ts";
import type { Environment } from "./tracing.ts";

export interface TraceExport {
  readonly tracer: Tracer;
  /** Sends what has not been sent. */
  close(): Promise<void>;
}

/** How long the last spans may take to be sent when the server stops, in milliseconds. */
const farewellMs = 3000;

/**
 * Sends spans by OTLP (HTTP, JSON) where the environment names a collector. OpenTelemetry's SDK reads its other variables
 * (`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`, `OTEL_EXPORTER_OTLP_HEADERS`) itself. Nothing is registered for the whole
 * process: that is for the process's owner to do, and where it was done, spans go there. undefined: nothing is exported, because nobody
 * asked, or because a package is missing, which the log then says.
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
        timer = setTimeout(resolve, farewellMs);
      });
      // A collector that is gone must not keep the server from stopping.
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
    },
  };
}

/** Whether the process has an SDK of its own, which makes spans with ids. One that never ends is never sent. */
function hasProvider(): boolean {
  return trace.isSpanContextValid(trace.getTracer("truewire").startSpan("probe").spanContext());
}

/** Optional peers. undefined: one is missing. */
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
