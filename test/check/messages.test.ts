import { describe, expect, test } from "vitest";
import { serialize } from "../../src/wire/apis/members.ts";
import { errorResponse, message, modelInfo, modelInfoPage, tokenCount } from "../../src/wire/apis/messages/schema.ts";
import { everyRule } from "../../src/judge/check/rules/every-rule.ts";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { legalMessageBody, legalMessageStream } from "./legal/messages.ts";
import type { Legal } from "./legal/stream.ts";
import { exchangeOfRecording, hasRecordings, type Recording, readRecordings } from "../support/recordings.ts";
import { times } from "../support/runs.ts";

// The rules about Anthropic's Messages API.

const isHere = hasRecordings("of Anthropic's API to judge");

const files = ["messages-stream", "messages", "messages-errors", "messages-other"] as const;
const severities = new Map(everyRule.map((rule) => [rule.id, rule.severity]));

/** What is wrong with a recording, and so no fault of the rule that finds it. */
const exceptions: Record<string, Record<string, string>> = {
  "coder_aibridge__fixtures-anthropic-haiku-simple-txtar__0": {
    "body/json": "the request next to it asked for no stream",
  },
};

function endpointOf({ endpoint }: Recording): Exchange["endpoint"] | undefined {
  if (endpoint === "/v1/messages") return "messages";
  if (endpoint === "/v1/messages/count_tokens") return "message-tokens";
  if (endpoint === "/v1/models") return "anthropic-models";
  return endpoint.startsWith("/v1/models/") ? "anthropic-model" : undefined;
}

/** Recordings of the API since a day whose bytes are Anthropic's, as exchanges. */
function recorded(file: (typeof files)[number], since: string): { name: string; exchange: Exchange }[] {
  return readRecordings(file).flatMap((recording) => {
    const endpoint = endpointOf(recording);
    const { name, date, fidelity } = recording;
    if (endpoint === undefined || (date ?? "") < since || !/^raw($| )/.test(fidelity)) return [];
    return [{ name, exchange: exchangeOfRecording(recording, endpoint) }];
  });
}

interface Part {
  readonly endpoint: Exchange["endpoint"];
  readonly body: string;
  readonly headers?: Record<string, string>;
}

/** What is judged of a recording: its body, and of the results of a batch each message. */
function partsOf(recording: Recording): readonly Part[] {
  const { body } = recording;
  if (/\/batches\/.*\/results$/.test(recording.endpoint)) {
    const lines = body.split("\n").filter(Boolean);
    const results = lines.map((line) => (JSON.parse(line) as { result: { message: unknown } }).result);
    return results.map(({ message }) => ({ endpoint: "messages", body: JSON.stringify(message), headers: {} }));
  }
  const endpoint = endpointOf(recording);
  return endpoint === undefined ? [] : [{ endpoint, body }];
}

/** A body whose members a recorder has sorted, in the order of the wire. Streams are returned as they are. */
function inOrder(body: string): string {
  if (!body.trimStart().startsWith("{")) return body;
  const value = JSON.parse(body) as { type?: unknown; data?: unknown; input_tokens?: unknown };
  const schema =
    value.type === "error"
      ? errorResponse
      : value.type === "model"
        ? modelInfo
        : value.data !== undefined
          ? modelInfoPage
          : value.input_tokens !== undefined
            ? tokenCount
            : message;
  return serialize(schema, value);
}

