import { expect, test } from "vitest";
import { knownServer } from "./known-servers.ts";
import { findTruncation } from "./truncation.ts";

const knownProfile = (url: string, ownedBy = "someone"): unknown =>
  knownServer(url, { id: "m", ownedBy, created: 1 })?.profile ?? {};

test("a server is known by its host or by the owner of its models, and else nothing is", () => {
  expect(knownProfile("https://api.openai.com/v1", undefined)).toMatchObject({ customTools: true });
  expect(knownProfile("https://mine.openai.azure.com/openai/v1", undefined)).toMatchObject({ customTools: true });
  expect(knownProfile("http://10.0.0.1:8000/v1", "vllm")).toMatchObject({ reasoningEffort: true });
  expect(knownProfile("https://api.mistral.ai/v1", undefined)).toMatchObject({ callIds: "nine" });
  for (const url of [
    "http://127.0.0.1/v1",
    "https://api.openai.com.example.com/v1",
    "https://openai.azure.com.example",
  ])
    expect(knownProfile(url, "openai")).toEqual({});
});

// One server's refusals were learned from requests that failed, again in each process: each entry names what its server does not accept.
test.each([
  ["https://api.groq.com/openai/v1", "Groq"],
  ["https://api.together.xyz/v1", "Together"],
  ["https://openrouter.ai/api/v1", "OpenRouter"],
  ["https://api.deepseek.com", "DeepSeek"],
  ["https://generativelanguage.googleapis.com/v1beta/openai", "Gemini"],
  ["https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1", "Amazon Bedrock"],
  ["https://bedrock-mantle.us-east-1.api.aws/v1", "Amazon Bedrock"],
])("%s is %s", (url, name) => {
  expect(knownServer(url, undefined)?.name).toBe(name);
});

test.each([
  ["vllm", 1, "vLLM"],
  ["sglang", 1, "SGLang"],
  ["llamacpp", 1, "llama-server"],
  ["library", 1, "Ollama"],
  ["organization_owner", 1, "LM Studio"],
  ["me", 0, "llama-cpp-python"],
  ["me", 1, undefined],
  ["openai", 1_677_610_602, "LiteLLM"],
  ["openai", 1, undefined],
])("models of %s, created at %s, are of %s", (ownedBy, created, name) => {
  expect(knownServer("http://127.0.0.1:8000/v1", { id: "m", ownedBy, created })?.name).toBe(name);
});

test.each([
  ["truewire/demo", "truewire/demo", "Transformers serve"],
  ["truewire/demo@refs/pr/1", "truewire/demo", "Transformers serve"],
  ["truewire/demo", "truewire", undefined],
  ["demo", "demo", undefined],
])("a model %s of %s is of %s", (id, ownedBy, name) => {
  expect(knownServer("http://127.0.0.1:8000/v1", { id, ownedBy, created: 1 })?.name).toBe(name);
});

// Vendors count tokens in ways of their own, so the check for cut prompts failed whole answers of their APIs.
test.each([
  "https://api.openai.com/v1",
  "https://mine.openai.azure.com/openai/v1",
  "https://api.anthropic.com/v1",
  "https://generativelanguage.googleapis.com/v1beta/openai",
  "https://us-central1-aiplatform.googleapis.com/v1",
  "https://api.deepseek.com",
  "https://api.mistral.ai/v1",
  "https://api.groq.com/openai/v1",
  "https://api.together.xyz/v1",
  "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1",
  "https://api.moonshot.ai/v1",
  "https://api.x.ai/v1",
  "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
])("truncation is not judged at a vendor's own API: %s", (url) => {
  expect(knownServer(url, undefined)?.profile.truncates).toBe(false);
  const texts = Array.from({ length: 2000 }, () => "word").join(" ");
  const request = { prompt: { kind: "chat", messages: [{ role: "user", content: texts }], template: {} } } as const;
  const usage = { promptTokens: 100, completionTokens: 1 };
  expect(findTruncation(request, usage, knownServer(url, undefined)?.profile ?? {})).toBeNull();
  expect(findTruncation(request, usage, {})).not.toBeNull();
});
