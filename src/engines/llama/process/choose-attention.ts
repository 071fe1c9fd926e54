import type { LlamaModel, Token } from "node-llama-cpp";

/** Behind so many tokens, attention is most of what a small model does. */
const behind = 512;
const steps = 8;
const rounds = 2;

/**
 * Whether flash attention is used: as the library decides ("auto"), unless steps behind a text are clearly faster without it. On
 * processors the flash kernel takes several times as long as the plain one for some shapes of heads: a step of the demo model behind
 * 1,500 tokens took 34 ms with it and 6 ms without. Takes some hundred milliseconds for a model of a few megabytes.
 */
export async function chooseAttention(model: LlamaModel, threads: number): Promise<"auto" | false> {
  let withFlash = Infinity;
  let without = Infinity;
  for (let round = 0; round < rounds; round++) {
    // By turns, since what else the machine does changes.
    withFlash = Math.min(withFlash, await stepMs(model, threads, true));
    without = Math.min(without, await stepMs(model, threads, false));
  }
  return without < withFlash * 0.8 ? false : "auto";
}

async function stepMs(model: LlamaModel, threads: number, flashAttention: boolean): Promise<number> {
  const context = await model.createContext({
    sequences: 1,
    contextSize: behind + steps,
    batchSize: behind,
    threads,
    flashAttention,
    failedCreationRemedy: false,
  });
  try {
    const sequence = context.getSequence();
    const token = model.tokens.bos ?? model.tokens.eos ?? (0 as Token);
    await sequence.evaluateWithoutGeneratingNewTokens(Array<Token>(behind - 1).fill(token));
    const started = performance.now();
    for (let step = 0; step < steps; step++) await sequence.evaluateWithoutGeneratingNewTokens([token]);
    return (performance.now() - started) / steps;
  } finally {
    await context.dispose();
  }
}
