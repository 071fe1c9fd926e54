import { NativeContext } from "./c-api/native-context.ts";
import type { NativeModel } from "./c-api/native-model.ts";

/** The number of tokens before the measured ones. Attention over them takes most of a small model's time. */
const attentionTokens = 512;
const attentionSteps = 8;
const attentionRounds = 2;

/** The shortest measured times of a batch of prompt tokens, and of a token after it, in milliseconds. */
export interface AttentionMs {
  readonly prompt: number;
  readonly token: number;
}

/**
 * Whether to use flash attention: as llama.cpp decides ("auto"), unless decodes in a long context are clearly faster without it. On CPUs
 * the flash kernel takes several times as long as the plain one for some head sizes: a token of the demo model after 1,500 others took 34
 * ms with it and 6 ms without. The measurement takes some hundred milliseconds for a model of a few megabytes.
 */
export function chooseAttention(model: NativeModel, threads: number): "auto" | false {
  const flash: AttentionMs[] = [];
  const plain: AttentionMs[] = [];
  for (let round = 0; round < attentionRounds; round++) {
    // Alternately, because the load of the machine changes.
    flash.push(measureAttention(model, threads, true));
    plain.push(measureAttention(model, threads, false));
  }
  return isPlainFaster(shortest(flash), shortest(plain)) ? false : "auto";
}

/** Whether tokens take clearly less time without flash attention, and prompts not clearly more: over long prompts they take twice as long. */
export function isPlainFaster(flash: AttentionMs, plain: AttentionMs): boolean {
  return plain.token < flash.token * 0.8 && plain.prompt < flash.prompt * 1.25;
}

/** Other load on the machine only makes decodes slower. */
function shortest(times: readonly AttentionMs[]): AttentionMs {
  return {
    prompt: Math.min(...times.map(({ prompt }) => prompt)),
    token: Math.min(...times.map(({ token }) => token)),
  };
}

function measureAttention(model: NativeModel, threads: number, flashAttention: boolean): AttentionMs {
  const context = new NativeContext(model, {
    capacity: attentionTokens + attentionSteps,
    sequences: 1,
    batchSize: attentionTokens,
    maxOutputs: 1,
    threads,
    unifiedKv: true,
    flashAttention,
  });
  const timed = (): number => {
    const started = performance.now();
    context.decode();
    return performance.now() - started;
  };
  try {
    const token = model.tokens.bos ?? model.tokens.eos ?? 0;
    for (let at = 0; at < attentionTokens - 1; at++) context.batch.add(token, at, 0, at === attentionTokens - 2);
    const prompt = timed();
    const steps = Array.from({ length: attentionSteps }, (_, step) => {
      context.batch.clear();
      context.batch.add(token, attentionTokens - 1 + step, 0, true);
      return timed();
    });
    return { prompt, token: Math.min(...steps) };
  } finally {
    context.free();
  }
}
