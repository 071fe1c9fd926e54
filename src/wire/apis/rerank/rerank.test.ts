import { expect, test } from "vitest";
import { readRanking, readRerankRequest, writeRanking } from "./rerank.ts";
import { ranking } from "./schema.ts";

const scores = [0.25, 0.75];
const results = [
  { index: 1, relevance_score: 0.75, document: { text: "b" } },
  { index: 0, relevance_score: 0.25 },
];

test.each([
  ["Cohere", { id: "1", results, meta: { tokens: { input_tokens: 9 } } }, { promptTokens: 9 }],
  ["Jina", { model: "jina", results, usage: { total_tokens: 9 } }, { promptTokens: 9, model: "jina" }],
  ["llama.cpp's server", { results, usage: { prompt_tokens: 9, total_tokens: 9 } }, { promptTokens: 9 }],
  ["Voyage", { object: "list", data: results, usage: { total_tokens: 9 } }, { promptTokens: 9 }],
  [
    "Text Embeddings Inference",
    [
      { index: 1, score: 0.75 },
      { index: 0, score: 0.25 },
    ],
    { promptTokens: null },
  ],
])("scores as %s tells them, in the order of the documents", (_, body, rest) => {
  expect(readRanking(body, 2)).toEqual({ scores, ...rest });
});

test.each([
  ["no ranking", { results: "none" }, "has no ranking"],
  ["too few", { results: results.slice(1) }, "1 scores for 2 documents"],
  ["a document that was not sent", { results: [...results, { index: 2, relevance_score: 1 }] }, "without a document's"],
  ["no score", { results: [{ index: 0 }] }, "without a document's"],
  ["an error", { error: { message: "Down.", type: "server_error" } }, "Down."],
])("%s is a bad answer", (_, body, message) => {
  expect(() => readRanking(body, 2)).toThrow(message);
});

test("a ranking is written as the schema describes it", () => {
  const read = readRerankRequest(
    { model: "m", query: "q", documents: ["a", { text: "b" }], return_documents: true, x: 1 },
    "r",
  );
  expect(read.request).toMatchObject({ documents: ["a", "b"], extra: { x: 1 } });
  const json = writeRanking({ scores, promptTokens: 9 }, read, "m");
  const value: unknown = JSON.parse(json);
  expect(ranking.safeParse(value).error?.issues).toBeUndefined();
  expect(value).toMatchObject({
    results: [{ index: 1, relevance_score: 0.75, document: { text: "b" } }, { index: 0 }],
  });
});
