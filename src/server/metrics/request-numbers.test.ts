import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { RequestRecord } from "../request-record.ts";
import { RequestNumbers } from "./request-numbers.ts";

const chat = { name: "chat", operation: "chat" };

function recordOf(more: Partial<RequestRecord>): RequestRecord {
  return Object.assign(new RequestRecord(), { api: chat, servedModel: "m", status: 200 }, more);
}

test("requests are told apart by the name of their key", async () => {
  const registry = new Registry();
  const numbers = new RequestNumbers(registry);
  for (const keyName of ["search", "search", "mail"]) {
    const usage = { promptTokens: 10, completionTokens: 2, promptDetails: { cached_tokens: 4 } };
    numbers.observe(recordOf({ keyName, usage }), "finished");
  }
  numbers.observe(recordOf({}), "finished");
  const text = numbers.text() + (await registry.metrics());
  const lines = text.split("\n").filter((line) => /_duration_seconds_count|cached/.test(line) && !line.startsWith("#"));
  expect(lines.map((line) => line.replace(/^(\w+)\{.*?(key="\w*")?(?:,outcome.*)?\} (\d+)$/, "$1 $2 $3"))).toEqual([
    'gen_ai_server_request_duration_seconds_count key="search" 2',
    'gen_ai_server_request_duration_seconds_count key="mail" 1',
    "gen_ai_server_request_duration_seconds_count  1",
    'truewire_cached_input_tokens_total key="search" 8',
    'truewire_cached_input_tokens_total key="mail" 4',
    'truewire_cached_input_tokens_total key="" 0',
  ]);
});

test("repairs are added up by model and kind, and read as often as anybody likes", async () => {
  const registry = new Registry();
  const numbers = new RequestNumbers(registry);
  const record = recordOf({});
  record.repaired({ "no-done": 1, "call-id": 2 });
  record.repaired({ "call-id": 3 });
  numbers.observe(record, "finished");
  numbers.observe(recordOf({ repairs: new Map([["no-done", 1]]) }), "failed");
  for (let reading = 0; reading < 2; reading++) {
    numbers.text();
    const text = await registry.metrics();
    expect(text).toContain('truewire_repairs_total{gen_ai_request_model="m",repair="no-done"} 2\n');
    expect(text).toContain('truewire_repairs_total{gen_ai_request_model="m",repair="call-id"} 5\n');
  }
});

test("what is no request for an answer, and what goes on in the background, is not counted here", () => {
  const numbers = new RequestNumbers(new Registry());
  numbers.observe(recordOf({ api: undefined }), "finished");
  numbers.observe(recordOf({ detached: true }), "finished");
  expect(numbers.text()).not.toMatch(/^[^#\n]/m);
});
