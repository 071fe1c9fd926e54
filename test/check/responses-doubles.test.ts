import { describe, expect, test } from "vitest";
import { judgeCapture } from "../../src/judge/check/check-capture.ts";
import { ruleNamed } from "../../src/judge/check/rules/every-rule.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { seeded } from "./random.ts";
import { streamOf } from "./legal/responses.ts";

// What the trackers of these servers tell of their Responses API, the report must name. The streams are made from a right one.

type Json = Record<string, unknown>;

const body = {
  model: "m",
  input: "Hi",
  stream: true,
  stream_options: { include_obfuscation: false },
  tools: [{ type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false }],
};

/** Thoughts, a text and a call, as OpenAI would send them. */
const right = streamOf(
  body,
  [
    { type: "start", choice: 0 },
    { type: "reasoning-delta", choice: 0, text: "Hm", summary: 0 },
    { type: "reasoning-delta", choice: 0, text: " hm.", summary: 0 },
    { type: "text-delta", choice: 0, text: "Hello" },
    { type: "text-delta", choice: 0, text: " world." },
    { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: "{}" },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
    { type: "finish", choice: 0, reason: "tool-calls" },
    { type: "usage", usage: { promptTokens: 7, completionTokens: 9 } },
    { type: "end", end: { kind: "done" } },
  ],
  exact,
  seeded(4),
).response.body;

function events(): Json[] {
  return right
    .split("\n\n")
    .filter(Boolean)
    .map((frame) => JSON.parse(frame.slice(frame.indexOf("data: ") + "data: ".length)) as Json)
    .filter(({ type }) => type !== "keepalive");
}

/** The errors and warnings of a stream of these events, numbered anew. */
function rulesBroken(all: readonly Json[]): string[] {
  const text = all.map((event, at) => {
    const numbered = "sequence_number" in event ? { ...event, sequence_number: at } : event;
    return `event: ${String(event.type)}\ndata: ${JSON.stringify(numbered)}\n\n`;
  });
  const { findings } = judgeCapture("capture", text.join(""), body);
  const broken = findings.map(({ rule }) => rule).filter((rule) => ruleNamed(rule).severity !== "note");
  return [...new Set(broken)].toSorted();
}

function item({ item: one }: Json): Json {
  return (one ?? {}) as Json;
}

function finalResponse(all: readonly Json[]): Json {
  return (all.at(-1) as Json).response as Json;
}

test("the right stream breaks nothing", () => {
  expect(rulesBroken(events())).toEqual([]);
});

