import { describe, expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import type { ReadChoicesRequest } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { exact } from "../profile.ts";
import { readChatRequest } from "./request.ts";

const hello = { role: "user", content: "Hello" };
function read(members: object, options?: ReadOptions): ReadChoicesRequest {
  return readChatRequest({ model: "m", messages: [hello], ...members }, "req_1", options);
}

describe("accepted requests", () => {
  test("null counts as absent for every optional parameter", () => {
    const names = [
      "stop",
      "tools",
      "tool_choice",
      "functions",
      "temperature",
      "n",
      "stream",
      "stream_options",
      "audio",
      "mirostat",
      "response_format",
      "logit_bias",
      "metadata",
      "user",
      "grammar",
    ];
    const { request } = read(Object.fromEntries(names.map((name) => [name, null])));
    expect(request).toEqual({ ...read({}).request, passthrough: request.passthrough });
  });

  test("unknown members are in extra, and the body is in passthrough", () => {
    const { request } = read({ reasoning: { max_tokens: 5 }, provider: null });
    expect(request.extra).toEqual({ reasoning: { max_tokens: 5 }, provider: null });
  });

  test("a member with a prototype's name is a member", () => {
    const { request } = readChatRequest(
      JSON.parse('{"model":"m","messages":[{"role":"user","content":"x"}],"__proto__":{"a":1}}'),
      "r",
    );
    expect(Object.keys(request.extra)).toEqual(["__proto__"]);
  });

  test("members that the client has not set are absent", () => {
    expect(read({}).request).toEqual({
      id: "req_1",
      model: "m",
      prompt: { kind: "chat", messages: [{ role: "user", content: "Hello" }], template: {} },
      sampling: {},
      limits: {},
      wantsUsage: false,
      stream: false,
      extra: {},
      passthrough: { dialect: "chat", body: { model: "m", messages: [hello] } },
    });
  });

  test("sampling and limits: OpenAI's parameters and extensions", () => {
    const { request } = read({
      temperature: 0,
      top_p: 0.5,
      top_k: -1,
      min_p: 0.1,
      frequency_penalty: -2,
      presence_penalty: 0,
      repetition_penalty: 1.1,
      repeat_last_n: -1,
      logit_bias: { "7": -100 },
      seed: 2 ** 60,
      xtc_probability: 0.5,
      dry_multiplier: 0.8,
      dry_sequence_breakers: '["\\n",":"]',
      max_tokens: 9,
      max_completion_tokens: 5,
      min_tokens: 2,
      ignore_eos: true,
      stop: ["", "END"],
      stop_token_ids: [1],
      cache_prompt: false,
    });
    expect(request.sampling).toEqual({
      temperature: 0,
      topP: 0.5,
      topK: 0,
      minP: 0.1,
      frequencyPenalty: -2,
      presencePenalty: 0,
      repeatPenalty: 1.1,
      repeatLastN: -1,
      logitBias: { "7": -100 },
      seed: 2 ** 60,
      xtc: { probability: 0.5, threshold: 0.1 },
      dry: { multiplier: 0.8, sequenceBreakers: ["\n", ":"] },
    });
    expect(request.limits).toEqual({
      maxTokens: 5,
      minTokens: 2,
      ignoreEos: true,
      stop: ["END"],
      stopTokenIds: [1],
      cachePrompt: false,
    });
  });

  test("more than four stop strings", () => {
    expect(read({ stop: ["1", "2", "3", "4", "5"] }).request.limits.stop).toHaveLength(5);
  });

  test("samplers that are turned off", () => {
    expect(
      read({ mirostat: 0, typical_p: 1, tfs_z: 1, top_a: 0, smoothing_factor: 0, dynatemp_range: 0 }).request.extra,
    ).toEqual({});
  });

  test("refused parameters are forwarded to a server that may support them", () => {
    const members = { mirostat: 2, web_search_options: {} };
    expect(read(members, { forwards: true }).request.extra).toEqual(members);
  });

  // A server of the same API knows words that are newer than this server; each was a 400 here before it could answer.
  test("an unknown value is forwarded only to a server of the same API", () => {
    const members = { reasoning_effort: "ultra", verbosity: "someday" };
    const { request, warnings } = read(members, { forwards: true });
    expect([request.reasoning, request.verbosity, request.passthrough?.body]).toEqual([
      undefined,
      undefined,
      expect.objectContaining(members),
    ]);
    expect(warnings).toHaveLength(2);
    expect(() => read(members)).toThrow(FailureError);
    expect(() => read({ temperature: "hot" }, { forwards: true })).toThrow(FailureError);
  });

  test("parameters of reasoning", () => {
    const reasoning = (members: object): unknown => read(members).request.reasoning;
    expect(reasoning({ reasoning_format: "none", reasoning_effort: "low" })).toEqual({ effort: "low", inText: true });
    expect(reasoning({ reasoning_format: "none" })).toEqual({ inText: true });
    expect(reasoning({ reasoning_format: "auto" })).toBeUndefined();
    expect(() => reasoning({ reasoning_format: "mine" })).toThrow("'none', 'auto', and 'deepseek'");
  });

  test("hosted tools that this server does not have are refused with those that it has, or with where to set them", () => {
    const asked = { hosted_tools: ["notes"] };
    expect(() => read(asked)).toThrow("Configure it in hostedTools.");
    expect(() => read(asked, { hostedNames: ["web_search"], runs: () => true })).toThrow("Supported: 'web_search'.");
    const { hostedTools } = read(asked, { hostedNames: ["notes"], runs: ({ kind }) => kind === "mcp" }).request;
    expect(hostedTools).toMatchObject([{ kind: "mcp", isOwn: true, options: { server: { url: "mcp:notes" } } }]);
  });

  test("the answer's form", () => {
    const { requested: asked, request } = read({
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      logprobs: true,
      include_reasoning: false,
      timings_per_token: true,
      include_stop_str: true,
    });
    expect(asked).toEqual({
      estimatePrompt: expect.any(Function) as () => number,
      stream: true,
      includeUsage: true,
      includeObfuscation: false,
      logprobs: true,
      namedToolChoice: false,
      legacyFunctions: false,
      includeReasoning: false,
      includeTimings: true,
      includeStopString: true,
    });
    expect(request).toMatchObject({ wantsUsage: true, wantsTimings: true, stream: true, logprobs: { top: 0 } });
  });
});

// SGLang's two were ignored without a word, so the answer was not what was asked for.
test("other servers' names of a limit and of constraints", () => {
  const asked = (more: object): ReadChoicesRequest["request"] => read(more).request;
  expect(asked({ n_predict: 7 }).limits.maxTokens).toBe(7);
  expect(asked({ n_predict: -1 }).limits.maxTokens).toBeUndefined();
  expect(asked({ regex: "a+" }).output).toEqual({ type: "regex", pattern: "a+", path: "regex" });
  expect(asked({ ebnf: 'root ::= "a"' }).output).toEqual({ type: "grammar", gbnf: 'root ::= "a"', path: "ebnf" });
});

test("an unknown member is a warning, except where the request is forwarded", () => {
  const unknown = "OpenAI would answer 400: Unknown parameter:";
  expect(read({ temprature: 0.2 }).warnings).toEqual([`${unknown} 'temprature'. Did you mean 'temperature'?`]);
  expect(read({ temprature: 0.2, temperature: 1 }).warnings).toEqual([`${unknown} 'temprature'.`]);
  expect(read({ temprature: 0.2 }, { forwards: true }).warnings).toEqual([]);
  expect(read({ entirely_unknown: 0.2 }).warnings).toEqual([`${unknown} 'entirely_unknown'.`]);
});

test("a tool choice that requires no call needs no tools, except in profile exact", () => {
  for (const more of [{ tool_choice: "none" }, { tool_choice: "auto" }, { function_call: "auto" }]) {
    const { request, warnings } = read(more);
    expect(request.toolChoice).toBeUndefined();
    expect(warnings).toHaveLength(1);
    expect(() => read(more, { profile: exact })).toThrow("is only allowed when");
  }
});
