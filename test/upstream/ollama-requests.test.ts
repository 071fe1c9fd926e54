import fc from "fast-check";
import { expect, test } from "vitest";
import { FailureError } from "../../src/wire/core/failure.ts";
import type { Message } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { contextFor, contextSize } from "../../src/wire/apis/ollama/context.ts";
import { ollamaChatRequest, ollamaGenerateRequest } from "../../src/wire/apis/ollama/request-schema.ts";
import { exact } from "../../src/wire/apis/profile.ts";
import { checkGoTypes } from "../../src/wire/apis/ollama/go-decoder.ts";
import { readOllamaChat } from "../../src/wire/apis/ollama/request.ts";
import { ollamaSource, ollamaTextSource } from "../../src/wire/apis/ollama/send.ts";

/*
 * What is sent to Ollama is judged by Ollama's own rules (profile exact), and by the schemas of its requests. A request that Ollama cannot serve
 * is refused in words before.
 */

const word = fc.stringMatching(/^[a-z]{1,6}$/);
const text = fc.string({ maxLength: 12 });
const textPart = fc.record({ type: fc.constant("text" as const), text });
const image = fc.record({
  type: fc.constant("image" as const),
  url: fc.oneof(
    fc.base64String({ maxLength: 12 }).map((data) => `data:image/png;base64,${data}`),
    { arbitrary: fc.webUrl(), weight: 1 },
  ),
});
const content = fc.oneof(text, fc.array(fc.oneof(textPart, textPart, textPart, image), { maxLength: 3 }));
const calls = fc.record({
  type: fc.constant("tool-call" as const),
  id: word,
  name: word,
  arguments: fc.oneof(fc.json(), text, fc.constant(""), fc.constant('{"a":1}')),
  kind: fc.constantFrom("function" as const, "custom" as const),
});
const reasoning = fc.record({ type: fc.constant("reasoning" as const), text });
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system" as const, "developer" as const), content: text }),
  fc.record({ role: fc.constant("user" as const), content }),
  fc.record({
    role: fc.constant("assistant" as const),
    content: fc.oneof(text, fc.constant(null), fc.array(fc.oneof(textPart, calls, reasoning), { maxLength: 3 })),
  }),
  fc.record({ role: fc.constant("tool" as const), content, toolCallId: word }),
) as fc.Arbitrary<Message>;