describe("known servers", () => {
  test("llama.cpp before #20607: no output_index, no id of calls, a bare response", () => {
    const all = events();
    for (const event of all) {
      delete event.output_index;
      if (item(event).type === "function_call") delete item(event).id;
      if (event.type === "response.created")
        event.response = { id: "resp_1", object: "response", status: "in_progress" };
    }
    expect(rulesBroken(all)).toEqual(
      expect.arrayContaining(["responses/item-place", "responses/item-one-id", "responses/one-response", "spec/event"]),
    );
  });

  test("llama.cpp before #22659: usage without its details", () => {
    const all = events();
    const usage = finalResponse(all).usage as Json;
    delete usage.output_tokens_details;
    expect(rulesBroken(all)).toEqual(["responses/usage-type", "spec/event", "spec/response"]);
  });

  test("LiteLLM before #22102: text without its item and its part", () => {
    const opening = /^response\.(output_item|content_part)\.added$/;
    const place = events().find((event) => item(event).type === "message")?.output_index;
    const all = events().filter(({ type, output_index: at }) => at !== place || !opening.test(String(type)));
    expect(rulesBroken(all)).toEqual(["responses/item-added", "responses/part-added"]);
  });

  test("LiteLLM before #24445: a message without response.content_part.added", () => {
    const all = events().filter(({ type }) => type !== "response.content_part.added");
    expect(rulesBroken(all)).toEqual(["responses/part-added"]);
  });

  test("LiteLLM before #30071, GitHub Copilot: another id in every event of an item", () => {
    const all = events();
    for (const [at, event] of all.entries()) if ("item_id" in event) event.item_id = `rs_${at}`;
    expect(rulesBroken(all)).toEqual(["responses/item-one-id"]);
  });

  test("LiteLLM before #37852: a message that is closed and was never opened", () => {
    const all = events();
    const done = all.find((event) => event.type === "response.output_item.done" && item(event).type === "message");
    const ghost = { ...done, output_index: 3, item: { ...item(done ?? {}), id: "chatcmpl-1", content: [] } };
    all.splice(-1, 0, ghost);
    expect(rulesBroken(all)).toEqual(["responses/item-added", "responses/item-output"]);
  });

  test("Ollama before #17118: the stream ends within a thought", () => {
    const all = events();
    const at = all.findLastIndex(({ type }) => type === "response.reasoning_summary_text.delta");
    expect(rulesBroken(all.slice(0, at + 1))).toEqual(["responses/last-event"]);
  });

  test("vLLM before #23218, #24788: one id for all, and content_index that counts deltas", () => {
    const all = events();
    for (const [at, event] of all.entries()) {
      if ("item_id" in event) event.item_id = "";
      if (event.type === "response.output_text.delta") event.content_index = at;
    }
    expect(rulesBroken(all)).toEqual(
      expect.arrayContaining(["responses/item-one-id", "responses/part-added", "responses/part-index"]),
    );
  });

  test("vLLM's agentic-api before #62: a message that is only done", () => {
    const all = events();
    const place = all.find((event) => item(event).type === "message")?.output_index;
    const only = all.filter(
      ({ type, output_index: at }) => at !== place || /output_text\.done|item\.done/.test(String(type)),
    );
    expect(rulesBroken(only)).toEqual(expect.arrayContaining(["responses/item-added", "responses/part-added"]));
  });

  test("sub2api before #4468: response.completed without output", () => {
    const all = events();
    finalResponse(all).output = [];
    expect(rulesBroken(all)).toEqual(["responses/item-output", "responses/output"]);
  });

  test("Bedrock's gateway (opencode #46885): a call that is done without its id", () => {
    const all = events();
    for (const event of all) {
      if (event.type === "response.output_item.done" && item(event).type === "function_call") {
        item(event).item_id = item(event).id;
        delete item(event).id;
      }
    }
    expect(rulesBroken(all)).toContain("responses/item-one-id");
  });

  test("a proxy that sends chat's chunks without names and with [DONE] alone", () => {
    const text = events().map((event) => `data: ${JSON.stringify(event)}\n\n`);
    const { findings } = judgeCapture("capture", `${text.join("")}data: [DONE]\n\n`, body);
    expect(
      [...new Set(findings.map(({ rule }) => rule))].filter((rule) => ruleNamed(rule).severity !== "note"),
    ).toEqual(["responses/event-name"]);
  });
});

test("a capture of a body is judged as one, whatever it tells of errors", () => {
  const response = events().at(-1)?.response;
  const { exchange, findings } = judgeCapture("capture", JSON.stringify(response));
  expect([exchange?.endpoint, exchange?.response.status, findings]).toEqual(["responses", 200, []]);
  const failed = { ...(response as Json), status: "failed", error: { code: "server_error", message: "x" }, output: [] };
  expect(judgeCapture("capture", JSON.stringify(failed)).findings).toEqual([]);
});

test("the form of a capture can be demanded", () => {
  const broken = (profile: "lean" | "exact") =>
    judgeCapture("capture", right, body, profile).findings.map(({ rule }) => rule);
  expect(broken(exact.name)).toEqual([]);
  expect(broken(lean.name)).toEqual(expect.arrayContaining(["profile/response-end", "profile/response-numbers"]));
});

