import type { Exchange } from "../../src/check/rules/exchange.ts";
import type { FinishReason, GenerationEvent, TokenLogprob } from "../../src/generation/event.ts";
import { chatEndpoint } from "../../src/wire/chat/endpoint.ts";
import { completionsEndpoint } from "../../src/wire/completions/endpoint.ts";
import { answerId, toolCallId } from "../../src/wire/ids.ts";
import { lean, openai } from "../../src/wire/profile.ts";
import { between, oneOf, seeded } from "./random.ts";

const words = [
  "Hello",
  " world",
  ", ",
  "über",
  " 日本",
  "🦙",
  "\n\n",
  ' "quoted"',
  "\\",
  " end.",
  "data: x",
  " 1 < 2 & 3 > 2",
];

/**
 * A legal streamed exchange, made by our own reader and writer from random events: any endpoint and profile, one to three choices,
 * text, reasoning, refusals, calls, log probabilities, usage, errors.
 */
export function legalExchange(seed: number): Exchange {
  const random = seeded(seed);
  const chat = random() < 0.85;
  const body = chat ? chatBody(random) : completionsBody(random);
  const endpoint = chat ? chatEndpoint : completionsEndpoint;
  const { asked } = endpoint.readRequest(body, "req_1");
  const created = between(1_700_000_000, 1_800_000_000, random);
  const writer = endpoint.streamWriter({
    profile: oneOf([lean, openai], random),
    asked,
    id: answerId(chat ? "chatcmpl-" : "cmpl-", created, random),
    created,
    model: "m",
    settings: {},
    random,
  });
  const text = batches(eventsFor(body, chat, random), random).map((batch) => writer.write(batch));
  return {
    endpoint: chat ? "chat" : "completions",
    request: { method: "POST", path: chat ? "/v1/chat/completions" : "/v1/completions", body },
    response: {
      status: 200,
      headers: { "content-type": "text/event-stream; charset=utf-8", "x-request-id": "req_1" },
      body: text.join(""),
      complete: true,
    },
  };
}

function chatBody(random: () => number): Record<string, unknown> {
  const body: Record<string, unknown> = { model: "m", messages: [{ role: "user", content: "Hi" }], stream: true };
  if (random() < 0.5) body.stream_options = { include_usage: true };
  if (random() < 0.25) body.n = between(2, 3, random);
  if (random() < 0.3) Object.assign(body, { logprobs: true, top_logprobs: between(0, 3, random) });
  if (random() < 0.5) {
    body.tools = ["f", "get_weather"].map((name) => ({
      type: "function",
      function: { name, parameters: { type: "object", properties: {} } },
    }));
    const choice = oneOf(
      [undefined, "auto", "none", "required", { type: "function", function: { name: "f" } }],
      random,
    );
    if (choice !== undefined) body.tool_choice = choice;
    if (random() < 0.3) body.parallel_tool_calls = false;
  }
  if (random() < 0.2) body.stop = ["<stop>"];
  if (random() < 0.2) body.max_completion_tokens = 1000;
  return body;
}

function completionsBody(random: () => number): Record<string, unknown> {
  const body: Record<string, unknown> = { model: "m", prompt: "Once", stream: true };
  if (random() < 0.5) body.stream_options = { include_usage: true };
  if (random() < 0.3) body.n = 2;
  return body;
}

function eventsFor(body: Record<string, unknown>, chat: boolean, random: () => number): GenerationEvent[] {
  const n = typeof body.n === "number" ? body.n : 1;
  const tracks = Array.from({ length: n }, (_, choice) =>
    chat ? chatChoice(choice, body, random) : textChoice(choice, random),
  );
  const events: GenerationEvent[] = [];
  while (tracks.some((track) => track.length > 0)) {
    const event = oneOf(
      tracks.filter((track) => track.length > 0),
      random,
    ).shift();
    if (event) events.push(event);
  }
  if (random() < 0.1) {
    const failure = { message: "The engine failed.", status: 500, type: "server_error" };
    return [
      ...events.slice(0, between(1, events.length, random)),
      { type: "end", end: { kind: "engine-error", failure } },
    ];
  }
  events.push({
    type: "usage",
    usage: { promptTokens: 7, completionTokens: 20 * n, promptDetails: { cached_tokens: 3 } },
  });
  return [...events, { type: "end", end: { kind: "done" } }];
}

function textChoice(choice: number, random: () => number): GenerationEvent[] {
  const deltas = Array.from(
    { length: between(1, 6, random) },
    () => ({ type: "text-delta", choice, text: oneOf(words, random) }) as const,
  );
  return [
    { type: "start", choice },
    ...deltas,
    { type: "finish", choice, reason: oneOf(["stop", "length"] as const, random) },
  ];
}

function chatChoice(choice: number, body: Record<string, unknown>, random: () => number): GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: "start", choice }];
  const calls = callCount(body, random);
  if (random() < 0.2) events.push({ type: "reasoning-delta", choice, text: "Let me think." });
  if (calls === 0 && random() < 0.1) {
    events.push({ type: "refusal-delta", choice, text: "I'm" }, { type: "refusal-delta", choice, text: " sorry." });
    return [...events, { type: "finish", choice, reason: "stop" }];
  }
  const texts = calls > 0 ? between(0, 2, random) : between(1, 8, random);
  for (let i = 0; i < texts; i++) {
    const text = oneOf(words, random);
    events.push({
      type: "text-delta",
      choice,
      text,
      ...(body.logprobs === true && { logprobs: [logprob(text, body.top_logprobs as number)] }),
    });
  }
  for (let index = 0; index < calls; index++) {
    const named = typeof body.tool_choice === "object";
    events.push({
      type: "tool-call-start",
      choice,
      index,
      id: toolCallId(random),
      name: named ? "f" : oneOf(["f", "get_weather"], random),
    });
    for (const piece of pieces(oneOf(["{}", '{"city":"Köln"}', '{"a":[1,2,{"b":null}],"c":"x y"}'], random), random)) {
      events.push({ type: "tool-call-delta", choice, index, arguments: piece });
    }
    events.push({ type: "tool-call-end", choice, index, status: "succeeded" });
  }
  const reason: FinishReason = calls > 0 ? "tool-calls" : oneOf(["stop", "stop", "length"] as const, random);
  return [...events, { type: "finish", choice, reason }];
}

function callCount(body: Record<string, unknown>, random: () => number): number {
  if (body.tools === undefined || body.tool_choice === "none") return 0;
  const forced = body.tool_choice === "required" || typeof body.tool_choice === "object";
  return between(forced ? 1 : 0, body.parallel_tool_calls === false ? 1 : 3, random);
}

function logprob(token: string, top: number): TokenLogprob {
  const bytes = [...new TextEncoder().encode(token)];
  const alternatives = [" a", " b", " c"]
    .slice(0, top)
    .map((text, i) => ({ token: text, logprob: -1.5 - i, bytes: [...new TextEncoder().encode(text)] }));
  return { token, logprob: -0.25, bytes, top: alternatives };
}

function pieces(text: string, random: () => number): string[] {
  const out: string[] = [];
  for (let at = 0; at < text.length;) {
    const next = at + between(1, 5, random);
    out.push(text.slice(at, next));
    at = next;
  }
  return out;
}

function batches(events: readonly GenerationEvent[], random: () => number): GenerationEvent[][] {
  const out: GenerationEvent[][] = [];
  for (let at = 0; at < events.length;) {
    const next = at + between(1, 4, random);
    out.push(events.slice(at, next));
    at = next;
  }
  return out;
}