describe.skipIf(!isHere)("recordings of Anthropic's API", () => {
  test.each(files)("no error and no warning on %s.jsonl since October 2025", (file) => {
    const found: string[] = [];
    const all = recorded(file, "2025-10-01");
    for (const { name, exchange } of all) {
      for (const { rule, found: what } of judge(exchange).findings)
        if (severities.get(rule) !== "note" && exceptions[name]?.[rule] === undefined)
          found.push(`${name}: ${rule}: ${what}`);
    }
    expect(found).toEqual([]);
    expect(all.length).toBeGreaterThan(file === "messages-other" ? 5 : 20);
  });

  test.each(files)("%s.jsonl since May 2026 is profile exact", (file) => {
    const found: string[] = [];
    const all = recorded(file, "2026-05-01");
    for (const { name, exchange } of all) {
      for (const { rule, found: what } of judge(exchange, "exact").findings)
        if (rule.startsWith("profile/")) found.push(`${name}: ${rule}: ${what}`);
    }
    expect(found).toEqual([]);
    expect(all.length).toBeGreaterThan(5);
  });

  // Some recorders sorted the members or lost the padding. What they kept is judged all the same, in the order of the wire.
  test.each(files)("no recording of %s.jsonl since August 2026 is accused of not being profile exact", (file) => {
    const found: string[] = [];
    let judged = 0;
    for (const recording of readRecordings(file)) {
      const { name, date, fidelity, body } = recording;
      if ((date ?? "") < "2026-08") continue;
      for (const part of partsOf(recording)) {
        judged++;
        const kept =
          /sorted|re-serialised|parsed/.test(fidelity) || part.body !== body ? inOrder(part.body) : part.body;
        const { findings } = judge(
          exchangeOfRecording({ ...recording, ...part, endpoint: recording.endpoint, body: kept }, part.endpoint),
          "exact",
        );
        for (const { rule, found: what } of findings) {
          if (severities.get(rule) === "note" || (/padding lost/.test(fidelity) && rule === "profile/messages-padding"))
            continue;
          found.push(`${name}: ${rule}: ${what}`);
        }
      }
    }
    expect(found).toEqual([]);
    expect(judged).toBeGreaterThan(
      { "messages-stream": 10, messages: 50, "messages-errors": 5, "messages-other": 3 }[file],
    );
  });

  // What imitators make of a stream: each kind of damage, done to every recorded stream that it fits.
  const damages: readonly (readonly [name: string, rule: string, damage: (body: string) => string])[] = [
    ["without event names", "messages/event-name", (body) => body.replace(/^event: .*\n/gm, "")],
    ["without message_stop", "messages/message-stop", (body) => body.replace(/event: message_stop\n.*\n\n/, "")],
    ["without ends of blocks", "messages/block-stop", (body) => body.replace(/event: content_block_stop\n.*\n\n/g, "")],
    ["with one index for all", "messages/block-index", (body) => body.replace(/"index":\d+/g, '"index":0')],
    [
      "with end_turn next to a call",
      "messages/tool-stop",
      (body) => body.replace('"tool_use","stop_seq', '"end_turn","stop_seq'),
    ],
    [
      "without message_delta's usage",
      "messages/end-usage",
      (body) => body.replace(/,"usage":\{[^{}]*\}( *\})\n\nevent: message_stop/, "$1\n\nevent: message_stop"),
    ],
    [
      "without signatures",
      "messages/signature",
      (body) => body.replace(/event: content_block_delta\n.*signature_delta.*\n\n/g, ""),
    ],
    ["with [DONE]", "messages/no-done", (body) => `${body}data: [DONE]\n\n`],
    ["cut in the middle", "messages/message-stop", (body) => body.slice(0, body.length / 2)],
  ];
  test.each(damages)("a recorded stream %s is accused by %s", (_, rule, damage) => {
    let damaged = 0;
    const missed: string[] = [];
    for (const { name, exchange } of recorded("messages-stream", "2025-10-01")) {
      if (exceptions[name]) continue;
      const body = damage(exchange.response.body);
      if (body === exchange.response.body) continue;
      damaged++;
      const { findings } = judge({ ...exchange, response: { ...exchange.response, body } });
      if (!findings.some((finding) => finding.rule === rule)) missed.push(name);
    }
    expect(missed).toEqual([]);
    expect(damaged).toBeGreaterThan(10);
  });
});

// What our own reader and writer make is legal in both profiles: no rule finds anything in it, not even a note.
test.each<[string, (seed: number) => Legal]>([
  ["streams", legalMessageStream],
  ["bodies", legalMessageBody],
])("%s of our own writer have no finding", (_, legal) => {
  const found: string[] = [];
  for (let seed = 0; seed < times(200); seed++) {
    const { exchange, profile } = legal(seed);
    for (const demanded of [undefined, profile.name]) {
      for (const finding of judge(exchange, demanded).findings)
        found.push(`seed ${seed}, ${demanded}: ${finding.rule}: ${finding.found}`);
    }
  }
  expect(found).toEqual([]);
});

