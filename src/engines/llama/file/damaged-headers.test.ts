import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { writeRandomModel } from "../../../../test/fixtures/random-model.ts";
import { damage, ggufParts } from "../../../../test/support/damaged-gguf.ts";
import { ModelOpenError } from "../model-open-error.ts";
import { memoryNeed, totalOf } from "./memory-need.ts";
import { readModelFile } from "./read-model-file.ts";
import { runs } from "../../../../test/support/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("what a damaged header says is refused with one sentence, or is a number of bytes", async () => {
  const path = join(folder, "tiny.gguf");
  writeRandomModel(path, { chatTemplate: "{{ messages }}" });
  const whole = readFileSync(path);
  // The data does not count.
  const header = whole.subarray(0, (ggufParts(whole).at(-2) ?? 0) + 64);
  await fc.assert(
    fc.asyncProperty(damage(header), async ({ spoil }) => {
      writeFileSync(path, spoil(header));
      const read = await readModelFile(path).catch((error: unknown) => error as Error);
      if (read instanceof Error) {
        expect(read).toBeInstanceOf(ModelOpenError);
        expect(read.message).toContain(path);
        expect(read.message).toMatch(/^[^\n]+\.$/);
        return;
      }
      const need = totalOf(memoryNeed(read, { contextSize: 4096, slots: 4, batchSize: 512 }));
      expect(need).toBeGreaterThan(0);
      expect(need).toBeLessThan(Infinity);
      // A number of layers, flipped to billions, took all the memory of the server.
      expect(read.shape.headsKv.length).toBeLessThan(5000);
    }),
    runs(500),
  );
});
