import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LlamaEngineOptions } from "../../src/engines/llama/options.ts";
import type { EmbeddingAnswer, EmbeddingRequest, Engine } from "../../src/wire/core/engine.ts";
import { dot, encode, mean, unit } from "../fixtures/encoder-forward.ts";
import { writeRandomEncoder } from "../fixtures/random-encoder.ts";
import { writeRandomModel, type RandomModelOptions } from "../fixtures/random-model.ts";
import { startTruewire } from "../support/serve.ts";
import { drive, openBuilt, until, type TestEngine } from "./local-engine.ts";
import { runs } from "../support/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const open: Engine[] = [];
afterAll(async () => {
  await Promise.all(open.map((engine) => engine.close(0)));
  rmSync(folder, { recursive: true, force: true });
});

async function openModel(name: string, options: Partial<LlamaEngineOptions> = {}): Promise<Engine> {
  const engine = await openBuilt({ model: join(folder, name), ...options });
  open.push(engine);
  return engine;
}

/** A llama that generates unless its file says how it pools. */
async function openLlama(model: RandomModelOptions, options: Partial<LlamaEngineOptions> = {}): Promise<Engine> {
  const name = `llama-${model.pooling ?? "plain"}.gguf`;
  writeRandomModel(join(folder, name), { contextLength: 1024, chatTemplate: "{{ messages[0].content }}", ...model });
  return openModel(name, options);
}

type Inputs = EmbeddingRequest["inputs"];

function embed(
  engine: Engine,
  inputs: Inputs,
  over: Partial<EmbeddingRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<EmbeddingAnswer> {
  if (!engine.ask) throw new Error("It cannot.");
  return engine.ask({ kind: "embed", request: { id: "req_1", model: "any", inputs, extra: {}, ...over } }, signal);
}

/** The cosine of the angle between two vectors of length one; vectors of different passes differ in their last digits. */
function expectSame(one: readonly number[] | undefined, other: readonly number[] | undefined): void {
  expect(one).toHaveLength(other?.length ?? -1);
  expect(dot(one ?? [], other ?? [])).toBeGreaterThan(0.9999);
}

describe.each(["mean", "cls"] as const)("an encoder with %s pooling", (pooling) => {
  const name = `${pooling}.gguf`;
  const encoder = writeRandomEncoder(join(folder, name), { pooling });
  let engine: Engine;
  beforeAll(async () => {
    engine = await openModel(name);
  });

  test("its vectors are those of another implementation, made one long", async () => {
    const texts = ["the cat sat on the mat", "what color is the sky", "a", "red moon 42"];
    const { vectors, promptTokens } = await embed(engine, texts);
    for (const [at, text] of texts.entries()) {
      const states = encode(encoder, encoder.tokens(text));
      const expected = unit(pooling === "mean" ? mean(states) : (states[0] ?? []));
      for (const [i, value] of (vectors[at] ?? []).entries()) expect(value).toBeCloseTo(expected[i] ?? Number.NaN, 2);
      expectSame(vectors[at], expected);
      expect(Math.hypot(...(vectors[at] ?? []))).toBeCloseTo(1, 5);
    }
    expect(promptTokens).toBe(texts.reduce((sum, text) => sum + encoder.tokens(text).length, 0));
  });

  test("token ids are taken as they are: a whole text's give the text's vector", async () => {
    const tokens = encoder.tokens("the dog ran");
    const { vectors, promptTokens } = await embed(engine, ["the dog ran", tokens]);
    expectSame(vectors[0], vectors[1]);
    expect(promptTokens).toBe(2 * tokens.length);
  });

  test("whatever is asked for together: each has the vector that it has alone", async () => {
    const word = fc.constantFrom("the", "cat", "sky", "blue", "x1", "moon");
    const input = fc.oneof(
      fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" ")),
      fc.array(fc.integer({ min: 5, max: 40 }), { minLength: 1, maxLength: 12 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(input, { minLength: 1, maxLength: 12 }), async (inputs) => {
        const together = await embed(engine, inputs);
        for (const [at, one] of inputs.entries()) {
          const [alone] = (await embed(engine, [one])).vectors;
          expectSame(together.vectors[at], alone);
        }
      }),
      runs(5),
    );
  });

  test("fewer dimensions are the first ones, made one long again; more than there are cannot be had", async () => {
    const [whole = []] = (await embed(engine, ["blue sky"])).vectors;
    const [cut] = (await embed(engine, ["blue sky"], { dimensions: 8 })).vectors;
    expect(cut).toHaveLength(8);
    expectSame(cut, unit(whole.slice(0, 8)));
    await expect(embed(engine, ["blue sky"], { dimensions: 33 })).rejects.toMatchObject({
      failure: {
        status: 400,
        param: "dimensions",
        message: expect.stringContaining("32 dimensions, and 33") as string,
      },
    });
  });

  test("an input that is too long, or has unknown tokens, is named", async () => {
    const long = Array.from({ length: 70 }, () => "cat").join(" ");
    await expect(embed(engine, ["a", "b", "c", long])).rejects.toMatchObject({
      failure: {
        status: 400,
        param: "input[3]",
        code: "context_length_exceeded",
        message:
          "This model's maximum input length is 64 tokens. However, input[3] has 72 tokens. Please reduce its length.",
      },
    });
    await expect(embed(engine, ["x".repeat(100_000)])).rejects.toMatchObject({
      failure: { param: "input", message: expect.stringContaining("has more than") as string },
    });
    await expect(embed(engine, ["a", [5, 999]])).rejects.toMatchObject({ failure: { status: 400, param: "input[1]" } });
  });

  test("it is listed for embeddings, and generates nothing", async () => {
    expect(engine.models()).toMatchObject([{ endpoints: ["embeddings"], contextLength: 64 }]);
    const end = (await drive(engine).complete("Hi")).end;
    expect(end).toMatchObject({
      kind: "rejected",
      failure: { status: 404, param: "model", message: expect.stringContaining("/v1/embeddings") as string },
    });
    expect(engine.health().slots).toBeUndefined();
  });
});

