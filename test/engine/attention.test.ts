import { getLlama, LlamaLogLevel } from "node-llama-cpp";
import { expect, test } from "vitest";
import { chooseAttention } from "../../src/engines/llama/process/choose-attention.ts";

// Flash attention made the demo model slower the more it wrote: 1,900 tokens took 18.6 seconds, 250 took 0.65.
test("attention is measured in a short time, and the answer is one that a context takes", async () => {
  const llama = await getLlama({ gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error });
  const model = await llama.loadModel({ modelPath: "models/demo/demo.gguf" });
  try {
    const flashAttention = await chooseAttention(model, 1);
    expect([false, "auto"]).toContain(flashAttention);
    const context = await model.createContext({ contextSize: 256, flashAttention });
    await context.dispose();
  } finally {
    await model.dispose();
  }
}, 60_000);
