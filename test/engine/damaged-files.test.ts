import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBuilt } from "./local-engine.ts";

let folder: string;
let whole: Buffer;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
  whole = readFileSync("models/demo/demo.gguf");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The demo model, cut off or with some bits changed: most of them in its header, where they do most harm. */
const damage: fc.Arbitrary<(file: Buffer) => Buffer> = fc.oneof(
  fc.double({ min: 0, max: 1, noNaN: true }).map((part) => (file: Buffer) => file.subarray(0, part * file.length)),
  fc.array(fc.tuple(fc.nat(60_000), fc.nat(7)), { minLength: 1, maxLength: 8 }).map((bits) => (file: Buffer) => {
    const changed = Buffer.from(file);
    for (const [at, bit] of bits) changed[at] = (changed[at] ?? 0) ^ (1 << bit);
    return changed;
  }),
);

// llama.cpp ends its process for some of them, which is one sentence, too.
test("a damaged file is opened or refused with one sentence that names it", { timeout: 240_000 }, async () => {
  const model = join(folder, "damaged.gguf");
  await fc.assert(
    fc.asyncProperty(damage, async (spoil) => {
      writeFileSync(model, spoil(whole));
      const opened = openBuilt({ model, contextSize: 512, slots: 1 });
      const engine = await opened.catch((error: unknown) => error as Error);
      if (!(engine instanceof Error)) return engine.close(0);
      expect(engine.name).toBe("ModelOpenError");
      expect(engine.message).toContain(model);
      expect(engine.message).toMatch(/^[^\n]+\.$/);
    }),
    { numRuns: 12 },
  );
});
