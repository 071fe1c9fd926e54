import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import { describe, expect, test } from "vitest";
import type { GenerationRequest } from "../../core/request.ts";
import type { Usage } from "../../core/events.ts";
import { sourcePorts } from "../ports.ts";
import { asksToShorten, findTruncation, overflowFailure, truncationFailure } from "./truncation.ts";

const words = (count: number): string => Array.from({ length: count }, (_, at) => `word${at % 7}`).join(" ");
const asked = (...texts: readonly string[]): Pick<GenerationRequest, "prompt"> => ({
  prompt: { kind: "chat", messages: texts.map((content) => ({ role: "user", content })), template: {} },
});
const reported = (promptTokens: number, cached?: number): Usage => ({
  promptTokens,
  completionTokens: 5,
  ...(cached !== undefined && { promptDetails: { cached_tokens: cached } }),
});

describe("a prompt that was cut", () => {
  test.each([
    // https://github.com/ollama/ollama/issues/17427, 3839, 17889, and https://github.com/itayinbarr/little-coder/issues/128
    [32_770, 65_536],
    [16_387, 32_768],
    [16_386, 32_768],
    [2050, 4096],
    [2051, 4096],
  ])("is found by Ollama's half of a context: %i of %i", (tokens, contextSize) => {
    expect(findTruncation(asked(words(contextSize)), reported(tokens), {})).toMatchObject({ contextSize });
  });

  test("is found where it fills the context, and where it is far shorter than its texts", () => {
    expect(findTruncation(asked(words(5000)), reported(4096), {})).toMatchObject({ contextSize: 4096 });
    const known = { truncates: true, contextSize: 5000 };
    expect(findTruncation(asked(words(4800)), reported(5000), known)).toMatchObject({ contextSize: 5000 });
    expect(findTruncation(asked(words(3000), words(20)), reported(900), {})).toEqual({
      reported: 900,
      expected: expect.any(Number) as unknown,
    });
  });
});

describe("no alarm", () => {
  test.each([
    ["a prompt that is exactly a power of two", asked(words(3000)), reported(4096), {}],
    ["a server that refuses long prompts", asked(words(9000)), reported(100), { truncates: false }],
    ["tokens of a cache that are not counted", asked(words(9000)), reported(100, 8900), {}],
    ["a constant in place of a count", asked(words(9000)), reported(10), {}],
    ["a short prompt", asked(words(400)), reported(100), {}],
    ["a long word", asked("x".repeat(100_000)), reported(100), {}],
    ["Chinese", asked("天地玄黄宇宙洪荒".repeat(2000)), reported(9000), {}],
    ["spaces", asked(`a${" ".repeat(100_000)}b`), reported(200), {}],
    ["a prompt of token ids", { prompt: { kind: "text", prompts: [[1, 2, 3]] } } as const, reported(2050), {}],
  ])("%s", (_, request, usage, profile) => {
    expect(findTruncation(request, usage, profile)).toBe(null);
  });
});

// A conversation that Claude had compacted on request was refused as cut: Pydantic AI's recording has 220 tokens for 56,000 of text.
test.each([
  [{ context_management: { edits: [{ type: "compact_20260112" }] } }, "messages", true],
  [{ context_management: null }, "messages", false],
  [{ truncation: "auto" }, "responses", true],
  [{ truncation: "disabled" }, "responses", false],
  // The upstream speaks another API, and does not get these members.
  [{ truncation: "auto" }, "chat", false],
])("a client that asks for a shorter prompt (%j, %s): %s", (body, dialect, asks) => {
  const own = "truncation" in body ? "responses" : "messages";
  expect(asksToShorten({ passthrough: { dialect: own, body } }, dialect)).toBe(asks);
});

test("the failure says what to change, and how agents see that the conversation is too long", () => {
  const failure = truncationFailure({ reported: 2050, expected: 7900, contextSize: 4096 }, "ollama");
  expect(failure).toMatchObject({ kind: "context-overflow", code: "context_length_exceeded", status: 400 });
  expect(failure.message).toContain("OLLAMA_CONTEXT_LENGTH=16384");
  expect(failure.tokens).toEqual({ asked: 7900, most: 4096 });
  expect(overflowFailure(4096, 4096, "x")).toBe(null);
  expect(overflowFailure(4097, 4096, "x")?.message).toContain("The prompt has 4097 tokens");
});

const files = ["chat", "chat-stream", "messages", "messages-stream", "responses", "responses-stream"];

// The signs are for servers that cut prompts; the recordings are of those that do not.
test.skipIf(!hasRecordings("to compare usage with")).each(files)("no alarm over the recordings of %s", (file) => {
  const api = file.replace("-stream", "") as keyof typeof sourcePorts;
  let compared = 0;
  for (const { name, status, request, body } of readRecordings(file)) {
    if (status !== 200 || !request) continue;
    const reader = sourcePorts[api].reader({ newCallId: () => "c" });
    const events = [...reader.push(body), ...reader.end()];
    const texts = textsIn(request["messages"] ?? request["input"]);
    for (const event of events)
      if (event.type === "usage") {
        compared++;
        expect([name, findTruncation(asked(...texts), event.usage, {})]).toEqual([name, null]);
      }
  }
  expect(compared).toBeGreaterThan(10);
});

/** Every text of a request's messages. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  const { content, text } = value as { readonly content?: unknown; readonly text?: unknown };
  return [...textsIn(content), ...(typeof text === "string" ? [text] : [])];
}