// GET …?stream=true&starting_after=6: what was told before is not told again.
test("a stream that is continued need not begin", () => {
  const rest = events().slice(7);
  const text = rest.map((event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  const response = { status: 200, headers: null, body: text, complete: true };
  const judged = (path: string) => judge({ endpoint: "responses", request: { method: "GET", path }, response });
  expect(judged("/v1/responses/resp_1?stream=true&starting_after=6").findings).toEqual([]);
  const fromStart = judged("/v1/responses/resp_1?stream=true").findings.map(({ rule }) => rule);
  expect(fromStart).toEqual(expect.arrayContaining(["responses/created-first", "responses/sequence"]));
});

// Each of these was accused, or an answer to a request that only prewarms was not.
describe("what OpenAI's servers may send since 2026-09", () => {
  const broken = (
    request: Json,
    words: readonly Parameters<typeof streamOf>[1][number][],
    change = (text: string) => text,
  ): string[] => {
    const exchange = streamOf({ ...body, tools: undefined, ...request }, words, exact, seeded(5));
    const response = { ...exchange.response, body: change(exchange.response.body) };
    const { findings } = judge({ ...exchange, response }, "exact");
    return findings.map(({ rule }) => rule).filter((rule) => ruleNamed(rule).severity !== "note");
  };
  const ended = [
    { type: "usage", usage: { promptTokens: 7, completionTokens: 0 } },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "end", end: { kind: "done" } },
  ] as const;
  const empty = [{ type: "start", choice: 0 }, ...ended] as const;
  const spoken = [{ type: "start", choice: 0 }, { type: "text-delta", choice: 0, text: "Hello" }, ...ended] as const;
  const prewarm = { prompt_cache_options: { prewarm: true } };

  test("a request that only prewarms gets no item", () => {
    expect(broken(prewarm, empty)).toEqual([]);
    expect(broken({ generate: false }, empty)).toEqual([]);
    expect(broken(prewarm, spoken)).toContain("responses/output");
    expect(broken({}, empty)).toContain("responses/output");
  });

  test("its tiers, reasons, diagnostics and members", () => {
    const words = [
      { type: "start", choice: 0 },
      { type: "text-delta", choice: 0, text: "Hello" },
    ] as const;
    const counted = { type: "usage", usage: { promptTokens: 7, completionTokens: 2 } } as const;
    const cut = [...words, counted, { type: "finish", choice: 0, reason: "length" }, ended[2]] as const;
    for (const reason of ["steered", "max_messages"])
      expect(broken({}, cut, (text) => text.replaceAll('max_output_tokens"}', `${reason}"}`))).toEqual([]);
    expect(broken({}, cut, (text) => text.replaceAll('max_output_tokens"}', 'tired"}'))).not.toEqual([]);
    const told = [...words, counted, ended[1], ended[2]] as const;
    for (const tier of ["fast", "ultrafast"])
      expect(
        broken({ service_tier: tier }, told, (text) =>
          text.replaceAll('"service_tier":"default"', `"service_tier":"${tier}"`),
        ),
      ).toEqual([]);
    const diagnosed = `"prompt_cache_diagnostics":{"type":"unavailable"},"prompt_cache_key"`;
    const transformed = `"input_transformations":[{"id":"rs_1","type":"reasoning","action":"removed","reason":"turn_boundary"}],"instructions"`;
    expect(
      broken({}, told, (text) =>
        text
          .replaceAll('"prompt_cache_key"', diagnosed)
          .replaceAll('"instructions"', transformed)
          .replaceAll('"access_programs":null', '"access_programs":{"cyber":"standard"}'),
      ),
    ).toEqual([]);
  });

  test("its new events", () => {
    const [at, command] = [{ output_index: 3 }, { command_index: 0 }];
    const compaction = { id: "cmp_1", type: "compaction", encrypted_content: "x" };
    const inserted: Json[] = [
      { type: "response.output_item.added", item: compaction, ...at, sequence_number: 0 },
      { type: "response.compaction.compacting", item_id: "cmp_1", ...at, sequence_number: 0 },
      { type: "response.shell_call_command.added", command: "", ...command, ...at, sequence_number: 0 },
      { type: "response.shell_call_command.delta", ...command, delta: "ls", ...at, sequence_number: 0 },
      { type: "response.shell_call_command.done", command: "ls", ...command, ...at, sequence_number: 0 },
      { type: "response.output_item.done", item: compaction, ...at, sequence_number: 0 },
    ];
    const all = events();
    const spread = [...all.slice(0, -1), ...inserted, ...all.slice(-1)];
    expect(rulesBroken(spread)).toEqual([]);
    const wrong = spread.map((event) => ("command" in event ? { ...event, command: 7 } : event));
    expect(rulesBroken(wrong)).toEqual(["spec/event"]);
  });
});
