import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt } from "./local-engine.ts";
import { listen } from "../support/listen.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a path that does not exist", async () => {
  const model = join(folder, "missing.gguf");
  await expect(openBuilt({ model })).rejects.toMatchObject({
    name: "ModelOpenError",
    reason: "no-such-file",
    message: `The model file ${model} does not exist.`,
  });
});

test.each([
  ["text", "I am a text."],
  ["empty", ""],
])("a file that is no GGUF (%s)", async (name, content) => {
  const model = join(folder, `${name}.gguf`);
  writeFileSync(model, content);
  await expect(openBuilt({ model })).rejects.toMatchObject({ reason: "not-a-gguf" });
});

test("a GGUF that is cut off", async () => {
  const whole = join(folder, "whole.gguf");
  writeProgrammedModel(whole);
  const model = join(folder, "cut.gguf");
  writeFileSync(model, readFileSync(whole).subarray(0, 20_000));
  await expect(openBuilt({ model })).rejects.toMatchObject({
    reason: "load-failed",
    message: expect.stringContaining(model) as string,
  });
});

// The message had the version of our declarations, "0.5.0"; the libraries call themselves "0.5.0-dev".
test("an architecture that llama.cpp does not know, with the version that the libraries report", async () => {
  const model = join(folder, "unknown.gguf");
  writeProgrammedModel(model, { architecture: "perceptron" });
  await expect(openBuilt({ model })).rejects.toMatchObject({
    reason: "unknown-architecture",
    message: expect.stringMatching(
      /"perceptron", which the installed llama\.cpp \(\d+\.\d+\.\d+-\w+\) does not/,
    ) as string,
  });
});

test("more context than there is memory for, told with the numbers", async () => {
  const model = join(folder, "large.gguf");
  writeProgrammedModel(model);
  await expect(openBuilt({ model, contextSize: 64_000_000, slots: 64 })).rejects.toMatchObject({
    reason: "not-enough-memory",
    message: expect.stringMatching(/needs about [\d.]+ GiB .* 64 × 64000000 tokens .* [\d.]+ GiB are free/) as string,
  });
});

test("loading tells how far it is", async () => {
  const model = join(folder, "progress.gguf");
  writeProgrammedModel(model);
  const seen: number[] = [];
  const engine = await openBuilt({ model, name: "nick", onProgress: ({ fraction }) => seen.push(fraction) });
  expect(seen.at(-1)).toBe(1);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  expect(engine.models()).toMatchObject([
    { id: "nick", contextLength: 1024, ownedBy: "local", endpoints: ["chat", "completions"] },
  ]);
  await engine.close(0);
});

test("a model without a chat template: chat is a 422 that says what to set, completions work", async () => {
  const model = join(folder, "bare.gguf");
  writeProgrammedModel(model, { chatTemplate: null });
  const engine = await openBuilt({ model });
  expect(engine.models()).toMatchObject([{ id: "bare", endpoints: ["completions"] }]);
  const local = drive(engine);
  expect((await local.chat("Hi")).end).toMatchObject({
    kind: "rejected",
    failure: { status: 422, message: expect.stringContaining("--chat-template") as string },
  });
  expect((await local.complete("<|script:plain|>")).choices[0]?.text).toMatch(/^The quick/);
  await engine.close(0);
});

test("another chat template in place of the model's", async () => {
  const model = join(folder, "other.gguf");
  writeProgrammedModel(model, { chatTemplate: null });
  const engine = await openBuilt({
    model,
    chatTemplate: "{% for message in messages %}{{ message.content }}{% endfor %}<|script:json|>",
  });
  expect((await drive(engine).chat("Hi")).choices[0]?.text).toContain("Paris");
  await engine.close(0);
});

test("random weights say something, whatever it is, within the budget", async () => {
  const model = join(folder, "random.gguf");
  writeRandomModel(model);
  const engine = await openBuilt({ model, slots: 4 });
  const local = drive(engine);
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      local.complete(`Seed ${i}`, { sampling: { seed: i }, limits: { maxTokens: 60 } }),
    ),
  );
  for (const { end, usage } of answers) {
    expect(end).toEqual({ kind: "done" });
    expect(usage?.completionTokens).toBeLessThanOrEqual(60);
  }
  // Alone, and from the beginning, the same seed says the same.
  const seeded = { sampling: { seed: 99 }, limits: { maxTokens: 60, cachePrompt: false } };
  const once = await local.complete("Once", seeded);
  expect((await local.complete("Once", seeded)).choices[0]?.text).toBe(once.choices[0]?.text);
  await engine.close(0);
});

test("an hf: name is resolved and downloaded from a hub (a local double of it), once", async () => {
  const file = join(folder, "hub.gguf");
  writeProgrammedModel(file);
  const bytes = readFileSync(file);
  const asked: string[] = [];
  const hub = await listen((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://hub");
    asked.push(`${request.method} ${pathname}`);
    if (pathname.includes("/somebody/tiny/manifests/")) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ggufFile: { rfilename: "tiny-Q4_K_M.gguf" } }));
    } else if (pathname.endsWith("/tiny-Q4_K_M.gguf")) {
      const etag = createHash("sha256").update(bytes).digest("hex");
      response.setHeader("etag", `"${etag}"`);
      const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? "") ?? [];
      const start = Number(from ?? 0);
      const end = to ? Number(to) + 1 : bytes.length;
      const part = bytes.subarray(start, end);
      response.setHeader("content-length", part.length);
      response.setHeader("accept-ranges", "bytes");
      if (from !== undefined) {
        response.statusCode = 206;
        response.setHeader("content-range", `bytes ${start}-${end - 1}/${bytes.length}`);
      }
      response.end(request.method === "HEAD" ? undefined : part);
    } else {
      response.statusCode = 404;
      response.end("no");
    }
  });
  const modelsFolder = join(folder, "models");
  mkdirSync(modelsFolder);
  try {
    const phases = new Set<string>();
    const options = {
      model: "hf:somebody/tiny:Q4_K_M",
      hub: `${hub.url}/`,
      modelsFolder,
      onProgress: ({ phase }: { phase: string }) => void phases.add(phase),
    };
    const engine = await openBuilt(options);
    expect((await drive(engine).chat("#plain")).choices[0]?.text).toMatch(/^The quick/);
    expect(phases).toEqual(new Set(["download", "load"]));
    await engine.close(0);
    expect(asked.some((line) => line.includes("/somebody/tiny/"))).toBe(true);
    const downloads = (): number => asked.filter((line) => line.startsWith("GET") && line.endsWith(".gguf")).length;
    const before = downloads();
    await (await openBuilt(options)).close(0);
    expect(downloads()).toBe(before);
    await expect(openBuilt({ ...options, model: "hf:not-a-name" })).rejects.toMatchObject({
      reason: "download-failed",
    });
  } finally {
    await hub.close();
  }
});
