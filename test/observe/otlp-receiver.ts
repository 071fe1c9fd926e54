import { listen } from "../support/listen.ts";

/** A span as OTLP's JSON has it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Attributes of the resource that sent the last spans. */
  readonly resource: () => Readonly<Record<string, unknown>>;
  /** Everything that came, as it came. */
  readonly text: () => string;
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, "attributes"> & { readonly attributes: readonly Attribute[] })[];
    }[];
  }[];
}

/** A collector that takes traces by OTLP over HTTP as JSON, and keeps them. */
export async function startReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let resource: Readonly<Record<string, unknown>> = {};
  let all = "";
  const { url, close } = await listen((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      if (request.url !== "/v1/traces" || request.headers["content-type"] !== "application/json") {
        response.writeHead(415).end();
        return;
      }
      all += text;
      for (const sent of (JSON.parse(text) as Export).resourceSpans) {
        resource = valuesOf(sent.resource.attributes);
        for (const { spans: some } of sent.scopeSpans)
          for (const span of some) spans.push({ ...span, attributes: valuesOf(span.attributes) });
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  return { url, spans, resource: () => resource, text: () => all, close };
}

function valuesOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
