import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../core/message.ts";
import type { GenerationRequest, ReasoningOptions } from "../../core/request.ts";
import { claudeVersion, fittingEffort, thinkingBudget } from "./claude-versions.ts";
import { exact } from "../profile.ts";
import type { NoteAdaptation } from "../adapt/server-profile.ts";
import { readMessageRequest } from "./request.ts";
import { writeMessageRequest } from "./send.ts";

type Json = Readonly<Record<string, unknown>>;

const user: Message = { role: "user", content: "Hello" };

function written(
  model: string,
  reasoning: ReasoningOptions,
  members: Partial<GenerationRequest> = {},
  note?: NoteAdaptation,
): Json {
  const request: GenerationRequest = {
    id: "req_1",
    model,
    prompt: { kind: "chat", messages: [user], template: {} },
    sampling: {},
    limits: {},
    wantsUsage: true,
    stream: false,
    extra: {},
    reasoning,
    ...members,
  };
  return JSON.parse(JSON.stringify(writeMessageRequest(request, {}, note))) as Json;
}

const models = [
  "claude-instant-1.2",
  "claude-3-opus-20240229",
  "claude-3-5-haiku-latest",
  "anthropic/claude-3.7-sonnet",
  "claude-3-7-sonnet-20250219",
  "claude-sonnet-4-20250514",
  "claude-opus-4-1-20250805",
  "claude-sonnet-4-5-20250929",
  "us.anthropic.claude-haiku-4-5-20251001-v1:0",
  "claude-opus-4-5-20251101",
  "claude-opus-4-6",
  "claude-sonnet-4-6",
  "claude-opus-4-7",
  "claude-opus-4-8",
  "claude-sonnet-5",
  "claude-opus-5-5",
  "claude-fable-5-1",
];

/** Each line: the names of models, what is written for the effort `xhigh`, for a budget of 3,000 tokens, and for no thinking. */
describe.each<[string, string[], Json, string | undefined, Json, Json | undefined]>([
  ["before 3.7", models.slice(0, 3), {}, undefined, {}, undefined],
  [
    "before 4.6",
    models.slice(3, 9),
    { type: "enabled", budget_tokens: 20_480 },
    undefined,
    { type: "enabled", budget_tokens: 3000 },
    { type: "disabled" },
  ],
  [
    "Opus 4.5",
    ["claude-opus-4-5-20251101", "anthropic/claude-opus-4.5", "claude-opus-4-5@20251101"],
    { type: "enabled", budget_tokens: 20_480 },
    "high",
    { type: "enabled", budget_tokens: 3000 },
    { type: "disabled" },
  ],
  [
    "4.6",
    ["claude-opus-4-6", "us.anthropic.claude-sonnet-4-6-v1:0"],
    { type: "adaptive" },
    "high",
    { type: "enabled", budget_tokens: 3000 },
    { type: "disabled" },
  ],
  [
    "after 4.6",
    ["claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5"],
    { type: "adaptive" },
    "xhigh",
    { type: "adaptive" },
    { type: "disabled" },
  ],
  [
    "since 5.5",
    ["claude-opus-5-5", "claude-haiku-5-5"],
    { type: "adaptive" },
    "xhigh",
    { type: "adaptive" },
    { type: "between_tools" },
  ],
  [
    "models that always think",
    ["claude-fable-5-1", "claude-mythos-preview", "anthropic.claude-mythos-5"],
    { type: "adaptive" },
    "xhigh",
    { type: "adaptive" },
    undefined,
  ],
  [
    "other names",
    ["my-model", "kimi-k3", "claude"],
    { type: "adaptive" },
    "xhigh",
    { type: "enabled", budget_tokens: 3000 },
    { type: "disabled" },
  ],
])("%s", (_, names, thinking, effort, ofBudget, off) => {
  // A client of another API that asked Claude 4.5 for an effort was refused: "Input tag 'adaptive' found using 'type' does not match any of
  // the expected tags". Every test of the writer used a model without a version in its name.
  test.each(names)("%s", (model) => {
    const { thinking: asked, output_config: config } = written(model, { effort: "xhigh" });
    expect(asked ?? {}).toEqual(thinking);
    expect(config).toEqual(effort === undefined ? undefined : { effort });
    expect(written(model, { budgetTokens: 3000 })["thinking"] ?? {}).toEqual(ofBudget);
    expect(written(model, { effort: "none" })["thinking"]).toEqual(off);
    expect(written(model, { mode: "off" })["thinking"]).toEqual(off);
    expect(written(model, {})).not.toHaveProperty("thinking");
  });
});

