import * as fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import { AsyncLock, EventLoopShare } from "../../src/engines/llama/process/event-loop-share.ts";
import { TextSplitter, tokenizePrompt } from "../../src/engines/llama/process/tokens/tokenize-prompt.ts";
import { Vocabulary } from "../../src/engines/llama/process/tokens/vocabulary.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { openNativeModel } from "./native-model.ts";
import { runs } from "../support/runs.ts";

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
  const pieces = new TextSplitter(vocabulary);
  const controls = vocabulary.controlTexts();
  const part = fc.oneof(
    fc.constantFrom(...controls),
    fc.constantFrom(" ", "\n", "  ", "\n\n", "user\n", "Hello", " world", "é", "日本", "<|", "|>"),
    fc.string({ unit: "grapheme", maxLength: 8 }),
  );
  const text = fc.array(part, { minLength: 1200, maxLength: 1600 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, (whole) => {
      const cut = pieces.split(whole);
      if (whole.length > 5000) expect(cut.length).toBeGreaterThan(10);
      expect(cut.flatMap((piece) => model.tokenize(piece, true))).toEqual(model.tokenize(whole, true));
    }),
    runs(10),
  );
});

// A text of a megabyte without control tokens was read in one call: every other answer stood still meanwhile.
test.each([
  ["programmed", 0],
  ["demo", 1],
])("a long text is read in another thread, and has the same tokens (%s model)", async (_, index) => {
  const model = models[index];
  if (!model) throw new Error("it was not loaded");
  const vocabulary = new Vocabulary(model);
  let longest = 0;
  let asyncCalls = 0;
  const watched = new Proxy(model, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => {
        if (name === "tokenizeAsync") asyncCalls++;
        else if (typeof given[0] === "string") longest = Math.max(longest, given[0].length);
        return Reflect.apply(member, target, given);
      };
    },
  });
  const tokenizer = { model: watched, vocabulary, splitter: new TextSplitter(vocabulary), lock: new AsyncLock() };
  const story = "Once upon a time, there was a é日本 of 1,000 words.\n".repeat(800);
  const spans = [
    { text: story, special: false },
    { text: story.slice(1), special: false },
    { text: "<|im_end|>\nHello", special: true },
    { text: story, special: true },
  ];
  const share = new EventLoopShare();
  const read = (): Promise<number[]> =>
    share.run(tokenizePrompt(tokenizer, { type: "spans", spans, bos: false, addSpecial: false }));
  const [tokens, again] = await Promise.all([read(), read()]);
  const expected: number[] = [];
  for (const { text, special } of spans) {
    const continues = expected.length > 0 && !vocabulary.isControl(expected.at(-1) ?? 0);
    expected.push(...(continues ? model.tokenizeContinuation(text, special) : model.tokenize(text, special)));
  }
  expect(tokens).toEqual(expected);
  expect(again).toEqual(expected);
  expect(asyncCalls).toBe(6);
  expect(longest).toBeLessThan(20_000);
});
