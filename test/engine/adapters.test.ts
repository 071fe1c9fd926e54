import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LlamaEngineOptions } from "../../src/engines/llama/options.ts";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import type { Sampling } from "../../src/wire/core/request.ts";
import { writeRandomAdapter } from "../fixtures/random-kinds.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt, type TestEngine } from "./local-engine.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const model = join(folder, "model.gguf");
const adapters = [{ path: join(folder, "one.gguf") }, { path: join(folder, "two.gguf"), scale: 0 }];
beforeAll(() => {
  writeRandomModel(model);
  for (const [at, { path }] of adapters.entries()) writeRandomAdapter(path, at + 1);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Local = Omit<TestEngine, "model" | "close">;

async function open(over: Partial<LlamaEngineOptions>): Promise<Local> {
  return drive(await openBuilt({ model, slots: 2, flashAttention: "off", ...over }));
}

const prompts = ["ba fa ", "do lo "].map((text) => text.repeat(40));

function complete(local: Local, prompt: string, asked?: Sampling["adapters"]): Promise<Generation> {
  const sampling: Sampling = { temperature: 0, ...(asked && { adapters: asked }) };
  return local.complete(prompt, { sampling, limits: { maxTokens: 12 } });
}

function text({ choices }: Generation): string {
  return choices[0]?.text ?? "";
}

function cached({ usage }: Generation): number {
  return Number((usage?.promptDetails as { cached_tokens?: number } | undefined)?.cached_tokens);
}

test("a model with an adapter answers otherwise, and a request that turns it off has the model alone", async () => {
  const [plain, changed] = [await open({}), await open({ adapters })];
  try {
    for (const prompt of prompts) {
      const alone = text(await complete(plain, prompt));
      const own = text(await complete(changed, prompt));
      expect(own).not.toBe(alone);
      expect(text(await complete(changed, prompt, []))).toBe(alone);
      expect(text(await complete(changed, prompt, [{ id: 0, scale: 1 }]))).toBe(own);
      const other = text(await complete(changed, prompt, [{ id: 1, scale: 1 }]));
      expect(other).not.toBe(own);
      expect(other).not.toBe(alone);
    }
  } finally {
    await Promise.all([plain.engine.close(0), changed.engine.close(0)]);
  }
});

// What one adapter has made of a text is wrong for another one.
test("requests with different adapters share no beginning, and those with the same ones do", async () => {
  const local = await open({ adapters });
  const prompt = prompts[0] ?? "";
  try {
    expect(cached(await complete(local, prompt))).toBe(0);
    expect(cached(await complete(local, prompt, []))).toBe(0);
    expect(cached(await complete(local, prompt, [{ id: 1, scale: 1 }]))).toBe(0);
    for (const asked of [undefined, [], [{ id: 1, scale: 1 }]])
      expect(cached(await complete(local, prompt, asked))).toBeGreaterThan(100);
  } finally {
    await local.engine.close(0);
  }
});

test("answers with different adapters at the same time are what they are alone", async () => {
  const local = await open({ adapters, slots: 4 });
  const kinds: Sampling["adapters"][] = [undefined, [], [{ id: 1, scale: 1 }], [{ id: 0, scale: 0.5 }]];
  try {
    const alone: string[] = [];
    for (const asked of kinds) alone.push(text(await complete(local, prompts[0] ?? "", asked)));
    expect(new Set(alone).size).toBeGreaterThan(2);
    const together = await Promise.all(kinds.map((asked) => complete(local, prompts[0] ?? "", asked)));
    expect(together.map(text)).toEqual(alone);
  } finally {
    await local.engine.close(0);
  }
});

test("an adapter that is not there is a 400, and the model says which ones it has", async () => {
  const local = await open({ adapters });
  try {
    const { end } = await complete(local, prompts[0] ?? "", [{ id: 7, scale: 1 }]);
    expect(end).toMatchObject({ kind: "rejected", failure: { status: 400, param: "lora[0].id" } });
    expect(local.engine.models()[0]?.adapters).toEqual([
      { id: 0, file: "one.gguf", scale: 1 },
      { id: 1, file: "two.gguf", scale: 0 },
    ]);
  } finally {
    await local.engine.close(0);
  }
});

test("an adapter that is missing, or of another kind of file, is told in a sentence", async () => {
  await expect(open({ adapters: [{ path: join(folder, "no.gguf") }] })).rejects.toThrow("no.gguf does not exist");
  const broken = join(folder, "broken.gguf");
  writeFileSync(broken, "I am a text.");
  await expect(open({ adapters: [{ path: broken }] })).rejects.toThrow("broken.gguf does not fit");
  await expect(open({ adapters: [{ path: model }] })).rejects.toThrow("does not fit");
});
