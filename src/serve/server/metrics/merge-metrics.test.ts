import { expect, test } from "vitest";
import type { ServedModel } from "../model-directory.ts";
import { RequestRecord } from "../request-record.ts";
import { mergeMetrics } from "./merge-metrics.ts";
import { openMetrics } from "./open-metrics.ts";

test("each process has series of its own, and each metric one group", async () => {
  const names = ["m", 'a "b" {c} d', "back\\slash\nline"];
  const processes = [openMetrics(), openMetrics()];
  for (const [at, metrics] of processes.entries())
    for (const id of names) {
      const usage = { promptTokens: 10 + at, completionTokens: 2 };
      const api = { name: "chat", operation: "chat" };
      const record = new RequestRecord({ receivedAt: performance.now(), api, served: { info: { id } } as ServedModel });
      record.sent.status = 200;
      record.answer.see([{ type: "usage", usage }]);
      metrics.observe(record, "finished");
    }
  const texts = await Promise.all(processes.map((metrics) => metrics.text([], 3)));
  for (const metrics of processes) metrics.close();
  const merged = mergeMetrics(texts.map((text, at) => ({ worker: at + 1, text })));

  const lines = merged.split("\n");
  const heads = lines.filter((line) => line.startsWith("# TYPE "));
  expect(new Set(heads).size).toBe(heads.length);
  // Without the label, they are the samples of each process.
  for (const [at, text] of texts.entries()) {
    const own = lines.filter((line) => line.includes(`{worker="${at + 1}"`));
    const plain = own.map((line) => line.replace(`{worker="${at + 1}"} `, " ").replace(`worker="${at + 1}",`, ""));
    expect(plain).toEqual(text.split("\n").filter((line) => line !== "" && !line.startsWith("#")));
  }
  expect(merged).toContain('\ntruewire_open_requests{worker="2"} 3\n');
});

test("a process that did not report its metrics has no series", () => {
  const text = "# HELP a A.\n# TYPE a gauge\na 1\n";
  expect(
    mergeMetrics([
      { worker: 1, text: "" },
      { worker: 2, text },
    ]),
  ).toBe('# HELP a A.\n# TYPE a gauge\na{worker="2"} 1\n');
});
