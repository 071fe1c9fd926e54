import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import { describe, expect, test } from "vitest";
import { responseOptions, responseContext } from "../../../../test/support/response-stream.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { readChatRequest } from "../chat/request.ts";
import { writeChatResponse } from "../chat/write-body.ts";
import { exact, lean } from "../profile.ts";
import { ResponseIds } from "./ids.ts";
import { bodyNumber, pythonJson } from "./form.ts";
import { readResponsesRequest } from "./request.ts";
import { writeResponse } from "./response-writer.ts";

const said = (text: string): GenerationEvent[] => [
  { type: "start", choice: 0 },
  { type: "text-delta", choice: 0, text },
  { type: "finish", choice: 0, reason: "stop" },
  { type: "end", end: { kind: "done" } },
];

test("a body in profile exact is Python's JSON, and says who pays", () => {
  const body = writeResponse(accumulate(said("Añ 😀\u007f")), responseContext(exact), responseOptions());
  expect(body).toContain('\n          "text": "A\\u00f1 \\ud83d\\ude00\\u007f"\n');
  expect(body).toContain('\n  "billing": {\n    "payer": "developer"\n  },\n  "completed_at": 1800000007,');
  expect(body).toContain('\n  "temperature": 1.0,');
  expect(body).toContain('\n  "tools": [],');
  expect(body.endsWith("\n}")).toBe(true);
});

