import { expect, test } from "vitest";
import { knownServer } from "./known-servers.ts";

const knownProfile = (url: string, ownedBy = "someone"): unknown =>
  knownServer(url, { ownedBy, created: 1 })?.profile ?? {};

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
  ["openai", 1_677_610_602, "LiteLLM"],
  ["openai", 1, undefined],
])("models of %s, created at %s, are of %s", (ownedBy, created, name) => {
  expect(knownServer("http://127.0.0.1:8000/v1", { ownedBy, created })?.name).toBe(name);
});
