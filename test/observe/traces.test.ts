import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-node";
import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { answer, asked, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, json, serving } from "../support/transports.ts";
import { say, startScripted } from "../upstream/scripted-server.ts";

const exporter = new InMemorySpanExporter();
const client = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const traceparent = `00-${client.trace}-${client.span}-01`;

const closing: (() => unknown)[] = [];
beforeEach(() => exporter.reset());
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(config: TruewireConfig): Promise<TruewireServer> {
  const server = await createServer({ port: 0, logLevel: "silent", ...config });
  closing.push(() => server.close(0));
  return server;
}

async function post({ url }: TruewireServer, path: string, init: RequestInit, more = {}): Promise<Response> {
  const headers = { ...(init.headers as Record<string, string>), ...more };
  const response = await fetch(`${url}${path}`, { ...init, headers });
  await response.clone().text();
  return response;
}

/** The spans of the last request, once the server's own is there, which ends last. */
async function spans(): Promise<ReadableSpan[]> {
  await until(() => exporter.getFinishedSpans().some(({ kind }) => kind === SpanKind.SERVER), "the request has a span");
  return exporter.getFinishedSpans();
}

function named(all: readonly ReadableSpan[], name: string): ReadableSpan {
  const found = all.filter((span) => span.name === name);
  if (found.length !== 1 || !found[0]) throw new Error(`${found.length} spans are called ${name}`);
  return found[0];
}

/** Upstreams that answer: the first one always fails. */
async function upstreams(): Promise<{ config: TruewireConfig; works: Awaited<ReturnType<typeof startScripted>> }> {
  const works = await startScripted((response, body) => say(response, body, "Hi"));
  const broken = await startScripted((response) => response.writeHead(503).end("{}"));
  closing.push(works.close, broken.close);
  const models: TruewireConfig["models"] = [
    { kind: "upstream", name: "up", url: [broken.url, works.url], models: ["m"], retries: 3 },
  ];
  return { config: { models }, works };
}

describe("without a tracer", () => {
  test("a client's trace goes on to other servers as it came; without one, none is made up", async () => {
    const { config, works } = await upstreams();
    const server = await serve(config);
    const state = { traceparent, tracestate: "vendor=1" };
    await post(server, "/v1/chat/completions", chat("hi", { model: "m" }), state);
    await post(server, "/v1/chat/completions", chat("hi", { model: "m" }));
    expect(works.requests.map(({ headers }) => [headers["traceparent"], headers["tracestate"]])).toEqual([
      [traceparent, "vendor=1"],
      [undefined, undefined],
    ]);
    expect(exporter.getFinishedSpans()).toEqual([]);
  });
});

