import { describe, expect, test } from "vitest";
import { refusalCases, validRequests } from "../../../test/support/refusal-cases.ts";
import type { RefusalCase } from "../../../test/support/refusal-cases.ts";
import { FailureError } from "../core/failure.ts";
import { runSync } from "../core/steps.ts";
import type { ReadRequest } from "./port.ts";
import { ports } from "./ports.ts";
import { exact, lean } from "./profile.ts";
import type { Profile } from "./profile.ts";

// Of 81 typical mistakes whose answer by the vendor is public, profile `exact` served 26, and 14 had other words.

const header = (name: string): string | undefined => (name === "anthropic-version" ? "2023-06-01" : undefined);

function read({ api, members, standsFor }: RefusalCase, profile: Profile, forwards = false): ReadRequest {
  const port = ports.find(({ name }) => name === api);
  if (!port) throw new Error(`There is no API ${api}.`);
  const body = { ...validRequests[api], ...members };
  return runSync(port.readRequest(body, "req_1", { profile, forwards, header, ...(standsFor && { standsFor }) }));
}

function refusal(one: RefusalCase): FailureError["failure"] {
  try {
    read(one, exact);
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new Error("The request was accepted.");
}

describe.each(refusalCases)("$api: $mistake", (one) => {
  const { api, message, param = null, code = null, standsFor } = one;

  test("profile exact answers as the vendor does", () => {
    const failure = refusal(one);
    expect(failure.message).toBe(message);
    if (api !== "messages")
      expect({ param: failure.param ?? null, code: failure.code ?? null }).toEqual({ param, code });
  });

  test("profile lean serves it, and says what the vendor would answer", () => {
    const { warnings } = read(one, lean);
    const words = expect.stringContaining(
      `would answer ${api === "completions" && standsFor ? 404 : 400}: ${message}`,
    ) as string;
    expect(warnings).toEqual(one.isFineInLean ? [] : expect.arrayContaining([words]));
  });

  test("an upstream of the same API judges it itself", () => {
    const reading = () => read(one, exact, true);
    if (one.isRefusedForUpstream) expect(reading).toThrow(message);
    else expect(reading).not.toThrow();
  });
});

test("a valid request is not objected to", () => {
  for (const api of ["chat", "completions", "responses", "messages"] as const)
    expect(read({ api, mistake: "", members: {}, message: "" }, exact).warnings).toEqual([]);
});

// The pairs were sent to OpenAI and Anthropic on 2026-08-30 and 2026-08-31 (`chatCheckOrder`, `responsesCheckOrder`, `messagesCheckOrder`).
test.each<[RefusalCase["api"], Readonly<Record<string, unknown>>, string]>([
  ["chat", { zzz: 1, messages: [] }, "Unknown parameter: 'zzz'."],
  ["chat", { zzz: 1, messages: undefined }, "Missing required parameter: 'messages'."],
  ["chat", { stop: 5, n: "2" }, "Invalid type for 'n': expected an integer, but got a string instead."],
  [
    "chat",
    { service_tier: "x", seed: 1.5 },
    "Invalid type for 'seed': expected an integer, but got a decimal number instead.",
  ],
  [
    "chat",
    { functions: "x", messages: "x" },
    "Invalid type for 'messages': expected an array of objects, but got a string instead.",
  ],
  [
    "completions",
    { max_tokens: -1, temperature: 3 },
    "Invalid 'max_tokens': integer below minimum value. Expected a value >= 0, but got -1 instead.",
  ],
  ["responses", { zzz: 1, input: [{ role: "x", content: "x" }] }, "Unknown parameter: 'zzz'."],
  [
    "responses",
    { truncation: "x", instructions: 7 },
    "Invalid value: 'x'. Supported values are: 'auto' and 'disabled'.",
  ],
  [
    "responses",
    { metadata: 5, tools: "x" },
    "Invalid type for 'tools': expected an array of objects, but got a string instead.",
  ],
  ["messages", { temperature: "x", stop_sequences: "x" }, "stop_sequences: Input should be a valid array"],
  ["messages", { tools: "x", tool_choice: 7 }, "tool_choice: Input should be an object"],
  ["messages", { zzz: 1, top_k: "x" }, "top_k: Input should be a valid integer"],
  ["messages", { zzz: 1, messages: [{ role: "user", content: [] }] }, "zzz: Extra inputs are not permitted"],
])("two mistakes at once: %s %j", (api, members, message) => {
  expect(refusal({ api, mistake: "", members, message }).message).toBe(message);
});

const ofModels = refusalCases.filter(({ standsFor }) => standsFor !== undefined);
test.each(ofModels)("$api: $mistake: another model takes it in profile exact", (one) => {
  const { standsFor: _, ...others } = one;
  expect(() => read(others, exact)).not.toThrow();
});
