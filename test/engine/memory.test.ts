import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memoryNeed, totalOf } from "../../src/engines/llama/file/memory-need.ts";
import { readModelFile } from "../../src/engines/llama/file/read-model-file.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt } from "./local-engine.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes of main memory that a process holds (Linux). */
function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

test.skipIf(!existsSync("/proc/self/status")).each([
  { size: "tiny", contextSize: 8192, slots: 4 },
  { size: "135M", contextSize: 1024, slots: 1 },
  { size: "135M", contextSize: 4096, slots: 2 },
] as const)("what $size with $slots × $contextSize tokens takes is known before it is loaded", async (model) => {
  const { size, contextSize, slots } = model;
  const path = join(folder, `${size}.gguf`);
  if (!existsSync(path)) writeRandomModel(path, { size });
  const estimate = totalOf(
    memoryNeed(await readModelFile(path), { contextSize, slots, batchSize: 512, cacheMemory: 0 }),
  );
  const engine = await openBuilt({ model: path, contextSize, slots, cacheMemory: 0 });
  const local = drive(engine);
  const prompts = Array.from({ length: slots }, (_, slot) => `${slot} `.repeat(100));
  await Promise.all(prompts.map((prompt) => local.complete(prompt, { limits: { maxTokens: 4 } })));
  const { processId } = engine as unknown as { readonly processId: number };
  const resident = residentBytes(processId);
  await engine.close(0);
  expect(estimate / resident).toBeGreaterThan(0.9);
  expect(estimate / resident).toBeLessThan(1.3);
});
