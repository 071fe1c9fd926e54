import { expect, test } from "vitest";
import { chooseAttention, isPlainFaster } from "../../src/engines/llama/process/open-context.ts";
import { openNativeModel } from "./native-model.ts";

// Flash attention made the demo model slower the more it wrote: 1,900 tokens took 18.6 seconds, 250 took 0.65.
test("attention is measured in a short time, and the answer is one that a context takes", () => {
  const model = openNativeModel("models/demo/demo.gguf");
  try {
    expect(["off", "auto"]).toContain(chooseAttention(model, 1));
  } finally {
    model.free();
  }
});

// On a busy machine, a mean of eight tokens turned flash attention off by chance, and prompts of 16,000 tokens took twice as long.
test("flash attention is off only where tokens are clearly faster without it, and prompts are not clearly slower", () => {
  expect(isPlainFaster({ prompt: 170, token: 2.3 }, { prompt: 153, token: 0.7 })).toBe(true);
  expect(isPlainFaster({ prompt: 31, token: 0.61 }, { prompt: 31, token: 0.58 })).toBe(false);
  expect(isPlainFaster({ prompt: 31, token: 0.8 }, { prompt: 45, token: 0.5 })).toBe(false);
});
