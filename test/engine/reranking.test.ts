import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine, RerankAnswer, RerankRequest } from "../../src/wire/core/engine.ts";
import { score } from "../fixtures/encoder-forward.ts";
import { writeRandomEncoder, type RandomEncoder } from "../fixtures/random-encoder.ts";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";
import { json } from "../support/transports.ts";
import { drive, openBuilt } from "./local-engine.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const query = "what color is the sky";
const documents = ["the cat sat on the mat", "the sky is blue", "red", "the moon ran on"];
let model: RandomEncoder;
let engine: Engine;
beforeAll(async () => {
  model = writeRandomEncoder(join(folder, "ranks.gguf"), { pooling: "rank" });
  engine = await openBuilt({ model: join(folder, "ranks.gguf") });
});
afterAll(async () => {
  await engine.close(0);
  rmSync(folder, { recursive: true, force: true });
});

function rank(over: Partial<RerankRequest>, from: Engine = engine): Promise<RerankAnswer> {
  if (!from.ask) throw new Error("It cannot.");
  const request = { id: "req_1", model: "any", query, documents, extra: {}, ...over };
  return from.ask({ kind: "rerank", request }, new AbortController().signal);
}

/** The query and a document as a BERT reads them: [CLS] query [SEP] document, as llama.cpp's server has it. */
function pair(document: string): number[] {
  return [...model.tokens(query), ...model.tokens(document).slice(1, -1)];
}

describe("a reranker", () => {
  test("its scores are those of another implementation", async () => {
    const { scores, promptTokens } = await rank({ rawScores: true });
    for (const [at, document] of documents.entries()) expect(scores[at]).toBeCloseTo(score(model, pair(document)), 1);
    expect(promptTokens).toBe(documents.reduce((sum, document) => sum + pair(document).length, 0));
    const { scores: probabilities } = await rank({});
    expect(probabilities).toEqual(scores.map((raw) => 1 / (1 + Math.exp(-raw))));
  });

  test("each document has the score that it has alone", async () => {
    const { scores } = await rank({ rawScores: true });
    for (const [at, document] of documents.entries())
      expect((await rank({ documents: [document], rawScores: true })).scores[0]).toBeCloseTo(
        scores[at] ?? Number.NaN,
        2,
      );
  });

  test("a text that spells a control token is a text", async () => {
    const { promptTokens } = await rank({ documents: ["a [SEP] b"] });
    expect(promptTokens).toBeGreaterThan(pair("a b").length + 1);
  });

  test("a document that is too long with the query is named", async () => {
    const long = Array.from({ length: 60 }, () => "cat").join(" ");
    await expect(rank({ documents: ["a", long] })).rejects.toMatchObject({
      failure: {
        status: 400,
        param: "documents[1]",
        code: "context_length_exceeded",
        message: expect.stringContaining("documents[1] with the query has 67 tokens") as string,
      },
    });
  });

  test("it ranks, and does nothing else", async () => {
    expect(engine.models()[0]?.endpoints).toEqual(["rerank"]);
    const request = { id: "1", model: "any", inputs: ["a"], extra: {} };
    await expect(engine.ask?.({ kind: "embed", request }, new AbortController().signal)).rejects.toMatchObject({
      failure: { status: 404, message: expect.stringContaining("/v1/rerank") as string },
    });
    expect((await drive(engine).complete("Hi")).end).toMatchObject({ kind: "rejected", failure: { status: 404 } });
  });

  // llama.cpp's server puts the document into the query, where that says so.
  test("its file's template writes the query and the document, once each", async () => {
    const path = join(folder, "template.gguf");
    const template = "[CLS]{query}[SEP]the {document}[SEP]";
    const own = writeRandomEncoder(path, { pooling: "rank", rerankTemplate: template });
    const templated = await openBuilt({ model: path });
    try {
      const { scores, promptTokens } = await rank({ documents: ["blue cat"], rawScores: true }, templated);
      const tokens = [...own.tokens(query), ...own.tokens("the blue cat").slice(1)];
      expect(promptTokens).toBe(tokens.length);
      expect(scores[0]).toBeCloseTo(score(own, tokens), 1);
      const told = await rank({ query: "a", documents: ["[SEP]"], rawScores: true }, templated);
      const plain = await rank({ query: "a", documents: ["b"], rawScores: true }, templated);
      // Of "[SEP]" in a document come several tokens, not one.
      expect(told.promptTokens).toBeGreaterThan((plain.promptTokens ?? 0) + 1);
    } finally {
      await templated.close(0);
    }
  });
});

