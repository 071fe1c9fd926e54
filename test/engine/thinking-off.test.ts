import { afterAll, beforeAll, expect, test } from "vitest";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { openProgrammed, type TestEngine } from "./local-engine.ts";

// A model that was told not to think thought all the same where the question asked for it ("Think step by step.").

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed(
    {},
    {
      scripts: {
        greeting: { say: "Hello there." },
        /** Nearly always it opens a thought. */
        eager: {
          draw: [
            ["<think>", 0.9],
            ["Fine.", 0.1],
          ],
        },
        /** A marker of several tokens, the second of which says more. */
        thought: { say: ["<th", "ink>\nA thought.", "\n</think>", "\n\nAn answer."] },
      },
    },
  );
});
afterAll(() => local.close());

const off: Partial<GenerationRequest>[] = [
  { reasoning: { mode: "off" } },
  { reasoning: { effort: "none" } },
  {
    prompt: {
      kind: "chat",
      messages: [{ role: "user", content: "#eager" }],
      template: { variables: { enable_thinking: false } },
    },
  },
];

test.each([
  ["llama.cpp's own sampler", {}],
  ["our draw", { logprobs: { top: 2 } }],
  ["both", { logprobs: { top: 2 }, sampling: { temperature: 0, dry: { multiplier: 0.8 } } }],
] satisfies [string, Partial<GenerationRequest>][])("no thought is opened by %s", async (_, more) => {
  for (const request of off) {
    const { choices } = await local.chat("#eager", { ...more, ...request });
    expect(choices[0]).toMatchObject({ text: "Fine.", reasoning: null });
  }
});

test("nor one whose marker is spelled in several tokens", async () => {
  const { choices } = await local.chat("#thought", { reasoning: { mode: "off" }, limits: { maxTokens: 3 } });
  expect(choices[0]?.reasoning).toBeNull();
  expect(choices[0]?.text).toMatch(/^<th(?!ink)/);
});

test("it is where thinking was not turned off", async () => {
  for (const request of [{}, { reasoning: { mode: "on" as const } }]) {
    const { choices } = await local.chat("#thought", request);
    expect(choices[0]).toMatchObject({ text: "An answer.", reasoning: "A thought." });
  }
});

test("a thought that the prompt itself opens is read as one", async () => {
  const { choices } = await local.ask({
    prompt: {
      kind: "chat",
      messages: [{ role: "user", content: "Hi" }],
      template: { responsePrefix: "<think>\n", variables: { enable_thinking: false } },
    },
    limits: { maxTokens: 2 },
  });
  expect(choices[0]).toMatchObject({ reasoning: "Hello there.", text: null });
});