/** Anthropic's words, by the rules of the body's model. */
function refusalBy(body: Json): string | undefined {
  try {
    readMessageRequest(body, "req_1", { profile: exact, standsFor: String(body["model"]) });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

// A fallback to another version of Claude refused what the first one had been sent: "Input tag 'adaptive' found", "`temperature` is deprecated".
test("what a client has written for one version is accepted by every other one, and is not changed for its own", () => {
  const bodiesFor = (model: string): Json[] => {
    const { thinking = [], efforts = [], refusesSampling, samplesOneWay } = claudeVersion(model) ?? {};
    const forms: Record<string, Json> = {
      adaptive: { type: "adaptive" },
      enabled: { type: "enabled", budget_tokens: 2048 },
      disabled: { type: "disabled" },
    };
    return [
      refusesSampling
        ? {}
        : { thinking: forms["disabled"], temperature: 0.5, top_k: 5, ...(!samplesOneWay && { top_p: 0.9 }) },
      { tool_choice: { type: "any" }, tools: [{ name: "f", input_schema: { type: "object" } }] },
      ...thinking.map((type) => ({ thinking: forms[type] })),
      ...efforts.map((effort) => ({ output_config: { effort } })),
    ].map((members) => ({ model, max_tokens: 8192, messages: [user], ...members }));
  };
  for (const from of models.slice(3))
    for (const to of models)
      for (const body of bodiesFor(from)) {
        const notes: string[] = [];
        const { request } = readMessageRequest(body, "req_1");
        const sent = writeMessageRequest(request, { model: to }, (name) => notes.push(name)) as Json;
        const place = `${from} → ${to}: ${JSON.stringify(body)}`;
        expect(refusalBy(sent), place).toBeUndefined();
        if (from === to) expect([sent, notes], place).toEqual([body, []]);
      }
});

test("sampling parameters of other APIs are left out, with a warning, for versions that refuse them", () => {
  const sampling = { temperature: 0.5, topP: 0.9, topK: 5 };
  for (const model of models) {
    const notes: string[] = [];
    const sent = written(model, {}, { sampling }, (name, place) => notes.push(`${name} ${place}`));
    const { refusesSampling, samplesOneWay } = claudeVersion(model) ?? {};
    const members = ["temperature", "top_p", "top_k"];
    const refused = refusesSampling ? members : samplesOneWay ? ["top_p"] : [];
    expect(
      members.filter((name) => !(name in sent)),
      model,
    ).toEqual(refused);
    expect(notes).toEqual(refused.map((name) => `refused-member ${name}`));
  }
  expect(models.filter((model) => claudeVersion(model)?.refusesSampling)).toEqual(models.slice(12));
});

test("the budget leaves room for an answer", () => {
  const budget = (effort: string, maxTokens?: number) => {
    const { thinking, max_tokens } = written(
      "claude-sonnet-4-5",
      { effort },
      { limits: maxTokens ? { maxTokens } : {} },
    );
    return [(thinking as Json | undefined)?.["budget_tokens"], max_tokens];
  };
  expect(budget("low")).toEqual([4096, 4096 + 8192]);
  expect(budget("high")).toEqual([16_384, 16_384 + 8192]);
  expect(budget("high", 64_000)).toEqual([16_384, 64_000]);
  expect(budget("high", 4096)).toEqual([2048, 4096]);
  expect(budget("minimal", 2047)).toEqual([undefined, 2047]);
  expect(thinkingBudget({ budgetTokens: 1500 }, 1501)).toBe(1500);
  expect(thinkingBudget({ budgetTokens: 3000 }, 3000)).toBe(1500);
  expect(thinkingBudget({ budgetTokens: 10 })).toBe(1024);
});

test("an effort that a version does not have is written as the nearest below", () => {
  const allowed = ["low", "medium", "high", "max"];
  expect(["minimal", "low", "xhigh", "max", "none?"].map((one) => fittingEffort(one, allowed))).toEqual([
    "low",
    "low",
    "high",
    "max",
    undefined,
  ]);
});

test("a long name takes no long time", () => {
  expect(claudeVersion("claude-".repeat(100_000))).toBeUndefined();
  expect(claudeVersion(`claude-${"a".repeat(1_000_000)}`)).toBeUndefined();
});

test("for every version: no request is written that Anthropic refuses", () => {
  const call = { type: "tool-call" as const, id: "toolu_1", name: "f", arguments: "{}" };
  const reasoning = { type: "reasoning" as const, text: "Hm.", state: { kind: "signature" as const, value: "sig" } };
  const turns: readonly Message[][] = [
    [user],
    [user, { role: "assistant", content: [call] }, { role: "tool", toolCallId: "toolu_1", content: "ok" }],
    [user, { role: "assistant", content: [reasoning, call] }, { role: "tool", toolCallId: "toolu_1", content: "ok" }],
    [user, { role: "assistant", content: [reasoning, { type: "text", text: "So." }] }, user],
  ];
  const cases = fc.record({
    model: fc.constantFrom(...models),
    reasoning: fc.record(
      {
        effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"),
        mode: fc.constantFrom("off" as const, "on" as const, "adaptive" as const),
        budgetTokens: fc.integer({ min: 1, max: 60_000 }),
      },
      { requiredKeys: [] },
    ),
    limits: fc.record({ maxTokens: fc.integer({ min: 1, max: 60_000 }) }, { requiredKeys: [] }),
    messages: fc.constantFrom(...turns),
    toolChoice: fc.option(fc.constantFrom({ type: "required" as const }, { type: "auto" as const }), {
      nil: undefined,
    }),
    temperature: fc.constantFrom(undefined, 1),
  });
  fc.assert(
    fc.property(cases, ({ model, reasoning: asked, limits, messages, toolChoice, temperature }) => {
      const body = written(model, asked, {
        prompt: { kind: "chat", messages, template: {} },
        limits,
        tools: [{ name: "f", parameters: {} }],
        ...(toolChoice && { toolChoice }),
        sampling: temperature === undefined ? {} : { temperature },
      });
      expect(refusalBy(body)).toBeUndefined();
    }),
    { numRuns: 2000 },
  );
});