test("a stream of profile exact is not lean, and the other way round where it is long enough to tell", () => {
  for (let seed = 0; seed < times(200); seed++) {
    const { exchange, profile } = legalMessageStream(seed);
    const events = exchange.response.body.split("\n\n").length - 1;
    if (events <= 8) continue;
    const { findings } = judge(exchange, profile.name === "lean" ? "exact" : "lean");
    expect(findings.map(({ rule }) => rule)).toContain("profile/messages-padding");
  }
});

// What the issues of these servers show.
describe("known servers", () => {
  const start = (usage = '{"input_tokens":9,"output_tokens":1}') =>
    `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":${usage}}}\n\n`;
  const event = (type: string, members: string) => `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`;
  const opened = (index: number, block: string) =>
    event("content_block_start", `"index":${index},"content_block":${block}`);
  const delta = (index: number, json: string) => event("content_block_delta", `"index":${index},"delta":${json}`);
  const stop = (index: number) => event("content_block_stop", `"index":${index}`);
  const end = (reason: string, usage = '{"input_tokens":9,"output_tokens":4}') =>
    event("message_delta", `"delta":{"stop_reason":"${reason}","stop_sequence":null},"usage":${usage}`) +
    'event: message_stop\ndata: {"type":"message_stop"}\n\n';
  const text = '{"type":"text","text":""}';
  const call = '{"type":"tool_use","id":"toolu_1","name":"f","input":{}}';
  const broken = (body: string): string[] => {
    const request = {
      method: "POST",
      path: "/v1/messages",
      body: { model: "m", stream: true, tools: [{ name: "f" }] },
    };
    const response = { status: 200, headers: null, body, complete: true };
    const { findings } = judge({ endpoint: "messages", request, response });
    return [...new Set(findings.map(({ rule }) => rule))].filter((rule) => severities.get(rule) !== "note").toSorted();
  };

  test("Ollama #17101: a thought begins inside the text, with its index", () => {
    const thinking = '{"type":"thinking","thinking":"","signature":""}';
    const body =
      start() +
      opened(0, text) +
      delta(0, '{"type":"text_delta","text":"---"}') +
      opened(0, thinking) +
      delta(0, '{"type":"thinking_delta","thinking":"Hm."}') +
      delta(0, '{"type":"signature_delta","signature":"s"}') +
      stop(0) +
      end("end_turn");
    expect(broken(body)).toEqual(["messages/block-index", "messages/block-order", "messages/block-stop"]);
  });

  test("SGLang #24293: text in a call's block", () => {
    const body =
      start() +
      opened(0, call) +
      delta(0, '{"type":"input_json_delta","partial_json":"{}"}') +
      delta(0, '{"type":"text_delta","text":"\\n"}') +
      stop(0) +
      end("tool_use");
    expect(broken(body)).toEqual(["messages/delta-kind"]);
  });

  test("llama.cpp #22960: a call without its input", () => {
    const body =
      start() +
      opened(0, '{"type":"tool_use","id":"a","name":"f"}') +
      delta(0, '{"type":"input_json_delta","partial_json":"{}"}') +
      stop(0) +
      end("tool_use");
    expect(broken(body)).toEqual(["messages/block-start"]);
  });

  test("LiteLLM #34692: end_turn after a call, and an empty text before it", () => {
    const body =
      start() +
      opened(0, text) +
      stop(0) +
      opened(1, call) +
      delta(1, '{"type":"input_json_delta","partial_json":"{}"}') +
      stop(1) +
      end("end_turn");
    expect(broken(body)).toEqual(["messages/empty-text", "messages/tool-stop"]);
  });

  test("SGLang #20678, grok2api #612: the prompt's tokens come late, or never", () => {
    const said = opened(0, text) + delta(0, '{"type":"text_delta","text":"Hi"}') + stop(0);
    const none = '{"input_tokens":0,"output_tokens":0}';
    expect(broken(start(none) + said + end("end_turn"))).toEqual(["messages/start-input"]);
    expect(broken(start(none) + said + end("end_turn", '{"output_tokens":4}'))).toEqual(["messages/usage-counted"]);
  });

  test("an answer in order, with the least that clients need: nothing", () => {
    const body = start() + opened(0, text) + delta(0, '{"type":"text_delta","text":"Hi"}') + stop(0) + end("end_turn");
    expect(broken(body)).toEqual([]);
  });
});
