import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memoryNeed, totalOf } from "../../src/engines/llama/file/memory-need.ts";
import { readModelFile } from "../../src/engines/llama/file/read-model-file.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt } from "./local-engine.ts";
import { isNightly } from "../support/runs.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes of main memory that a process holds (Linux). */
function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

if (!existsSync("/proc/self/status")) console.log("skipped: the memory of a process is read from /proc");
// Of weights that llama.cpp keeps in another layout, the mapped file stayed in memory, too: twice what was expected. Which weights these are
// depends on the processor: q8_0 on those with AMX, q4_0 on those with AVX2 or NEON, too. The tests only had q8_0, and no AMX.
const models = [
  { size: "tiny", weights: "q8_0", contextSize: 8192, slots: 4 },
  { size: "135M", weights: "q8_0", contextSize: 1024, slots: 1 },
  { size: "135M", weights: "q4_0", contextSize: 4096, slots: 2 },
  { size: "135M", weights: "q8_0", contextSize: 4096, slots: 2 },
  { size: "135M", weights: "q4_0", contextSize: 1024, slots: 1 },
] as const;
test.skipIf(!existsSync("/proc/self/status")).each(isNightly ? models : models.slice(0, 3))(
  "what $size of $weights with $slots × $contextSize tokens takes is known before",
  async (model) => {
    const { size, weights, contextSize, slots } = model;
    const path = join(folder, `${size}-${weights}.gguf`);
    if (!existsSync(path)) writeRandomModel(path, { size, weights });
    const estimate = totalOf(
      memoryNeed(await readModelFile(path), { contextSize, slots, batchSize: 512, cacheMemory: 0 }),
    );
    const engine = await openBuilt({ model: path, contextSize, slots, cacheMemory: 0 });
    const local = drive(engine);
    const prompts = Array.from({ length: slots }, (_, slot) => `${slot} `.repeat(100));
    await Promise.all(prompts.map((prompt) => local.complete(prompt, { limits: { maxTokens: 4 } })));
    const { processId } = engine as unknown as { readonly processId: number };
    const resident = residentBytes(processId);
    const mapped = readFileSync(`/proc/${processId}/maps`, "utf8");
    await engine.close(0);
    // Each of these models fits into memory twice. Their files were mapped, which cost a tenth of the time of a token.
    expect(mapped).not.toContain(path);
    expect(estimate / resident).toBeGreaterThan(0.9);
    // Where no weights are in another layout, the embeddings are there only once.
    expect(estimate / resident).toBeLessThan(1.35);
  },
);
