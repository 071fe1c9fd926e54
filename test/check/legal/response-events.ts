import type { FinishReason, GenerationEvent } from "../../../src/wire/core/events.ts";
import { toolCallId } from "../../../src/wire/apis/ids.ts";
import { between, oneOf } from "../random.ts";
import { logprob, pieces, words } from "./events.ts";

type Body = Readonly<Record<string, unknown>>;

/**
 * The events of an answer to a request, in an order in which they may come: thoughts, texts, refusals, calls; `mayFail`: one in ten
 * fails, anywhere: before its calls, between them, or in the middle of one.
 */
export function responseEventsFor(body: Body, random: () => number, mayFail: boolean): GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: "start", choice: 0 }];
  if (random() < 0.4) events.push(...thought(random));
  const calls = callsFor(body, random);
  if (body.text !== undefined) events.push(...spoken(pieces('{"a": 1}', random), body));
  else if (calls.length === 0 && random() < 0.1) events.push(...refusal);
  else if (calls.length === 0 || random() < 0.3) events.push(...text(body, random));
  const cut = body.text === undefined && random() < 0.15;
  for (const [index, call] of calls.entries())
    events.push(...callEvents(call, index, random, cut && index === calls.length - 1));
  const reason: FinishReason = cut ? "length" : calls.length > 0 ? "tool-calls" : "stop";
  const usage = {
    promptTokens: 7,
    completionTokens: 20,
    promptDetails: { cached_tokens: 3 },
    completionDetails: { reasoning_tokens: 4 },
  };
  if (mayFail && random() < 0.1) {
    const failure = { message: "The engine failed.", status: 500, kind: "internal" as const };
    return [
      ...events.slice(0, between(1, events.length, random)),
      { type: "usage", usage },
      { type: "end", end: { kind: "engine-error", failure } },
    ];
  }
  return [
    ...events,
    { type: "finish", choice: 0, reason },
    { type: "usage", usage },
    { type: "end", end: { kind: "done" } },
  ];
}

const refusal: readonly GenerationEvent[] = [
  { type: "refusal-delta", choice: 0, text: "I'm" },
  { type: "refusal-delta", choice: 0, text: " sorry." },
];

function thought(random: () => number): GenerationEvent[] {
  if (random() < 0.5)
    return pieces("Let me think about it.", random).map((text) => ({ type: "reasoning-delta", choice: 0, text }));
  return [0, 0, 1].map((summary) => ({ type: "reasoning-delta", choice: 0, text: oneOf(words, random), summary }));
}

function text(body: Body, random: () => number): GenerationEvent[] {
  const phase = oneOf([undefined, undefined, "final_answer" as const], random);
  const begin = phase === undefined ? [] : [{ type: "part-start", choice: 0, kind: "text", phase } as const];
  const said = Array.from({ length: between(1, 8, random) }, () => oneOf(words, random));
  const cited = {
    type: "annotation",
    choice: 0,
    annotation: { url: "https://example.com/", title: "t", start: 0, end: 1 },
  } as const;
  return [...begin, ...spoken(said, body), ...(random() < 0.1 ? [cited] : [])];
}

function spoken(said: readonly string[], body: Body): GenerationEvent[] {
  const wanted = Array.isArray(body.include) && body.include.includes("message.output_text.logprobs");
  return said.map((piece) => ({
    type: "text-delta",
    choice: 0,
    text: piece,
    ...(wanted && { logprobs: [logprob(piece, body.top_logprobs as number)] }),
  }));
}

interface Call {
  readonly name: string;
  readonly kind: "function" | "custom";
}

const callable: readonly Call[] = [
  { name: "f", kind: "function" },
  { name: "get_weather", kind: "function" },
  { name: "patch", kind: "custom" },
  { name: "crm__find", kind: "function" },
];

function callsFor({ tools, tool_choice: choice, parallel_tool_calls: parallel }: Body, random: () => number): Call[] {
  if (tools === undefined || choice === "none") return [];
  const { type } = (typeof choice === "object" ? choice : {}) as { type?: string };
  const mayBe = callable.filter(({ name }) => {
    if (type === "function") return name === "f";
    return type !== "allowed_tools" || name === "f" || name === "patch";
  });
  const least = choice === "required" || type === "function" ? 1 : 0;
  return Array.from({ length: between(least, parallel === false ? 1 : 3, random) }, () => oneOf(mayBe, random));
}

function callEvents({ name, kind }: Call, index: number, random: () => number, cut: boolean): GenerationEvent[] {
  const input =
    kind === "custom"
      ? "*** Begin\n+ü"
      : oneOf(["", "{}", '{"city":"Köln"}', '{"a":[1,2,{"b":null}],"c":"x y"}'], random);
  const deltas = pieces(cut ? '{"city":"K' : input, random);
  return [
    { type: "tool-call-start", choice: 0, index, id: toolCallId(random), name, kind },
    ...deltas.map((piece): GenerationEvent => ({ type: "tool-call-delta", choice: 0, index, arguments: piece })),
    // A reader of raw text ends it as failed, others do not end it at all.
    ...(cut && random() < 0.5 ? [] : [ended(index, cut ? "failed" : "succeeded")]),
  ];
}

function ended(index: number, status: "succeeded" | "failed"): GenerationEvent {
  return { type: "tool-call-end", choice: 0, index, status };
}
