import type { FinishReason, GenerationEvent, TokenLogprob } from "../../../src/wire/core/events.ts";
import { toolCallId } from "../../../src/wire/apis/ids.ts";
import { between, oneOf } from "../random.ts";

export const words: readonly string[] = [
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
  "event: x",
  "data: {}",
  " 1 < 2 & 3 > 2",
];

/** The events of an answer to a request, in an order in which they may come; `mayFail`: one in ten ends with an error. */
export function eventsFor(body: Record<string, unknown>, random: () => number, mayFail: boolean): GenerationEvent[] {
  const chat = "messages" in body;
  const n = typeof body.n === "number" ? body.n : 1;
  const tracks = Array.from({ length: n }, (_, choice) =>
    chat ? chatChoice(choice, body, random) : textChoice(choice, body, random),
  );
  const events: GenerationEvent[] = [];
  while (tracks.some((track) => track.length > 0)) {
    const event = oneOf(
      tracks.filter((track) => track.length > 0),
      random,
    ).shift();
    if (event) events.push(event);
  }
  if (mayFail && random() < 0.1) {
    const failure = { message: "The engine failed.", status: 500, kind: "internal" as const };
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

function textChoice(choice: number, body: Record<string, unknown>, random: () => number): GenerationEvent[] {
  const deltas = Array.from({ length: between(1, 6, random) }, () => {
    const text = oneOf(words, random);
    const logprobs = typeof body.logprobs === "number" && { logprobs: [logprob(text, body.logprobs)] };
    return { type: "text-delta", choice, text, ...logprobs } as const;
  });
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

export function logprob(token: string, top: number): TokenLogprob {
  const bytes = [...new TextEncoder().encode(token)];
  const alternatives = [" a", " b", " c"]
    .slice(0, top)
    .map((text, i) => ({ token: text, logprob: -1.5 - i, bytes: [...new TextEncoder().encode(text)] }));
  return { token, logprob: -0.25, bytes, top: alternatives };
}

export function pieces(text: string, random: () => number): string[] {
  const out: string[] = [];
  for (let at = 0; at < text.length;) {
    const next = at + between(1, 5, random);
    out.push(text.slice(at, next));
    at = next;
  }
  return out;
}

/** Events as they might become known together. */
export function batches(events: readonly GenerationEvent[], random: () => number): GenerationEvent[][] {
  const out: GenerationEvent[][] = [];
  for (let at = 0; at < events.length;) {
    const next = at + between(1, 4, random);
    out.push(events.slice(at, next));
    at = next;
  }
  return out;
}