describe("POST /v1/rerank", () => {
  let server: RunningTruewire;
  beforeAll(async () => {
    writeRandomEncoder(join(folder, "embeds.gguf"), { pooling: "mean" });
    server = await startTruewire([
      join(folder, "ranks.gguf"),
      join(folder, "embeds.gguf"),
      "--port",
      "0",
      "--gpu",
      "off",
    ]);
  });
  afterAll(() => server.stop());

  const ask = async (
    body: unknown,
    path = "/v1/rerank",
    base = server.url,
  ): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(base + path, json(body));
    return { status: response.status, body: await response.json() };
  };

  test("the best come first, with what was asked for of them", async () => {
    const scores = documents
      .map((document, index) => ({ index, raw: score(model, pair(document)) }))
      .sort((one, other) => other.raw - one.raw);
    const tokens = documents.reduce((sum, document) => sum + pair(document).length, 0);
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    const { body } = await ask({ model: "ranks", query, documents });
    expect(body).toEqual({
      id: expect.any(String) as string,
      object: "list",
      model: "ranks",
      results: scores.map(({ index }) => ({ index, relevance_score: expect.any(Number) as number })),
      usage,
      meta: { tokens: { input_tokens: tokens } },
    });
    const told = documents.map((text) => ({ text }));
    for (const path of ["/rerank", "/v2/rerank"]) {
      const best = await ask({ model: "ranks", query, documents: told, top_n: 2, return_documents: true }, path);
      expect(best.body).toMatchObject({
        results: scores.slice(0, 2).map(({ index }) => ({ index, document: { text: documents[index] } })),
        usage,
      });
    }
  });

  test.each([
    [{ query, documents }, null, "you must provide a model parameter"],
    [{ model: "ranks", documents }, "query", "Missing required parameter: 'query'."],
    [{ model: "ranks", query: "", documents }, "query", "Invalid 'query': empty string."],
    [{ model: "ranks", query }, "documents", "Missing required parameter: 'documents'."],
    [{ model: "ranks", query, documents: [] }, "documents", "Invalid 'documents': empty array."],
    [{ model: "ranks", query, documents: ["a", { image: "b" }] }, "documents[1].text", "Missing required parameter"],
    [{ model: "ranks", query, documents, top_n: 0 }, "top_n", "Invalid 'top_n'"],
    [{ model: "ranks", query, documents, return_documents: "yes" }, "return_documents", "Invalid type"],
  ])("%j is refused", async (body, param, message) => {
    expect(await ask(body)).toMatchObject({
      status: 400,
      body: { error: { param, message: expect.stringContaining(message) as string } },
    });
  });

  test("a model that is no reranker says so, and one that is not there is told with those that are", async () => {
    expect(await ask({ model: "embeds", query, documents })).toMatchObject({
      status: 404,
      body: { error: { param: "model", message: expect.stringContaining("is not a reranker") as string } },
    });
    expect(await ask({ model: "none", query, documents })).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringContaining("`ranks`.") as string } },
    });
  });

  test("another server's reranker is asked, and its answer has this shape", async () => {
    const before = await startTruewire([`${server.url}/v1`, "--port", "0"]);
    try {
      const direct = await ask({ model: "ranks", query, documents, top_n: 3 });
      const passed = await ask({ model: "ranks", query, documents, top_n: 3 }, "/v1/rerank", before.url);
      const { id: _, ...expected } = direct.body as Record<string, unknown>;
      expect(passed).toMatchObject({ status: 200, body: expected });
      expect(await ask({ model: "embeds", query, documents }, "/v1/rerank", before.url)).toMatchObject({ status: 404 });
    } finally {
      await before.stop();
    }
  });
});
