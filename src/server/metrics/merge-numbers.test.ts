import fc from "fast-check";
import { Counter, Gauge, Registry } from "prom-client";
import { expect, test } from "vitest";
import { RequestRecord } from "../request-record.ts";
import { lastingNumbers, mergeNumbers } from "./merge-numbers.ts";
import { openMetrics } from "./open-metrics.ts";

const chat = { name: "chat", operation: "chat" };
const records = fc.array(
  fc.record({
    worker: fc.nat(2),
    servedModel: fc.constantFrom("m", 'a "b" {c} d', "back\\slash\nline"),
    keyName: fc.constantFrom("", "alice"),
    outcome: fc.constantFrom("finished", "failed"),
    tokens: fc.nat(100_000),
    cached: fc.nat(100),
  }),
  { maxLength: 40 },
);

/** Samples of requests, by series; those with a time are left out: no two processes measure the same. */
function countsIn(text: string): Map<string, number> {
  const counts = text
    .split("\n")
    .filter((line) =>
      /^(?:gen_ai_client|gen_ai_server_request_duration_seconds_count|truewire_(?:cached|repairs))/.test(line),
    )
    .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))] as const);
  return new Map(counts);
}

test("several processes report the sums that one process would report, even after one has ended", async () => {
  await fc.assert(
    fc.asyncProperty(records, fc.nat(2), async (all, gone) => {
      const alone = openMetrics();
      const processes = [openMetrics(), openMetrics(), openMetrics()];
      for (const { worker, servedModel, keyName, outcome, tokens, cached } of all) {
        const usage = { promptTokens: tokens, completionTokens: 2, promptDetails: { cached_tokens: cached } };
        const record = Object.assign(new RequestRecord(), { api: chat, servedModel, keyName, status: 200, usage });
        record.repaired({ "no-done": 1 + (tokens % 3) });
        alone.observe(record, outcome as "finished");
        processes[worker]?.observe(record, outcome as "finished");
      }
      const texts = await Promise.all(processes.map((each) => each.text([], 1)));
      const kept = texts.map((text, at) => ({ worker: String(at), text: at === gone ? lastingNumbers(text) : text }));
      const merged = mergeNumbers(kept);
      expect(countsIn(merged)).toEqual(countsIn(await alone.text([], 1)));
      expect(merged).toContain("\ntruewire_open_requests 2\n");
      for (const each of [alone, ...processes]) each.close();
    }),
    { numRuns: 100 },
  );
});

test("metrics of a process are reported for each; metrics of shared engines are not summed", async () => {
  const texts = await Promise.all(
    [1, 2].map(async (number) => {
      const registry = new Registry();
      const registers = [registry];
      new Gauge({ name: "nodejs_heap_size_used_bytes", help: "Heap.", registers }).set(number);
      const labelNames = ["engine"];
      new Gauge({ name: "truewire_slots", help: "Slots.", labelNames, registers }).set({ engine: "e" }, 4);
      new Counter({ name: "truewire_restarts_total", help: "R.", labelNames, registers }).inc({ engine: "e" }, number);
      new Counter({ name: "truewire_upstream_retries_total", help: "T.", labelNames, registers }).inc(
        { engine: "u" },
        number,
      );
      return { worker: String(number), text: await registry.metrics() };
    }),
  );
  const samples = mergeNumbers(texts)
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  expect(samples).toEqual([
    'nodejs_heap_size_used_bytes{worker="1"} 1',
    'nodejs_heap_size_used_bytes{worker="2"} 2',
    'truewire_slots{engine="e"} 4',
    'truewire_restarts_total{engine="e"} 2',
    'truewire_upstream_retries_total{engine="u"} 3',
  ]);
  const lasting = lastingNumbers(texts[0]?.text ?? "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  expect(lasting).toEqual(['truewire_restarts_total{engine="e"} 1', 'truewire_upstream_retries_total{engine="u"} 1']);
});
