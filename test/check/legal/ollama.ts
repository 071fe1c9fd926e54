import { runSync } from "../../../src/wire/core/steps.ts";
import { accumulate } from "../../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import { invalidRequest } from "../../../src/wire/core/failure.ts";
import { exact, lean } from "../../../src/wire/apis/profile.ts";
import { ollamaChatPort, ollamaErrorFormat, ollamaGeneratePort } from "../../../src/wire/apis/ollama/port.ts";
import { writeOllamaProcesses, writeOllamaShow, writeOllamaTags } from "../../../src/wire/apis/ollama/models.ts";
import { writeOllamaEmbed } from "../../../src/wire/apis/ollama/embed.ts";
import { modelNotFound } from "../../../src/wire/apis/failures.ts";
import { between, oneOf, seeded } from "../random.ts";
import { exchangeOf } from "./exchange-of.ts";
import type { Legal } from "./stream.ts";

/** A legal exchange of Ollama's API, written by our own writers: a stream, a whole answer, a list, a model, vectors, or an error. */
export function legalOllama(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const kind = random();
  const exchange = kind < 0.7 ? generated(random) : kind < 0.85 ? described(random) : refused(random);
  return { exchange, profile };
}

function generated(random: () => number): Exchange {
  const isChat = random() < 0.6;
  const port = isChat ? ollamaChatPort : ollamaGeneratePort;
  const isJson = random() < 0.3;
  const isOff = random() < 0.3;
  const body: Record<string, unknown> = {
    model: "m:1b",
    ...(isChat ? { messages: [{ role: "user", content: "Hi" }] } : { prompt: "Hi" }),
    ...oneOf([{ stream: false }, { stream: true }, {}], random),
    ...(isJson && { format: "json" }),
    ...(isOff && { think: false }),
    ...(random() < 0.5 && { options: { num_predict: 20, stop: ["END"] } }),
  };
  const text = isJson ? ['{"a"', ": 1}"] : ["Hel", "lo <", "b> 😀"].slice(0, between(1, 3, random));
  const events: GenerationEvent[] = [
    { type: "start", choice: 0 },
    ...(isOff || random() < 0.5 ? [] : [{ type: "reasoning-delta", choice: 0, text: "Hm." } as const]),
    ...text.map((text): GenerationEvent => ({ type: "text-delta", choice: 0, text })),
    ...(isChat && !isJson && random() < 0.4 ? call : []),
    { type: "finish", choice: 0, reason: !isJson && random() < 0.3 ? "length" : "stop" },
    ...(random() < 0.8 ? [{ type: "usage", usage: { promptTokens: 4, completionTokens: 7 } } as const] : []),
    { type: "end", end: { kind: "done" } },
  ];
  let nowMs = 1_800_000_000_000;
  const context = {
    profile: lean,
    created: 1_800_000_000,
    clock: { beganMs: nowMs, nowMs: () => (nowMs += 0.5) },
    model: "m:1b",
    settings: {},
    random,
  };
  const read = runSync(port.readRequest(body, "req_1", {}));
  const streams = read.request.stream;
  const written = streams ? read.streamWriter(context).write(events) : read.writeResponse(accumulate(events), context);
  const type = streams ? "application/x-ndjson" : "application/json; charset=utf-8";
  return exchangeOf(isChat ? "ollama-chat" : "ollama-generate", port.path, written, { body, type });
}

const call: readonly GenerationEvent[] = [
  { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"a": 1}' },
  { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
];

function described(random: () => number): Exchange {
  const info = {
    id: "small",
    created: 1_800_000_000,
    ownedBy: "local",
    endpoints: ["chat" as const],
    ...(random() < 0.5 && { contextLength: 4096 }),
  };
  const model = { info, digest: "ab".repeat(32) };
  const read = { request: { id: "r", model: "m", inputs: ["a"], extra: {} }, dimensions: 0 };
  return oneOf(
    [
      () => exchangeOf("ollama-tags", "/api/tags", writeOllamaTags([model])),
      () =>
        exchangeOf("ollama-ps", "/api/ps", writeOllamaProcesses([{ ...model, memory: 5, expiresMs: null }], 1.8e12)),
      () => exchangeOf("ollama-show", "/api/show", writeOllamaShow(info, "small", "")),
      () => exchangeOf("ollama-version", "/api/version", '{"version":"0.33.0"}'),
      () => exchangeOf("ollama-embed", "/api/embed", writeOllamaEmbed({ vectors: [[1, 2]], promptTokens: 3 }, read, 1)),
    ],
    random,
  )();
}

function refused(random: () => number): Exchange {
  const { failure } = oneOf([modelNotFound("x", ["m"]), invalidRequest("model is required")], random);
  const { status, body } = ollamaErrorFormat.writeFailure(failure, lean, "req_1");
  return exchangeOf("ollama-chat", "/api/chat", body, { status });
}
