import { expect, test } from "vitest";
import { knownServer } from "./known-servers.ts";

const knownProfile = (url: string, owner: string | undefined): unknown => knownServer(url, owner)?.profile ?? {};

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
