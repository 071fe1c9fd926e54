import { expect, test } from "vitest";
import { judgeAnswer } from "./check-capture.ts";

const answer = {
  candidates: [{ content: { parts: [{ text: "Hi" }], role: "model" }, finishReason: "STOP", index: 0 }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  modelVersion: "m",
  responseId: "r",
};
const cut = { ...answer, candidates: [{ content: { parts: [{ text: "Hi" }], role: "model" }, index: 0 }] };

test.each([
  ["a whole answer", (chunk: object) => JSON.stringify(chunk, null, 2)],
  ["events", (chunk: object) => `data: ${JSON.stringify(chunk)}\r\n\r\n`],
  ["a list", (chunk: object) => `[${JSON.stringify(chunk)}\n]`],
])("a capture of Gemini's API is recognized by its body: %s", (_, written) => {
  const judged = judgeAnswer("capture", written(answer), {});
  expect(judged.exchange.endpoint).toBe("gemini");
  expect(judged.findings).toEqual([]);
  const findings = judgeAnswer("capture", written(cut), {}).findings.map(({ rule }) => rule);
  expect(findings).toEqual(["gemini/finish"]);
});

test.each([
  ["/v1beta/models/a:b/c:streamGenerateContent?alt=sse", "gemini"],
  ["/v1beta/models/m:countTokens", "gemini-tokens"],
  ["/v1beta/models/m:batchEmbedContents", "gemini-embeddings"],
  ["/v1/models/m:toString", "chat"],
])("and by its path: %s", (path, endpoint) => {
  expect(judgeAnswer("capture", "{}", { path, request: {} }).exchange.endpoint).toBe(endpoint);
});