describe("with the tracer that the process has", () => {
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  beforeAll(() => provider.register());
  afterAll(async () => {
    trace.disable();
    await provider.shutdown();
  });

  const usage = { promptTokens: 7, completionTokens: 3, promptDetails: { cached_tokens: 4 } };
  const engine = new ScriptedEngine((request) =>
    asked(request) === "fail" ? [[failed("engine-error", { status: 503 })]] : answer(["a", "b", "c"], { usage }),
  );

  test("a request has a span, within the client's trace, and its operation one within that", async () => {
    const server = await serve(serving(engine));
    const options = { temperature: 0.5, max_tokens: 9, seed: 3, stream: true };
    await post(server, "/chat/completions", chat("hi", options), { traceparent });
    const all = await spans();
    const request = named(all, "POST /v1/chat/completions");
    expect(request.spanContext().traceId).toBe(client.trace);
    expect(request.parentSpanContext?.spanId).toBe(client.span);
    expect(request.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/v1/chat/completions",
      "http.response.status_code": 200,
    });
    const operation = named(all, "chat scripted");
    expect(operation.parentSpanContext?.spanId).toBe(request.spanContext().spanId);
    expect(operation.attributes).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "truewire",
      "gen_ai.request.model": "scripted",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.max_tokens": 9,
      "gen_ai.request.seed": 3,
      "gen_ai.request.stream": true,
      "gen_ai.usage.input_tokens": 7,
      "gen_ai.usage.output_tokens": 3,
      "gen_ai.usage.cache_read.input_tokens": 4,
      "gen_ai.response.finish_reasons": ["stop"],
    });
    expect(operation.events.map(({ name }) => name)).toEqual(["first_token"]);
    expect(all).toHaveLength(2);
  });

  test("every API has its spans, and what is not an answer of a model has none", async () => {
    const server = await serve(serving(engine));
    await fetch(`${server.url}/health`);
    await fetch(`${server.url}/v1/models`);
    await post(server, "/v1/completions", json({ model: "scripted", prompt: "hi" }));
    expect((await spans()).map(({ name }) => name)).toEqual(["text_completion scripted", "POST /v1/completions"]);
    exporter.reset();
    await post(server, "/v1/responses", json({ model: "scripted", input: "hi" }));
    expect((await spans()).map(({ name }) => name)).toEqual(["chat scripted", "POST /v1/responses"]);
    exporter.reset();
    const messages = [{ role: "user", content: "hi" }];
    await post(server, "/v1/messages", json({ model: "scripted", max_tokens: 9, messages }));
    expect((await spans()).map(({ name }) => name)).toEqual(["chat scripted", "POST /v1/messages"]);
  });

  test("failures have a type; a client's mistake is no error of the server's", async () => {
    const server = await serve(serving(engine));
    await post(server, "/v1/chat/completions", chat("fail"));
    const broken = await spans();
    for (const name of ["POST /v1/chat/completions", "chat scripted"]) {
      expect(named(broken, name).attributes["error.type"]).toBe("unavailable");
      expect(named(broken, name).status.code).toBe(SpanStatusCode.ERROR);
    }
    exporter.reset();
    await post(server, "/v1/chat/completions", chat("hi", { n: 0 }));
    const refused = named(await spans(), "POST /v1/chat/completions");
    expect(refused.attributes).toMatchObject({ "error.type": "invalid-request", "http.response.status_code": 400 });
    expect(refused.status.code).toBe(SpanStatusCode.UNSET);
  });

  test("each attempt at another server has a span, whose context that server gets", async () => {
    const { config, works } = await upstreams();
    const server = await serve(config);
    // The two take turns: of two requests, one begins with the broken one.
    for (let i = 0; i < 2; i++) {
      exporter.reset();
      await post(server, "/v1/chat/completions", chat("hi", { model: "m", stream: i === 1 }), { traceparent });
      const all = await spans();
      const operation = named(all, "chat m");
      const attempts = all.filter(({ name }) => name === "attempt");
      const last = attempts.at(-1);
      expect(last?.attributes).toMatchObject({ "url.full": works.url, "server.address": "127.0.0.1" });
      expect(last?.status.code).toBe(SpanStatusCode.UNSET);
      const sent = works.requests.at(-1)?.headers["traceparent"];
      expect(sent).toBe(`00-${client.trace}-${last?.spanContext().spanId}-01`);
      for (const { parentSpanContext, kind } of attempts) {
        expect(parentSpanContext?.spanId).toBe(operation.spanContext().spanId);
        expect(kind).toBe(SpanKind.CLIENT);
      }
      for (const failure of attempts.slice(0, -1))
        expect(failure.attributes["error.type"], "of an attempt that failed").toBe("unavailable");
      expect(attempts.length).toBeLessThanOrEqual(2);
    }
  });

  test("it is that one, whatever collector the environment names", async () => {
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9";
    const server = await serve(serving(engine));
    delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
    await post(server, "/v1/chat/completions", chat("hi"));
    expect((await spans()).map(({ name }) => name)).toEqual(["chat scripted", "POST /v1/chat/completions"]);
  });

  test("embeddings have the same spans", async () => {
    const embedder = await startScripted((response) => {
      const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data, model: "m", usage: { prompt_tokens: 2, total_tokens: 2 } }));
    });
    closing.push(embedder.close);
    const server = await serve({ models: [{ kind: "upstream", name: "up", url: embedder.url, models: ["m"] }] });
    const response = await post(server, "/v1/embeddings", json({ model: "m", input: "hi" }), { traceparent });
    expect(response.status).toBe(200);
    const all = await spans();
    expect(all.map(({ name }) => name)).toEqual(["attempt", "embeddings m", "POST /v1/embeddings"]);
    expect(named(all, "embeddings m").attributes["gen_ai.usage.input_tokens"]).toBe(2);
    const sent = embedder.requests[0]?.headers["traceparent"];
    expect(sent).toBe(`00-${client.trace}-${named(all, "attempt").spanContext().spanId}-01`);
  });

  test("a trace that is not sampled is handed on, and not recorded", async () => {
    const { config, works } = await upstreams();
    const server = await serve(config);
    await post(server, "/v1/chat/completions", chat("hi", { model: "m" }), {
      traceparent: traceparent.replace(/01$/, "00"),
    });
    expect(works.requests[0]?.headers["traceparent"]).toMatch(new RegExp(`^00-${client.trace}-[0-9a-f]{16}-00$`));
    expect(exporter.getFinishedSpans()).toEqual([]);
  });

  test("prompts and answers are told only where the environment asks for them", async () => {
    const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    for (const [value, isTold] of [
      [undefined, false],
      ["false", false],
      ["true", true],
      ["SPAN_ONLY", true],
    ] as const) {
      if (value !== undefined) process.env[name] = value;
      const server = await serve({ ...serving(engine), apiKey: "sk-0123456789" });
      delete process.env[name];
      exporter.reset();
      const bearer = { authorization: "Bearer sk-0123456789" };
      await post(server, "/v1/chat/completions", chat("What is sk-0123456789?"), bearer);
      const { attributes } = named(await spans(), "chat scripted");
      expect(attributes["gen_ai.input.messages"]).toBe(
        isTold ? '[{"role":"user","parts":[{"type":"text","content":"What is [key]?"}]}]' : undefined,
      );
      expect(attributes["gen_ai.output.messages"]).toBe(
        isTold ? '[{"role":"assistant","parts":[{"type":"text","content":"abc"}],"finish_reason":"stop"}]' : undefined,
      );
    }
  });
});
