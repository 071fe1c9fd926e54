import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import { TextPieces } from "../../src/engines/llama/process/text-pieces.ts";
import { Vocabulary } from "../../src/engines/llama/process/vocabulary.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { openNativeModel } from "./native-model.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const models: NativeModel[] = [];
beforeAll(() => {
  const programmed = join(folder, "programmed.gguf");
  writeProgrammedModel(programmed);
  for (const path of [programmed, "models/demo/demo.gguf"]) models.push(openNativeModel(path));
});
afterAll(() => {
  for (const model of models) model.free();
  rmSync(folder, { recursive: true, force: true });
});

// A conversation of a megabyte was made tokens of in one call, which held up every other answer for seconds.
test.each([
  ["programmed", 0],
  ["demo", 1],
])("the pieces of a long text have its tokens (%s model)", (_, index) => {
  const model = models[index];
  if (!model) throw new Error("it was not loaded");
  const vocabulary = new Vocabulary(model);
  const pieces = new TextPieces(vocabulary);
  const controls = vocabulary.controlTexts();
  const part = fc.oneof(
    fc.constantFrom(...controls),
    fc.constantFrom(" ", "\n", "  ", "\n\n", "user\n", "Hello", " world", "é", "日本", "<|", "|>"),
    fc.string({ unit: "grapheme", maxLength: 8 }),
  );
  const text = fc.array(part, { minLength: 1200, maxLength: 1600 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, (whole) => {
      const cut = pieces.of(whole);
      if (whole.length > 5000) expect(cut.length).toBeGreaterThan(10);
      expect(cut.flatMap((piece) => model.tokenize(piece, true))).toEqual(model.tokenize(whole, true));
    }),
    { numRuns: 30 },
  );
});