// As in a stream: it was reported as completed.
test("a call that the limit cut is incomplete", () => {
  const events: GenerationEvent[] = [
    { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"x' },
    { type: "tool-call-end", choice: 0, index: 0, status: "failed" },
    { type: "finish", choice: 0, reason: "length" },
    { type: "end", end: { kind: "done" } },
  ];
  const body = JSON.parse(writeResponse(accumulate(events), responseContext(lean), responseOptions()));
  expect(body).toMatchObject({ status: "incomplete", output: [{ status: "incomplete", arguments: '{"x' }] });
});

// Sources may send the state of a call after its beginning. Every test sent it with the beginning.
test("the state of a call that came late is an item before it", () => {
  const state = { kind: "call" as const, value: { extra_content: { google: { thought_signature: "sig" } } } };
  const events: GenerationEvent[] = [
    { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded", state },
    { type: "finish", choice: 0, reason: "tool-calls" },
    { type: "end", end: { kind: "done" } },
  ];
  const asked = { store: false, include: ["reasoning.encrypted_content"] };
  const body = JSON.parse(writeResponse(accumulate(events), responseContext(lean), responseOptions(asked)));
  const encrypted: unknown = expect.any(String);
  expect(body).toMatchObject({
    output: [
      { type: "reasoning", encrypted_content: encrypted },
      { type: "function_call", call_id: "call_0" },
    ],
  });
});

test("a body in profile lean is compact", () => {
  const body = writeResponse(accumulate(said("ñ")), responseContext(lean), responseOptions());
  expect(body).not.toContain("\n");
  expect(body).toContain('"text":"ñ"');
});

test("floats of a body are Python's", () => {
  expect([0, -0, 1, 0.98, 0.0001, 0.000_075, -2e-6, 1e16, 1.5e300].map(bodyNumber)).toEqual([
    "0.0",
    "-0.0",
    "1.0",
    "0.98",
    "0.0001",
    "7.5e-05",
    "-2e-06",
    "1e+16",
    "1.5e+300",
  ]);
});

test("ids of one answer share their beginning and a group, and contain the time", () => {
  const ids = new ResponseIds(Math.random);
  const [response, item] = [ids.response(1_800_000_000), ids.item("msg_", 1_800_000_007)];
  const form = /^[a-z]+_(0[0-9a-f]{15})00([0-9a-f]{8})[0-9a-f]{3}[048c](81[9a][0-9a-f])[89ab][0-9a-f]{15}$/;
  const [, head, time, group] = form.exec(response) ?? [];
  expect(time).toBe((1_800_000_000).toString(16));
  expect(form.exec(item)?.slice(1, 4)).toEqual([head, (1_800_000_007).toString(16), group]);
});

describe.skipIf(!hasRecordings("of the Responses API to compare with"))(
  "what OpenAI repeated of recorded requests",
  () => {
    // What depends on OpenAI's model, on the organization, or on what OpenAI keeps.
    const own = new Set([
      "id",
      "created_at",
      "completed_at",
      "access_programs",
      "billing",
      "model",
      "output",
      "usage",
      "status",
      "incomplete_details",
    ]);

    test("is repeated here to the byte", () => {
      // Some recorders kept no request.
      const all = readRecordings("responses").flatMap(({ request, ...recorded }) =>
        request === null ? [] : [{ ...recorded, request }],
      );
      // Long strings of some requests were shortened when they were recorded.
      const isWhole = (request: object): boolean => !/…<\d+ characters>/.test(JSON.stringify(request));
      const recent = all.filter(
        ({ date, fidelity, request }) =>
          (date ?? "") >= "2026-07-10" && !fidelity.includes("lost") && usesOnlyOurs(request) && isWhole(request),
      );
      expect(recent.length).toBeGreaterThan(100);
      const membersOf = (body: string): string[] =>
        body
          .slice(4, -2)
          .split(/,\n {2}(?=")/)
          .filter((member) => !own.has(/^"([a-z_]+)"/.exec(member)?.[1] ?? ""));
      const different = recent.flatMap(({ name, request, body }) => {
        // What a response says by its model: `reasoning`, `top_p`, `prompt_cache_retention`, and how it names a tier.
        const { model: standsFor } = JSON.parse(body) as { readonly model: string };
        const { responseOptions } = readResponsesRequest(request, "req_1", { profile: exact, standsFor });
        const context = { ...responseContext(exact), settings: { standsFor } };
        const ours = membersOf(writeResponse(accumulate(said("")), context, responseOptions));
        const theirs = membersOf(body);
        const lines = ours.join(",\n").split("\n");
        const wrong = theirs
          .join(",\n")
          .split("\n")
          .findIndex((line, index) => line !== lines[index]);
        return wrong === -1 ? [] : [`${name}: ${lines[wrong]?.slice(0, 200)}`];
      });
      expect(different).toEqual([]);
    });

    function usesOnlyOurs(request: Readonly<Record<string, unknown>>): boolean {
      const tools = (request["tools"] ?? []) as readonly { type: string }[];
      const stores = ["previous_response_id", "conversation", "prompt", "background", "moderation"];
      return (
        tools.every(({ type }) => type === "function" || type === "custom") && !stores.some((name) => request[name])
      );
    }
  },
);

// An answer for fast mode said `priority` or `default`, as it was requested.
test.each([
  ["fast", undefined, "fast"],
  ["priority", undefined, "fast"],
  ["priority", "gpt-6-sol", "fast"],
  ["fast", "gpt-5.6-sol", "priority"],
  ["flex", undefined, "flex"],
  ["auto", undefined, "default"],
  ["ultrafast", undefined, "default"],
])("service_tier %s of a model that stands for %s is answered %s, in Responses and chat", (asked, standsFor, tier) => {
  const settings = standsFor === undefined ? {} : { standsFor };
  const context = { ...responseContext(exact), settings };
  const options = responseOptions({ service_tier: asked });
  expect(JSON.parse(writeResponse(accumulate(said("")), context, options))).toMatchObject({ service_tier: tier });
  if (asked === "ultrafast") return;
  const body = { model: "tiny", messages: [{ role: "user", content: "Hi" }], service_tier: asked };
  const { requested } = readChatRequest(body, "req_1", { profile: exact });
  const answer = writeChatResponse(accumulate(said("")), { ...context, requested, id: "chatcmpl-1" });
  expect(JSON.parse(answer)).toMatchObject({ service_tier: tier });
});

test.each([
  ["o3", "medium", "current_turn", 1, "in_memory"],
  ["gpt-5.4-mini", "none", "current_turn", 0.98, "24h"],
  ["gpt-5.2-codex", "medium", "current_turn", 0.98, "24h"],
  ["gpt-6.2-sol", "medium", "all_turns", 0.98, "24h"],
])("a model that stands for %s says so, unless the request does", (standsFor, effort, context, topP, retention) => {
  const response = (members: object, profile = exact): object => {
    const read = readResponsesRequest({ model: "tiny", input: "Hi", ...members }, "req_1", { profile, standsFor });
    return JSON.parse(writeResponse(accumulate(said("")), responseContext(profile), read.responseOptions)) as object;
  };
  const echo = { top_p: topP, prompt_cache_retention: retention };
  expect(response({})).toMatchObject({ ...echo, reasoning: { context, effort, mode: "standard", summary: null } });
  expect(response({ reasoning: { summary: "auto" } })).toMatchObject({ reasoning: { effort, summary: "detailed" } });
  expect(response({ reasoning: { effort: "low" }, prompt_cache_retention: "in_memory" })).toMatchObject({
    reasoning: { context, effort: "low" },
    prompt_cache_retention: "in_memory",
  });
  expect(response({}, lean)).toMatchObject({ reasoning: { effort: null, summary: null }, top_p: 1 });
});

test("python's JSON of nothing", () => {
  expect(pythonJson({ a: [], b: {} })).toBe('{\n  "a": [],\n  "b": {}\n}');
});