describe("a model that generates", () => {
  test("makes no embeddings unless it is told how", async () => {
    const engine = await openLlama({});
    expect(engine.models()[0]?.endpoints).toEqual(["chat", "completions"]);
    await expect(embed(engine, ["Hi"])).rejects.toMatchObject({
      failure: { status: 404, param: "model", message: expect.stringContaining("mean, cls or last") as string },
    });
  });

  test("told how, it does both", async () => {
    const engine = await openLlama({}, { pooling: "mean" });
    expect(engine.models()[0]?.endpoints).toEqual(["chat", "completions", "embeddings"]);
    const before = await drive(engine).complete("Hello", { limits: { maxTokens: 8 } });
    const { vectors } = await embed(engine, ["Hello there", "Hello there", "Bye"]);
    expect(vectors.map((vector) => vector.length)).toEqual([64, 64, 64]);
    expectSame(vectors[0], vectors[1]);
    expect(dot(vectors[0] ?? [], vectors[2] ?? [])).toBeLessThan(0.9999);
    const after = await drive(engine).complete("Hello", { limits: { maxTokens: 8 } });
    expect(after.choices[0]?.text).toBe(before.choices[0]?.text);
    // Pooled is what one pass has read, so an input is no longer than a pass.
    await expect(embed(engine, ["a", "x".repeat(2000)])).rejects.toMatchObject({ failure: { param: "input[1]" } });
  });

  // One that was made for a pass of its own in every step would have had none for answers.
  test("answers and embeddings have passes by turns", async () => {
    const engine = await openLlama({}, { pooling: "last", batchSize: 32, slots: 2, speculation: "off" });
    const { batches, counters }: Pick<TestEngine, "batches" | "counters"> = drive(engine);
    const leave = new AbortController();
    /** What was told with each step that brought something. */
    const told: { readonly steps: number; readonly passes: number }[] = [];
    const generating = (async () => {
      const events = batches({ prompt: { kind: "text", prompts: ["Go"] }, limits: { ignoreEos: true } }, leave.signal);
      for await (const _ of events) {
        const { decodeSteps = 0, embeddingPasses = 0 } = counters();
        told.push({ steps: decodeSteps, passes: embeddingPasses });
      }
    })();
    await until(() => told.length > 0);
    const texts = Array.from({ length: 400 }, (_, at) => `text number ${at} of them`);
    const { vectors } = await embed(engine, texts);
    expect(vectors).toHaveLength(400);
    const meanwhile = told.filter(({ passes }) => passes > 0);
    const most = meanwhile.at(-1)?.passes;
    const [first, last] = [meanwhile[0], meanwhile.find(({ passes }) => passes === most)];
    if (!first || !last) throw new Error("No answer went on meanwhile.");
    const passes = last.passes - first.passes;
    const steps = last.steps - first.steps;
    expect(passes).toBeGreaterThan(50);
    // Several steps may be told at once, and an answer waits for a slow reader; but neither has many passes to one of the other's.
    expect(steps).toBeGreaterThan(passes / 2);
    expect(steps).toBeLessThan(passes * 2);
    leave.abort();
    await generating;
  });
});

