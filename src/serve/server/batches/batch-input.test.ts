import { expect, test } from "vitest";
import { growthOf, maxGrowth } from "../../../../test/support/growth.ts";
import type { BatchBeginning } from "../../../wire/apis/batches/form.ts";
import { openaiBatches } from "../../../wire/apis/batches/openai.ts";
import { runSync } from "../../../wire/core/steps.ts";
import { readBatchInput, readResults } from "./batch-input.ts";
import { readBatch } from "./stored-batches.ts";

const batch: BatchBeginning = {
  id: "batch_1",
  api: "openai",
  endpoint: "/v1/chat/completions",
  inputId: "file-1",
  outputId: "file-2",
  errorId: "file-3",
  created: 1,
  expires: 2,
  headers: {},
};

const line = (id: string, content: string): string =>
  JSON.stringify({
    custom_id: id,
    method: "POST",
    url: batch.endpoint,
    body: { model: "m", messages: [{ role: "user", content }] },
  });

test("lines whose prompts begin alike are neighbours, and those of one beginning keep their order", () => {
  const text = [line("1", "b"), line("2", "a"), "", line("3", "b"), line("4", "a")].join("\r\n");
  const input = runSync(readBatchInput(text, batch, openaiBatches));
  expect("lines" in input && [input.model, ...input.lines.map(({ customId }) => customId)]).toEqual([
    "m",
    "2",
    "4",
    "1",
    "3",
  ]);
});

test("reading the requests and the results of a batch costs in proportion to their length", () => {
  const works: Readonly<Record<string, (size: number) => () => unknown>> = {
    lines: (size) => {
      const text = Array.from({ length: size }, (_, at) => line(String(at), "the same beginning")).join("\n");
      return () => runSync(readBatchInput(text, batch, openaiBatches));
    },
    blanks: (size) => {
      const text = " ".repeat(size * 64);
      return () => runSync(readBatchInput(text, batch, openaiBatches));
    },
    "empty lines": (size) => {
      const text = "\n".repeat(size * 16);
      return () => runSync(readBatchInput(text, batch, openaiBatches));
    },
    results: (size) => {
      const text = `${line("a", "b")}\n`.repeat(size);
      return () => runSync(readResults(text, () => {}));
    },
    events: (size) => {
      const text = JSON.stringify(batch) + `\n${JSON.stringify({ cancelled: 1 })}`.repeat(size);
      return () => readBatch(text);
    },
  };
  for (const [name, work] of Object.entries(works)) expect(growthOf(work), name).toBeLessThan(maxGrowth);
});

// Of several claims with one number, the first one counts: two processes could otherwise run one batch.
test("the first of several claims counts until it is given back, and torn lines are ignored", () => {
  const claim = (by: string, number: number): string => JSON.stringify({ claim: { by, number, at: 1 } });
  const claimed = [JSON.stringify(batch), claim("a", 0), claim("b", 0), `{"started":{"at":3,`];
  expect(readBatch(claimed.join("\n"))).toMatchObject({ claim: { by: "a" }, nextClaim: 1 });
  const given = [...claimed, JSON.stringify({ released: 0 })];
  expect(readBatch(given.join("\n"))?.claim).toBeUndefined();
  expect(readBatch([...given, claim("b", 1), claim("c", 1)].join("\n"))).toMatchObject({
    claim: { by: "b" },
    nextClaim: 2,
  });
});
