import fc from "fast-check";
import { Histogram as Reference, Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import {
  durationBuckets,
  firstTokenBuckets,
  Histogram,
  perTokenBuckets,
  RequestNumbers,
  tokenBuckets,
} from "./request-numbers.ts";
import type { ServedModel } from "../model-directory.ts";
import type { AskedFacts } from "../request-facts.ts";
import { RequestRecord } from "../request-record.ts";

const chat = { name: "chat", operation: "chat" };

function recordOf(asked: Partial<AskedFacts> = {}): RequestRecord {
  const served = { info: { id: "m" } } as ServedModel;
  const record = new RequestRecord({ receivedAt: performance.now(), api: chat, served, ...asked });
  record.sent.status = 200;
  return record;
}

test("requests are counted by the name of their key", async () => {
  const registry = new Registry();
  const numbers = new RequestNumbers(registry);
  for (const keyName of ["search", "search", "mail"]) {
    const usage = { promptTokens: 10, completionTokens: 2, promptDetails: { cached_tokens: 4 } };
    const record = recordOf({ keyName });
    record.answer.see([{ type: "usage", usage }]);
    numbers.observe(record, "finished");
  }
  numbers.observe(recordOf(), "finished");
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
  const [record, failed] = [recordOf(), recordOf()];
  record.answer.repaired({ "no-done": 1, "call-id": 2 });
  record.answer.repaired({ "call-id": 3 });
  numbers.observe(record, "finished");
  failed.answer.repaired({ "no-done": 1 });
  numbers.observe(failed, "failed");
  for (let reading = 0; reading < 2; reading++) {
    numbers.text();
    const text = await registry.metrics();
    expect(text).toContain('truewire_repairs_total{gen_ai_request_model="m",repair="no-done"} 2\n');
    expect(text).toContain('truewire_repairs_total{gen_ai_request_model="m",repair="call-id"} 5\n');
  }
});

test("other requests, and responses in the background, are not counted here", () => {
  const numbers = new RequestNumbers(new Registry());
  numbers.observe(new RequestRecord(), "finished");
  const detached = recordOf();
  detached.sent.detached = true;
  numbers.observe(detached, "finished");
  expect(numbers.text()).not.toMatch(/^[^#\n]/m);
});

describe("a histogram's text", () => {
  test("is the same as prom-client's", async () => {
    const bounds = fc.constantFrom(durationBuckets, firstTokenBuckets, perTokenBuckets, tokenBuckets);
    const value = fc.oneof(fc.double({ min: 0, max: 200, noNaN: true }), fc.nat(), fc.constantFrom(0.01, 1, 81.92));
    const label = fc.string({ unit: "binary", minLength: 1, maxLength: 8 }).filter((text) => !text.includes("\r"));
    await fc.assert(
      fc.asyncProperty(bounds, label, fc.array(value, { minLength: 1 }), async (buckets, model, values) => {
        const registry = new Registry();
        const reference = new Reference({
          name: "h",
          help: "What it is.",
          labelNames: ["model"],
          buckets,
          registers: [registry],
        });
        const histogram = new Histogram("h", "What it is.", buckets);
        const series = histogram.series({ model, key: "" });
        for (const each of values) {
          reference.observe({ model }, each);
          series.observe(each);
        }
        expect(parsed(histogram.text())).toEqual(parsed(await registry.metrics()));
      }),
    );
  });

  test("has no line before the first observation but what it is", () => {
    const histogram = new Histogram("h", "What it is.", [1]);
    histogram.series({ model: "m" });
    expect(histogram.text()).toBe("# HELP h What it is.\n# TYPE h histogram\n");
  });

  test("has cumulative buckets; a value belongs to the bucket that it bounds", () => {
    const histogram = new Histogram("h", "Text.", [1, 2]);
    const series = histogram.series({ model: 'a"\\\n' });
    for (const value of [1, 1.5, 2, 3]) series.observe(value);
    expect(histogram.text().split("\n").slice(2)).toEqual([
      'h_bucket{model="a\\"\\\\\\n",le="1"} 1',
      'h_bucket{model="a\\"\\\\\\n",le="2"} 3',
      'h_bucket{model="a\\"\\\\\\n",le="+Inf"} 4',
      'h_sum{model="a\\"\\\\\\n"} 7.5',
      'h_count{model="a\\"\\\\\\n"} 4',
      "",
    ]);
  });
});

/** Each line, as its name, its labels in any order, and its value. */
function parsed(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) =>
      line.replace(
        /\{(.*)\}/s,
        (_, labels: string) =>
          `{${labels
            .split(/(?<="),/)
            .sort()
            .join()}}`,
      ),
    )
    .sort();
}
