import { NativeContext } from "./c-api/native-context.ts";
import type { NativeModel } from "./c-api/native-model.ts";

/** Behind so many tokens, attention is most of what a small model does. */
const behind = 512;
const steps = 8;
const rounds = 2;

/**
 * Whether flash attention is used: as llama.cpp decides ("auto"), unless steps behind a text are clearly faster without it. On
 * processors the flash kernel takes several times as long as the plain one for some shapes of heads: a step of the demo model behind
 * 1,500 tokens took 34 ms with it and 6 ms without. Takes some hundred milliseconds for a model of a few megabytes.
 */
export function chooseAttention(model: NativeModel, threads: number): "auto" | false {
  let withFlash = Infinity;
  let without = Infinity;
  for (let round = 0; round < rounds; round++) {
    // By turns, since what else the machine does changes.
    withFlash = Math.min(withFlash, stepMs(model, threads, true));
    without = Math.min(without, stepMs(model, threads, false));
  }
  return without < withFlash * 0.8 ? false : "auto";
}

function stepMs(model: NativeModel, threads: number, flashAttention: boolean): number {
  const context = new NativeContext(model, {
    room: behind + steps,
    sequences: 1,
    batchSize: behind,
    outputs: 1,
    threads,
    oneMemory: true,
    flashAttention,
  });
  try {
    const token = model.tokens.bos ?? model.tokens.eos ?? 0;
    for (let at = 0; at < behind - 1; at++) context.batch.add(token, at, 0, at === behind - 2);
    context.pass();
    const started = performance.now();
    for (let step = 0; step < steps; step++) {
      context.batch.clear();
      context.batch.add(token, behind - 1 + step, 0, true);
      context.pass();
    }
    return (performance.now() - started) / steps;
  } finally {
    context.free();
  }
}
