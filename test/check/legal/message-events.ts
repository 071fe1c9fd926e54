import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import { toolUseId } from "../../../src/wire/apis/messages/ids.ts";
import { between, oneOf } from "../random.ts";
import { pieces, words } from "./events.ts";

const choice = 0;

/** A request for a message, of any kind but for `stream`. */
export function messageRequest(random: () => number): Record<string, unknown> {
  const body: Record<string, unknown> = {
    model: "m",
    max_tokens: 4000,
    messages: [{ role: "user", content: oneOf(["Hi", [{ type: "text", text: "Hi" }]], random) }],
  };
  if (random() < 0.3) body.system = "You are brief.";
  if (random() < 0.2) body.stop_sequences = ["<stop>", "\n\nHuman:"];
  if (random() < 0.5) {
    body.tools = ["f", "get_weather"].map((name) => ({ name, input_schema: { type: "object", properties: {} } }));
    const type = oneOf([undefined, "auto", "none", "any", "tool"], random);
    if (type !== undefined) body.tool_choice = type === "tool" ? { type, name: "f" } : { type };
    if (type !== undefined && type !== "none" && random() < 0.3)
      Object.assign(body.tool_choice as object, { disable_parallel_tool_use: true });
  } else if (random() < 0.2) body.output_config = { format: { type: "json_schema", schema } };
  const thinking = oneOf(
    [
      undefined,
      { type: "disabled" },
      { type: "adaptive" },
      { type: "adaptive", display: "omitted" },
      { type: "enabled", budget_tokens: 1024 },
    ],
    random,
  );
  // A call is not forced where the model reasons with a budget.
  const isForced = /^(?:any|tool)$/.test(String((body.tool_choice as { type?: unknown } | undefined)?.type));
  if (thinking && !(isForced && thinking.type === "enabled")) body.thinking = thinking;
  return body;
}

/** The events of an answer to a request, in an order in which they may come; `mayFail`: one in ten ends with an error. */
export function messageEventsFor(
  body: Record<string, unknown>,
  random: () => number,
  mayFail: boolean,
): GenerationEvent[] {
  const promptDetails = { cached_tokens: 3, cache_write_tokens: oneOf([0, 2], random) };
  const begun: GenerationEvent[] = [
    { type: "usage", usage: { promptTokens: 9, completionTokens: 0, promptDetails } },
    { type: "start", choice },
  ];
  const events = [...begun, ...saidFor(body, random)];
  if (mayFail && random() < 0.1) {
    const failure = oneOf(
      [
        { message: "The engine failed.", status: 500, kind: "internal" },
        { message: "Busy.", status: 503, kind: "overloaded" },
        { message: "Gone.", status: 502, kind: "bad-answer" },
      ] as const,
      random,
    );
    const cut = events.slice(0, between(1, events.length, random));
    return [...cut, { type: "end", end: { kind: "engine-error", failure } }];
  }
  const thought = { reasoning_tokens: between(0, 5, random) };
  const usage = { promptTokens: 9, completionTokens: 40, promptDetails, completionDetails: thought };
  return [...events, { type: "usage", usage }, { type: "end", end: { kind: "done" } }];
}

/** What the answer of `saidFor` matches. Anthropic accepts only closed schemas. */
const schema = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  additionalProperties: false,
};

function saidFor(body: Record<string, unknown>, random: () => number): GenerationEvent[] {
  const calls = callCount(body, random);
  const events: GenerationEvent[] = random() < 0.5 ? thoughtOf(random) : [];
  if ("output_config" in body) {
    for (const text of pieces('{"name":"Ada","age":36}', random)) events.push({ type: "text-delta", choice, text });
    return [...events, { type: "finish", choice, reason: "stop" }];
  }
  const texts = calls > 0 ? between(0, 3, random) : between(1, 8, random);
  for (let i = 0; i < texts; i++) events.push({ type: "text-delta", choice, text: oneOf(words, random) });
  for (let index = 0; index < calls; index++) {
    if (index > 0 && random() < 0.2) events.push({ type: "text-delta", choice, text: "And then:" });
    events.push(...callOf(body, index, random));
  }
  const isCut = random() < 0.1;
  // The limit cuts a call before its end.
  if (isCut && events.at(-1)?.type === "tool-call-end") events.pop();
  if (isCut) return [...events, { type: "finish", choice, reason: "length", limit: "max-tokens" }];
  if (calls > 0) return [...events, { type: "finish", choice, reason: "tool-calls" }];
  const [stop] = random() < 0.5 && Array.isArray(body.stop_sequences) ? (body.stop_sequences as string[]) : [];
  return [...events, { type: "finish", choice, reason: "stop", ...(stop !== undefined && { stop }) }];
}

function thoughtOf(random: () => number): GenerationEvent[] {
  const text = "Let me think about it.";
  const deltas = pieces(text, random).map((piece) => ({ type: "reasoning-delta", choice, text: piece }) as const);
  return oneOf<GenerationEvent[]>(
    [
      deltas,
      [
        { type: "part-start", choice, kind: "reasoning" },
        ...deltas,
        { type: "part-end", choice, state: { kind: "signature", value: "c2lnbmF0dXJl" } },
      ],
      [
        { type: "part-start", choice, kind: "reasoning" },
        { type: "part-end", choice, state: { kind: "redacted", value: "ZW5jcnlwdGVk" } },
      ],
    ],
    random,
  );
}

function callOf(body: Record<string, unknown>, index: number, random: () => number): GenerationEvent[] {
  const isNamed = (body.tool_choice as { type?: unknown } | undefined)?.type === "tool";
  const name = isNamed ? "f" : oneOf(["f", "get_weather"], random);
  const json = oneOf(["{}", "", '{"city":"Köln"}', '{"a":[1,2,{"b":null}],"c":"x y"}'], random);
  return [
    { type: "tool-call-start", choice, index, id: toolUseId(random), name },
    ...pieces(json, random).map((text) => ({ type: "tool-call-delta", choice, index, arguments: text }) as const),
    { type: "tool-call-end", choice, index, status: "succeeded" },
  ];
}

function callCount(body: Record<string, unknown>, random: () => number): number {
  const choice = body.tool_choice as { type?: unknown; disable_parallel_tool_use?: unknown } | undefined;
  if (body.tools === undefined || choice?.type === "none") return 0;
  const isForced = choice?.type === "any" || choice?.type === "tool";
  return between(isForced ? 1 : 0, choice?.disable_parallel_tool_use === true ? 1 : 3, random);
}
