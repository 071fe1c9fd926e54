import fc from "fast-check";
import type { ChoiceEvent, FinishReason, GenerationEvent, TokenLogprob, Usage } from "../../src/wire/core/events.ts";
import type { ReasoningState } from "../../src/wire/core/turn-state.ts";

/** What a legal generation may have; all of it by default. */
export interface LegalOptions {
  readonly logprobs?: boolean;
  readonly calls?: boolean;
  readonly reasoning?: boolean;
  readonly refusals?: boolean;
  /** Reasoning and calls have states of their source; default false. */
  readonly states?: boolean;
}

/** Any legal order of events that ends in "done", cut into batches anywhere. See core/events.ts. */
export function legalBatches(options: LegalOptions = {}): fc.Arbitrary<GenerationEvent[][]> {
  return fc
    .tuple(
      fc.array(choiceEvents(options), { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat(), { maxLength: 60 }),
      fc.option(usage()),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }),
    )
    .map(([choices, order, usage, cuts]) => {
      const numbered = choices.map((events, choice) => events.map((event): GenerationEvent => ({ ...event, choice })));
      const events = interleaved(numbered, order);
      if (usage) events.push({ type: "usage", usage });
      events.push({ type: "end", end: { kind: "done" } });
      return batched(events, cuts);
    });
}

/** Text with everything that JSON, SSE and UTF-16 make difficult; empty, too. */
export function pieces(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constantFrom(
      "",
      " ",
      "Hello",
      '"',
      "\\",
      "\n\n",
      "data: [DONE]",
      "\u2028",
      "é",
      "漢字",
      "😀",
      "\u0000",
      "</s>",
      "{}",
    ),
    fc.string({ unit: "grapheme", maxLength: 12 }),
  );
}

function choiceEvents({
  logprobs,
  calls = true,
  reasoning = true,
  refusals = true,
  states = false,
}: LegalOptions): fc.Arbitrary<ChoiceEvent[]> {
  const text = fc
    .tuple(
      pieces(),
      logprobs ? fc.option(fc.array(token(), { maxLength: 3 }), { nil: undefined }) : fc.constant(undefined),
    )
    .map(([text, logprobs]): ChoiceEvent => ({ type: "text-delta", choice: 0, text, ...(logprobs && { logprobs }) }));
  const thought = pieces().map((text): ChoiceEvent => ({ type: "reasoning-delta", choice: 0, text }));
  const kept = fc
    .tuple(
      pieces(),
      fc.constantFrom<ReasoningState>({ kind: "signature", value: "c2ln" }, { kind: "encrypted", value: "gAAA-_" }),
    )
    .map(([text, state]): ChoiceEvent[] => [
      { type: "part-start", choice: 0, kind: "reasoning" },
      { type: "reasoning-delta", choice: 0, text },
      { type: "part-end", choice: 0, state },
    ]);
  const refusal = pieces().map((text): ChoiceEvent => ({ type: "refusal-delta", choice: 0, text }));
  const markup = fc.constant<ChoiceEvent>({ type: "markup", choice: 0, raw: "<tool_call>" });
  const deltas = [text, markup, ...(reasoning ? [thought] : []), ...(refusals ? [refusal] : [])];
  const call = fc.record({
    texts: fc.array(pieces(), { maxLength: 4 }),
    hasState: states ? fc.boolean() : fc.constant(false),
  });
  return fc
    .record({
      announced: fc.constantFrom(undefined, undefined, "tool-call" as const, "tool-calls" as const, "refusal" as const),
      said: fc.array(
        fc.oneof(
          fc.oneof(...deltas).map((event) => [event]),
          ...(states ? [kept] : []),
        ),
        { maxLength: 6 },
      ),
      calls: fc.array(call, { maxLength: calls ? 3 : 0 }),
      cut: fc.boolean(),
      stop: fc.option(pieces(), { nil: undefined }),
    })
    .map(({ announced, said, calls, cut, stop }) => {
      const reason: FinishReason = cut ? "length" : calls.length > 0 ? "tool-calls" : "stop";
      return [
        { type: "start", choice: 0, ...(announced && { announced }) },
        ...said.flat(),
        ...calls.flatMap(({ texts, hasState }, index) => callEvents(texts, index, hasState)),
        { type: "finish", choice: 0, reason, ...(stop !== undefined && { stop }) },
      ];
    });
}

function callEvents(texts: readonly string[], index: number, hasState: boolean): ChoiceEvent[] {
  const state = { kind: "call", value: { extra_content: { google: { thought_signature: `s${index}` } } } } as const;
  return [
    {
      type: "tool-call-start",
      choice: 0,
      index,
      id: `call_${index}`,
      name: `tool_${index}`,
      ...(hasState && { state }),
    },
    ...texts.map((text): ChoiceEvent => ({ type: "tool-call-delta", choice: 0, index, arguments: text })),
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ];
}

function token(): fc.Arbitrary<TokenLogprob> {
  const logprob = fc.oneof(
    fc.constantFrom(0, -0, -1e-6, -9.5e-6, -1e-5, -9999, -Infinity),
    fc.double({ min: -40, max: 0, noNaN: true }),
  );
  const alternative = fc.record({
    token: pieces(),
    logprob,
    bytes: fc.option(fc.array(fc.nat(255), { maxLength: 3 })),
  });
  return fc.tuple(alternative, fc.array(alternative, { maxLength: 2 })).map(([chosen, top]) => ({ ...chosen, top }));
}

function usage(): fc.Arbitrary<Usage> {
  return fc.record(
    {
      promptTokens: fc.nat(5000),
      completionTokens: fc.nat(5000),
      promptDetails: fc.constant({ cached_tokens: 3 }),
      completionDetails: fc.constant({ audio_tokens: 0, reasoning_tokens: 7 }),
    },
    { requiredKeys: ["promptTokens", "completionTokens"] },
  );
}

/** Each queue keeps its order; `order` says whose turn it is, and when it is over they go in turn. */
function interleaved(queues: readonly GenerationEvent[][], order: readonly number[]): GenerationEvent[] {
  const rest = queues.map((queue) => [...queue]);
  const events: GenerationEvent[] = [];
  for (let turn = 0; rest.some((queue) => queue.length > 0); turn++) {
    const open = rest.filter((queue) => queue.length > 0);
    const next = open[(order[turn] ?? turn) % open.length]?.shift();
    if (next) events.push(next);
  }
  return events;
}

function batched(events: readonly GenerationEvent[], cuts: readonly boolean[]): GenerationEvent[][] {
  const batches: GenerationEvent[][] = [[]];
  for (const [index, event] of events.entries()) {
    batches.at(-1)?.push(event);
    if (cuts[index % cuts.length]) batches.push([]);
  }
  return batches.filter((batch) => batch.length > 0);
}
