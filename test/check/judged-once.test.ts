import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { runCheck } from "../../src/judge/check/probe/run-check.ts";
import { ruleNamed } from "../../src/judge/check/rules/every-rule.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { lean } from "../../src/wire/apis/profile.ts";
import { listen, type Listening } from "../support/listen.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { writtenBody } from "./legal/body.ts";
import { logprob } from "./legal/events.ts";
import { writtenStream } from "./legal/stream.ts";
import { seeded } from "./random.ts";
import { waitMs } from "../support/hang.ts";

type Json = Record<string, unknown>;

let server: Listening;
let url: string;

/** Answers everything, whatever is asked of it. */
beforeAll(async () => {
  const handler = createHandler(serving(new ScriptedEngine(() => answer(["Hello", "."]))));
  const right: Readonly<Record<string, Json>> = {
    "/v1/chat/completions": { messages: [{ role: "user", content: "Hi" }] },
    "/v1/responses": { input: "Hi" },
    "/v1/messages": { max_tokens: 64, messages: [{ role: "user", content: "Hi" }] },
  };
  server = await listen(async (incoming, outgoing) => {
    const path = incoming.url ?? "";
    const sent = await text(incoming);
    const stream = /"stream": *true/.test(sent) && { stream: true };
    const body = JSON.stringify({ model: "scripted", ...right[path], ...stream });
    const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
    const response = await handler.fetch(new Request(`http://api.test${path}`, { method: "POST", headers, body }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(await response.text());
  });
  url = `${server.url}/v1`;
});
afterAll(() => server.close());

// A negative limit, or a required call without tools, that is answered and not refused: the rules on answers counted it a second time.
test("what should have been refused is one fault, whatever the answer says", async () => {
  const only = ["wrong", "responses/wrong", "messages/wrong"];
  const run = await runCheck({ url, model: "scripted", only, timeout: waitMs, concurrency: 2 });
  const answered = run.judged.filter(
    ({ id, result }) => !/route|json$/.test(id) && result?.exchange?.response.status === 200,
  );
  expect(answered.length).toBeGreaterThan(60);
  for (const { id, findings } of answered)
    expect(
      findings.map(({ rule }) => rule),
      id,
    ).toEqual(["wrong/status"]);
});

const thinking: readonly GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "reasoning-delta", choice: 0, text: "Hm" },
  { type: "text-delta", choice: 0, text: "Hi", logprobs: [logprob("Hm", 0), logprob("Hi", 0)] },
  { type: "finish", choice: 0, reason: "stop" },
  { type: "usage", usage: { promptTokens: 1, completionTokens: 2 } },
  { type: "end", end: { kind: "done" } },
];

test.each([
  ["streamed", "logprobs/text", true],
  ["whole", "body/logprobs-text", false],
])("log probabilities that begin with the thought are found, %s", (_, rule, stream) => {
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }], logprobs: true, ...(stream && { stream }) };
  const exchange = (stream ? writtenStream : writtenBody)(body, thinking, lean, seeded(1));
  const errors = judge(exchange).findings.filter((finding) => ruleNamed(finding.rule).severity === "error");
  expect(errors.map((finding) => finding.rule)).toEqual([rule]);
});

test.each([
  ["streamed", "stream/known-members", true],
  ["whole", "body/known-members", false],
])("timings are noted, %s", (_, rule, stream) => {
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }], ...(stream && { stream }) };
  const events = thinking.filter(({ type }) => type !== "reasoning-delta" && type !== "text-delta");
  const exchange = (stream ? writtenStream : writtenBody)(body, events, lean, seeded(1));
  const { response } = exchange;
  const timed = { ...response, body: response.body.replace('"object":', '"timings":{"predicted_ms":12},"object":') };
  const found = judge({ ...exchange, response: timed }).findings.filter((finding) => finding.rule === rule);
  expect(found).toMatchObject([{ found: expect.stringContaining("timings") }]);
  expect(ruleNamed(rule).severity).toBe("note");
});

test("a missing logprobs.refusal breaks validation, and typed clients only where a value has another type", () => {
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }], logprobs: true };
  const events = thinking.map((event) =>
    event.type === "text-delta" ? { ...event, logprobs: [logprob("Hi", 0)] } : event,
  );
  const exchange = writtenBody(body, events, lean, seeded(1));
  const { response } = exchange;
  const without = { ...response, body: response.body.replace(/,"refusal":null(?=\})/, "") };
  expect(without.body).not.toBe(response.body);
  const { findings } = judge({ ...exchange, response: without });
  expect(findings.map(({ rule, found }) => `${rule}: ${found}`)).toEqual([
    "spec/body: choices[0].logprobs.refusal is missing",
  ]);
  expect(ruleNamed("spec/body").breaks).toEqual([
    "clients that validate answers against the specification",
    "typed clients (Go, Rust, Java, C#), where a value has another type",
  ]);
});
