import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { EmbeddingAnswer, EmbeddingRequest, Engine } from "../../src/wire/core/engine.ts";
import { FailureError } from "../../src/wire/core/failure.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving, transports } from "../support/transports.ts";

/** Embeds a text as its length and its position. */
class EmbeddingEngine extends ScriptedEngine implements Engine {
  readonly asked: EmbeddingRequest[] = [];

  constructor() {
    super(() => answer(["Hi"]));
  }

  override readonly handlers = {
    embed: async (request: EmbeddingRequest): Promise<EmbeddingAnswer> => {
      this.asked.push(request);
      if (request.inputs[0] === "fail") throw new FailureError({ kind: "bad-answer", message: "Down.", status: 502 });
      return { vectors: request.inputs.map((input, at) => [input.length, at + 0.25]), promptTokens: 7 };
    },
  };
}

describe.each(transports)("embeddings through $name", ({ open }) => {
  test("texts and token ids, in their order, with usage", async () => {
    const api = await open(serving(new EmbeddingEngine()));
    const texts = await api.fetch("/v1/embeddings", json({ model: "scripted", input: ["one", "three"] }));
    expect(await texts.json()).toEqual({
      object: "list",
      data: [
        { object: "embedding", index: 0, embedding: [3, 0.25] },
        { object: "embedding", index: 1, embedding: [5, 1.25] },
      ],
      model: "scripted",
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
    const tokens = (await (
      await api.fetch("/embeddings", json({ model: "scripted", input: [1, 2, 3, 4] }))
    ).json()) as {
      data: unknown;
    };
    expect(tokens.data).toEqual([{ object: "embedding", index: 0, embedding: [4, 0.25] }]);
    await api.close();
  });

  test.each([
    [{ input: "x" }, null, "you must provide a model parameter"],
    [{ model: "scripted" }, "input", "Missing required parameter: 'input'."],
    [{ model: "scripted", input: [] }, "input", "Invalid 'input': empty array."],
    [{ model: "scripted", input: ["a", 3] }, "input[1]", "Invalid type for 'input[1]'"],
    [{ model: "scripted", input: "x", dimensions: -1 }, null, "-1 is less than the minimum of 1 - 'dimensions'"],
    [{ model: "scripted", input: "x", encoding_format: "zip" }, "encoding_format", "Invalid value: 'zip'."],
  ])("%j is refused", async (body, param, message) => {
    const api = await open(serving(new EmbeddingEngine()));
    const response = await api.fetch("/v1/embeddings", json(body));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { param, message: expect.stringContaining(message) as string },
    });
    await api.close();
  });

  test("an engine that cannot embed is a 404, one that fails keeps its status", async () => {
    const without = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    expect((await without.fetch("/v1/embeddings", json({ model: "scripted", input: "x" }))).status).toBe(404);
    await without.close();
    const exact = await open(serving(new ScriptedEngine(() => answer(["Hi"])), { wire: "exact" }));
    const refused = await exact.fetch("/v1/embeddings", json({ model: "scripted", input: "x" }));
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { error: { message: "You are not allowed to generate embeddings from this model", param: null, code: null } },
    ]);
    await exact.close();
    const failing = await open(serving(new EmbeddingEngine()));
    expect((await failing.fetch("/v1/embeddings", json({ model: "scripted", input: "fail" }))).status).toBe(502);
    await failing.close();
  });
});

test("the openai SDK, which asks for base64 by itself, reads the floats", async () => {
  const engine = new EmbeddingEngine();
  const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const { data } = await client.embeddings.create({ model: "scripted", input: ["four"] });
  expect(data[0]?.embedding).toEqual([4, 0.25]);
  await server.close(0);
});
