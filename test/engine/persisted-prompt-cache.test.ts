import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LlamaEngineOptions } from "../../src/engines/llama/options.ts";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import { writeRandomKind } from "../fixtures/random-kinds.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt } from "./local-engine.ts";

let folder: string;
let cache: string;
let lines: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
  cache = join(folder, "cache");
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const [one, other, third] = ["ba fa ", "do lo ", "ti mi "].map((text) => text.repeat(60)) as [string, string, string];

function cached({ usage }: Generation): number {
  return Number((usage?.promptDetails as { cached_tokens?: number } | undefined)?.cached_tokens);
}

function said({ choices, end }: Generation): unknown {
  return [end, choices.map(({ text }) => text)];
}

/** Asks these prompts of a model that is opened for them, and closes it cleanly. */
async function session(prompts: readonly string[], over: Partial<LlamaEngineOptions> = {}): Promise<Generation[]> {
  const log = (line: string): void => void lines.push(line);
  const engine = await openBuilt({
    model: join(folder, "model.gguf"),
    slots: 2,
    keepCache: cache,
    flashAttention: "off",
    cacheMemory: 2 ** 26,
    log,
    ...over,
  });
  const local = drive(engine);
  const answers: Generation[] = [];
  for (const prompt of prompts) answers.push(await local.complete(prompt, { limits: { maxTokens: 4 } }));
  await engine.close(0);
  return answers;
}

describe.each(["llama", "mamba", "gemma3"] as const)("%s", (kind) => {
  test("conversations are cached after a restart: those of the slots, and those of the prompt cache", async () => {
    const model = join(folder, "model.gguf");
    if (kind === "llama") writeRandomModel(model);
    else writeRandomKind(model, kind);
    const before = await session([one, other, third]);
    expect(readdirSync(cache)).toHaveLength(3);
    for (const name of readdirSync(cache)) expect(statSync(join(cache, name)).mode & 0o077).toBe(0);
    const after = await session([one, other, third]);
    expect(after.map(said)).toEqual(before.map(said));
    for (const answer of after) expect(cached(answer)).toBeGreaterThan(100);
    expect(before.map(cached)).toEqual([0, 0, 0]);
  });
});

// The states of a model with recurrent layers have room for drafts, whose number depends on the draft model.
describe.each(["lfm2", "llama"] as const)("%s with a draft model", (kind) => {
  test("conversations are cached after a restart, also one with another draft model or none", async () => {
    const [model, draftPath] = [join(folder, "model.gguf"), join(folder, "draft.gguf")];
    writeRandomKind(model, kind, { quantized: true });
    writeRandomModel(draftPath);
    const drafting = { speculation: "always", draft: { path: draftPath, maxTokens: 4 } } as const;
    const ways = [drafting, drafting, {}, drafting, { ...drafting, draft: { path: draftPath, maxTokens: 2 } }];
    const prompts = [one, other, third];
    let first: readonly unknown[] | undefined;
    for (const [at, over] of ways.entries()) {
      const answers = await session(prompts, over);
      first ??= answers.map(said);
      expect(answers.map(said), `session ${at}`).toEqual(first);
      for (const answer of answers) expect(cached(answer), `session ${at}`).toBeGreaterThan(at === 0 ? -1 : 100);
    }
    expect(lines.filter((line) => / not used|do not fit|not written/.test(line))).toEqual([]);
  });
});

// A file that llama.cpp cannot restore could crash it.
test("files that do not fit are logged with one line each, and fail no request", async () => {
  writeRandomModel(join(folder, "model.gguf"));
  await session([one, other]);
  const file = join(cache, "model.0.state");
  writeFileSync(file, readFileSync(file).subarray(0, -100));
  const [answer] = await session([other]);
  expect(answer?.end).toEqual({ kind: "done" });
  expect(lines.filter((line) => line.includes("model.0.state is not used: it is damaged."))).toHaveLength(1);
  lines = [];
  const [again] = await session([other], { cacheTypeK: "f32" });
  expect(cached(again as Generation)).toBe(0);
  expect(lines.filter((line) => line.includes("with other settings"))).toHaveLength(2);
});

test("a model that is replaced by another one does not use the cache of the first", async () => {
  writeRandomModel(join(folder, "model.gguf"));
  await session([one]);
  writeRandomModel(join(folder, "model.gguf"), { seed: 2, contextLength: 4096 });
  const [answer] = await session([one]);
  expect(cached(answer as Generation)).toBe(0);
});

test("a folder that cannot be written is logged, and the model is closed", async () => {
  writeRandomModel(join(folder, "model.gguf"));
  writeFileSync(cache, "I am a file.");
  await session([one]);
  expect(lines.filter((line) => line.startsWith("States were not written to"))).toHaveLength(1);
});
