import { afterAll, beforeAll, expect, test } from "vitest";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { Tool } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { chatPrompt, openProgrammed, type TestEngine } from "./local-engine.ts";

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed({ contextSize: 2048 });
});
afterAll(() => local.close());

const strictTool: Tool = {
  name: "get_weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, unit: { type: "string", enum: ["celsius", "fahrenheit"] } },
    required: ["city", "unit"],
    additionalProperties: false,
  },
  strict: true,
};

/** So many tools that their grammar takes a while, and no two requests share one. */
function manyTools(name: string): Pick<GenerationRequest, "tools" | "prompt"> {
  const tools = Array.from({ length: 200 }, (_, i) => ({ ...strictTool, name: `${name}_${i}` }));
  return { tools, prompt: chatPrompt("#plain") };
}

// Every request sent its format anew, so the search for tokens that a grammar must not let pass ran for each of them.
test("requests that ask for the same share one grammar, and the search through the vocabulary", async () => {
  const ask = (): Promise<unknown> => local.chat("#calls", { tools: [strictTool], toolChoice: { type: "required" } });
  await ask();
  const { grammarsMade, vocabularyScans } = local.counters();
  expect(grammarsMade).toBe(1);
  expect(vocabularyScans).toBeGreaterThan(0);
  for (let i = 0; i < 3; i++) await ask();
  // The choices of one request share it, too.
  await local.chat("#calls", { tools: [strictTool], toolChoice: { type: "required" }, n: 3 });
  expect(local.counters()).toMatchObject({ grammarsMade, vocabularyScans });
  await local.chat("#json", { output: { type: "json-object" } });
  expect(local.counters()).toMatchObject({ grammarsMade: 2, vocabularyScans });
});

test("an answer goes on while another request is prepared", async () => {
  const { grammarsMade = 0 } = local.counters();
  const leaving = new AbortController();
  const endless = { prompt: { kind: "text", prompts: ["<|script:endless|>"] } } as const;
  // Tokens, not batches: a fast model's tokens are reported in groups, as many as fit into 20 ms.
  let tokens = 0;
  let begun = (): void => {};
  const started = new Promise<void>((resolve) => (begun = resolve));
  const running = (async () => {
    for await (const batch of local.batches(endless, leaving.signal)) {
      tokens += batch.filter(({ type }) => type === "text-delta").length;
      begun();
    }
  })();
  await started;
  const before = tokens;
  const { end } = await local.ask(manyTools("during"));
  // 200 tools do not fit into this model's context: all that was done for this request is its preparation.
  expect(end).toMatchObject({ kind: "rejected", failure: { code: "context_length_exceeded" } });
  expect(tokens - before).toBeGreaterThan(20);
  leaving.abort();
  await running;
  expect(local.counters().grammarsMade).toBe(grammarsMade + 1);
});

test("a client who leaves while the request is prepared is told so at once, and nothing is generated", async () => {
  await local.idle();
  const { generatedTokens, promptTokens } = local.counters();
  const leaving = new AbortController();
  const events: GenerationEvent[] = [];
  const left = (async () => {
    for await (const batch of local.batches(manyTools("left"), leaving.signal)) events.push(...batch);
  })();
  leaving.abort();
  await left;
  expect(events).toEqual([]);
  await local.idle();
  expect((await local.chat("#odds")).end).toEqual({ kind: "done" });
  expect((local.counters().generatedTokens ?? 0) - (generatedTokens ?? 0)).toBe(2);
  expect((local.counters().promptTokens ?? 0) - (promptTokens ?? 0)).toBeLessThan(100);
});

test("what cannot be prepared is an early error with its words, and an engine's log has the warnings", async () => {
  const schema = { type: "object", properties: { a: { type: "string", minLength: -1 } } };
  const output = {
    type: "json-schema",
    name: "x",
    schema,
    strict: true,
    path: "response_format.json_schema.schema",
  } as const;
  const { end } = await local.chat("#json", { output });
  expect(end).toMatchObject({ kind: "rejected", failure: { status: 400, kind: "invalid-request" } });
  expect(JSON.stringify(end)).toContain("response_format.json_schema.schema");
});

test("a request that is nested too deeply for any message is refused", async () => {
  let schema: Record<string, unknown> = { type: "string" };
  for (let i = 0; i < 100_000; i++) schema = { type: "object", properties: { a: schema } };
  const { end } = await local.chat("#json", {
    output: { type: "json-schema", name: "deep", schema, strict: false, path: "response_format" },
  });
  expect(end).toMatchObject({ kind: "rejected", failure: { status: 400 } });
  expect((await local.chat("#plain")).end).toEqual({ kind: "done" });
});
