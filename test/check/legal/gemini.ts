import { runSync } from "../../../src/wire/core/steps.ts";
import { accumulate } from "../../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import { invalidRequest } from "../../../src/wire/core/failure.ts";
import { exact, lean, type Profile } from "../../../src/wire/apis/profile.ts";
import { geminiErrorFormat, geminiPort } from "../../../src/wire/apis/gemini/port.ts";
import { geminiModels, writeTokenCount } from "../../../src/wire/apis/gemini/models.ts";
import { modelNotFound } from "../../../src/wire/apis/failures.ts";
import { between, oneOf, seeded } from "../random.ts";
import { exchangeOf } from "./exchange-of.ts";
import type { Legal } from "./stream.ts";

/** A legal exchange of Gemini's API, written by our own writers: a stream in both forms, a whole answer, a list, a count, or an error. */
export function legalGemini(seed: number): Legal {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const kind = random();
  const exchange =
    kind < 0.75 ? generated(profile, random) : kind < 0.88 ? described(random) : refused(profile, random);
  return { exchange, profile };
}

/** Whole, as events, and as a list. */
const ways = [":generateContent", ":streamGenerateContent?alt=sse", ":streamGenerateContent"] as const;

function generated(profile: Profile, random: () => number): Exchange {
  const way = oneOf(ways, random);
  const isJson = random() < 0.3;
  const calls = !isJson && random() < 0.4;
  const thinks = random() < 0.5;
  const body: Record<string, unknown> = {
    contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    generationConfig: {
      maxOutputTokens: 20,
      stopSequences: ["END"],
      thinkingConfig: thinks ? { includeThoughts: true } : { thinkingBudget: 0 },
      ...(isJson && { responseMimeType: "application/json" }),
    },
    ...(calls && { tools: [{ functionDeclarations: [{ name: "f" }, { name: "g" }] }] }),
    ...(!isJson && { toolConfig: { functionCallingConfig: { mode: calls ? "ANY" : "NONE" } } }),
  };
  const text = isJson ? ['{"a"', ": 1}"] : ["Hel", "lo <", "b> 😀"].slice(0, between(1, 3, random));
  const events: GenerationEvent[] = [
    { type: "start", choice: 0 },
    ...(thinks ? [{ type: "reasoning-delta", choice: 0, text: "Hm." } as const] : []),
    ...text.map((one): GenerationEvent => ({ type: "text-delta", choice: 0, text: one })),
    ...(calls ? ["f", "g"].flatMap(call) : []),
    { type: "finish", choice: 0, reason: !isJson && !calls && random() < 0.3 ? "length" : "stop" },
    { type: "usage", usage: { promptTokens: 4, completionTokens: 7 } },
    { type: "end", end: { kind: "done" } },
  ];
  const streams = way !== ":generateContent";
  const isSse = way.endsWith("sse");
  const query = (name: string): string | undefined => (name === "alt" && isSse ? "sse" : undefined);
  const read = runSync(geminiPort.readRequest({ ...body, model: "m", stream: streams }, "req_1", { profile, query }));
  const context = { profile, created: 1_800_000_000, model: "m", settings: {}, random };
  const written = streams ? read.streamWriter(context).write(events) : read.writeResponse(accumulate(events), context);
  const type = isSse ? "text/event-stream" : "application/json; charset=UTF-8";
  return exchangeOf("gemini", `/v1beta/models/m${way}`, written, { body, type });
}

function call(name: string, index: number): GenerationEvent[] {
  return [
    { type: "tool-call-start", choice: 0, index, id: `call_${index}`, name },
    { type: "tool-call-delta", choice: 0, index, arguments: '{"a": 1}' },
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ];
}

function described(random: () => number): Exchange {
  const info = {
    id: "small",
    created: 1_800_000_000,
    ownedBy: "local",
    endpoints: ["chat" as const],
    contextLength: 4096,
  };
  return oneOf(
    [
      () => exchangeOf("gemini-models", "/v1beta/models", geminiModels.list([info], () => []) ?? ""),
      () => exchangeOf("gemini-model", "/v1beta/models/small", geminiModels.one(info) ?? ""),
      () => exchangeOf("gemini-tokens", "/v1beta/models/m:countTokens", writeTokenCount(7)),
    ],
    random,
  )();
}

function refused(profile: Profile, random: () => number): Exchange {
  const { failure } = oneOf([modelNotFound("x", ["m"]), invalidRequest("contents is not specified")], random);
  const { status, body } = geminiErrorFormat.writeFailure(failure, profile, "req_1");
  return exchangeOf("gemini", "/v1beta/models/m:generateContent", body, { status });
}