describe("a decoder that was trained for embeddings", () => {
  test("its file says how it pools, so it does nothing else", async () => {
    const engine = await openLlama({ pooling: "last" });
    expect(engine.models()[0]?.endpoints).toEqual(["embeddings"]);
    const { vectors } = await embed(engine, ["one text", "another one", "one text"]);
    const [alone] = (await embed(engine, ["another one"])).vectors;
    expectSame(vectors[1], alone);
    expectSame(vectors[0], vectors[2]);
    expect((await drive(engine).chat("Hi")).end).toMatchObject({ kind: "rejected", failure: { status: 404 } });
  });

  test("pooling: none makes it generate", async () => {
    const engine = await openLlama({ pooling: "last" }, { pooling: "none" });
    expect(engine.models()[0]?.endpoints).toEqual(["chat", "completions"]);
    expect((await drive(engine).complete("Hi", { limits: { maxTokens: 2 } })).end.kind).toBe("done");
  });

  test("a text that is longer than a pass has the vector that it has in one", async () => {
    const text = "a long text, longer than one pass of the model has room for";
    const small = await openLlama({ pooling: "last" }, { batchSize: 16 });
    const large = await openLlama({ pooling: "last" });
    const pieces = await embed(small, [text, "short", text]);
    expect(pieces.promptTokens).toBeGreaterThan(100);
    const [whole] = (await embed(large, [text])).vectors;
    expectSame(pieces.vectors[0], whole);
    expectSame(pieces.vectors[2], whole);
  });
});

test("who leaves is worked for no more, and who is one too many is refused", async () => {
  const engine = await openLlama({ pooling: "mean" }, { queueLimit: 0 });
  const texts = Array.from({ length: 2000 }, () => Array.from({ length: 100 }, (_, at) => at));
  const leave = new AbortController();
  const left = embed(engine, texts, {}, leave.signal);
  left.catch(() => {});
  await until(() => engine.health().queued === 1 && (engine.health().counters?.["embeddingPasses"] ?? 0) > 0);
  await expect(embed(engine, ["one more"])).rejects.toMatchObject({ failure: { status: 429 } });
  leave.abort();
  await expect(left).rejects.toThrow();
  await until(() => engine.health().queued === 0);
  const { embeddedTokens = 0 } = engine.health().counters ?? {};
  expect(embeddedTokens).toBeLessThan(100_000);
  expect((await embed(engine, ["one more"])).vectors).toHaveLength(1);
});

test("OpenAI's client has its vectors from a server, whatever their encoding", async () => {
  const encoder = writeRandomEncoder(join(folder, "served.gguf"), { pooling: "mean" });
  const server = await startTruewire([join(folder, "served.gguf"), "--port", "0", "--gpu", "off"]);
  try {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
    const asked = { model: "served", input: ["the cat", "the dog"] };
    const floats = await client.embeddings.create({ ...asked, encoding_format: "float" });
    // Without an encoding the client asks for base64, and decodes it.
    const decoded = await client.embeddings.create(asked);
    expect(decoded.data.map(({ embedding }) => embedding)).toEqual(floats.data.map(({ embedding }) => embedding));
    const tokens = encoder.tokens("the cat").length + encoder.tokens("the dog").length;
    expect(floats).toMatchObject({ model: "served", usage: { prompt_tokens: tokens, total_tokens: tokens } });
    expectSame(floats.data[1]?.embedding, unit(mean(encode(encoder, encoder.tokens("the dog")))));
    await expect(client.embeddings.create({ ...asked, dimensions: 99 })).rejects.toMatchObject({
      status: 400,
      param: "dimensions",
    });
    await expect(client.embeddings.create({ ...asked, input: "" })).rejects.toMatchObject({
      status: 400,
      param: "input",
    });
    await expect(
      client.chat.completions.create({ model: "served", messages: [{ role: "user", content: "Hi" }] }),
    ).rejects.toMatchObject({ status: 404, message: expect.stringContaining("makes embeddings") as string });
  } finally {
    await server.stop();
  }
});
