import { expect, test } from "vitest";
import { chooseAttention } from "../../src/engines/llama/process/open-model.ts";
import { openNativeModel } from "./native-model.ts";

// Flash attention made the demo model slower the more it wrote: 1,900 tokens took 18.6 seconds, 250 took 0.65.
test("attention is measured in a short time, and the answer is one that a context takes", () => {
  const model = openNativeModel("models/demo/demo.gguf");
  try {
    expect([false, "auto"]).toContain(chooseAttention(model, 1));
  } finally {
    model.free();
  }
}, 60_000);