/** Schemas with members of any type where Ollama expects one. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(true, false, {}, { type: ["string", "null"] }),
    fc.record(
      {
        type: fc.oneof(
          fc.constantFrom<unknown>("object", "string", ["array", "null"], [1], 7),
          fc.jsonValue({ maxDepth: 1 }),
        ),
        description: fc.oneof(text, fc.jsonValue({ maxDepth: 1 })),
        enum: fc.oneof(fc.array(text), fc.jsonValue({ maxDepth: 1 })),
        required: fc.oneof(fc.array(word), fc.jsonValue({ maxDepth: 1 })),
        items: tie("schema"),
        anyOf: fc.oneof(fc.array(tie("schema"), { maxLength: 3 }), fc.jsonValue({ maxDepth: 1 })),
        properties: fc.oneof(fc.dictionary(word, tie("schema"), { maxKeys: 3 }), fc.jsonValue({ maxDepth: 1 })),
        pattern: text,
        $ref: text,
      },
      { requiredKeys: [] },
    ),
  ),
}));

const tool = fc.record(
  {
    name: word,
    description: text,
    parameters: schema as fc.Arbitrary<boolean | Readonly<Record<string, unknown>>>,
    strict: fc.boolean(),
    kind: fc.constantFrom("function" as const, "custom" as const),
  },
  { requiredKeys: ["name"] },
);
const choice = fc.oneof(
  fc.constantFrom({ type: "none" as const }, { type: "auto" as const }, { type: "required" as const }),
  word.map((name) => ({ type: "named" as const, name })),
  fc.array(word).map((names) => ({ type: "allowed" as const, mode: "required" as const, names })),
);
const number = fc.double({ min: 0, max: 1, noNaN: true });
const whole = fc.integer({ min: 0, max: 500 });

const members = fc.record(
  {
    sampling: fc.record(
      { temperature: number, topP: number, topK: whole, minP: number, seed: whole, logitBias: fc.constant({ 1: 2 }) },
      { requiredKeys: [] },
    ),
    limits: fc.record(
      { maxTokens: whole, stop: fc.array(text, { maxLength: 4 }), minTokens: whole },
      { requiredKeys: [] },
    ),
    logprobs: fc.record({ top: fc.integer({ min: 0, max: 20 }) }),
    tools: fc.array(tool, { maxLength: 3 }),
    toolChoice: choice,
    parallelToolCalls: fc.boolean(),
    output: fc.oneof(
      fc.constantFrom({ type: "text" as const }, { type: "json-object" as const }),
      fc.record({
        type: fc.constant("json-schema" as const),
        name: word,
        schema: schema as fc.Arbitrary<boolean | Readonly<Record<string, unknown>>>,
        strict: fc.boolean(),
        path: word,
      }),
      fc.record({ type: fc.constant("regex" as const), pattern: text, path: word }),
    ),
    reasoning: fc.record(
      {
        effort: fc.oneof(fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"), word),
        mode: fc.constantFrom("off" as const, "on" as const, "adaptive" as const),
        budgetTokens: whole,
      },
      { requiredKeys: [] },
    ),
    stream: fc.boolean(),
    extra: fc.dictionary(word, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
  },
  { requiredKeys: ["sampling", "limits", "stream", "extra"] },
);
const prompt = fc.oneof(
  fc.record({
    kind: fc.constant("chat" as const),
    messages: fc.array(message, { minLength: 1, maxLength: 6 }),
    template: fc.constant({}),
  }),
  fc.record({ kind: fc.constant("text" as const), prompts: text.map((one) => [one]) }),
);
const state = fc.record(
  {
    minContext: whole,
    maxContext: fc.integer({ min: 500, max: 100_000 }),
    reasons: fc.boolean(),
    sees: fc.boolean(),
    thinksMax: fc.boolean(),
  },
  { requiredKeys: ["minContext"] },
);

test("for 1,000 requests, Ollama can read what is sent, or the request is refused in words", () => {
  let sent = 0;
  fc.assert(
    fc.property(members, prompt, state, (others, given, ollama) => {
      const request = { ...others, id: "r", model: "m", prompt: given, wantsUsage: true } as GenerationRequest;
      const source = given.kind === "chat" ? ollamaSource : ollamaTextSource;
      let body;
      try {
        body = source.writeRequest(request, { model: "m", ollama });
      } catch (error) {
        if (!(error instanceof FailureError)) throw error;
        expect(error.failure.status).toBe(400);
        return;
      }
      sent++;
      const json = JSON.parse(JSON.stringify(body)) as Record<string, unknown>;
      const schema = given.kind === "chat" ? ollamaChatRequest : ollamaGenerateRequest;
      checkGoTypes(schema, json);
      readOllamaChat({ model: "m", options: json["options"] }, "r", { profile: exact });
      const read = schema.safeParse(json);
      expect(read.error?.issues).toBeUndefined();
      expect(json).toMatchObject({ model: "m", stream: others.stream, truncate: false, shift: false });
      // A model that does not reason refuses `think`.
      if (ollama.reasons !== true) expect([undefined, false]).toContain(json["think"]);
    }),
    { numRuns: 1000 },
  );
  expect(sent).toBeGreaterThan(500);
});

test("for any prompt, the context is within its bounds, never less than before, and one of a few", () => {
  fc.assert(
    fc.property(state, fc.array(fc.nat({ max: 400_000 }), { maxLength: 40 }), (known, prompts) => {
      const max = known.maxContext ?? Number.POSITIVE_INFINITY;
      let { minContext } = known;
      const sizes = new Set<number>();
      for (const tokens of prompts) {
        const size = contextFor(tokens, { ...known, minContext });
        expect(size).toBeLessThanOrEqual(max);
        expect(size).toBeGreaterThanOrEqual(Math.min(minContext, max));
        expect(size).toBeGreaterThanOrEqual(Math.min(tokens, max));
        sizes.add(size);
        minContext = size;
      }
      // 8192, 16384 … 524288, and the maximum.
      expect(sizes.size).toBeLessThanOrEqual(8);
    }),
  );
});

test("a long prompt is measured in one pass", () => {
  const content = "é long line of some text\n".repeat(400_000);
  const body = { messages: [{ role: "user", content }] };
  expect(contextSize(body, undefined, { minContext: 0 })).toBeGreaterThan(content.length / 3);
});
