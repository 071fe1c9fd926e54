import { availableParallelism } from "node:os";
import { isQuantized } from "../cache-type.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenModelMessage } from "../protocol.ts";
import { NativeContext } from "./c-api/native-context.ts";
import type { NativeModel } from "./c-api/native-model.ts";
import type { ContextCapacity } from "./memory.ts";

/** In bytes. The attention of larger models takes seconds to measure and little of their time, and they benefit from several threads. */
const smallModelBytes = 64 * 2 ** 20;
/** In a shorter context, attention never takes long. */
const minMeasuredContext = 2048;
/** Tokens of a prompt whose logprobs are read in one batch, at least. */
const minOutputs = 32;

/** Creates the context in which a model generates answers. */
export function openContext(
  model: NativeModel,
  { contextSize, capacity, unifiedKv }: ContextCapacity & { readonly unifiedKv: boolean },
  options: OpenModelMessage,
  hasGpu: boolean,
  rollback = 0,
): NativeContext {
  const { slots, batchSize, flashAttention = "auto", cacheTypeK, cacheTypeV } = options;
  const threads = options.threads ?? defaultThreads(model.size);
  const isSmall = !hasGpu && model.size < smallModelBytes && contextSize >= minMeasuredContext;
  const measures = isSmall && flashAttention === "auto" && !isQuantized(cacheTypeV);
  return new NativeContext(model, {
    capacity,
    sequences: slots,
    batchSize,
    maxOutputs: Math.max(slots, minOutputs),
    threads,
    unifiedKv,
    flashAttention: measures ? chooseAttention(model, threads) : flashAttention,
    cacheTypeK,
    cacheTypeV,
    rollback,
  });
}

/**
 * All cores but one, which the server and other processes need: threads wait for each other many times in a decode, spinning, so that one
 * that shares its core delays all of them (measured on two busy cores: 5 tokens/s with two threads, 660 with one). A small model completes
 * a decode before several threads are worth it.
 */
export function defaultThreads(modelBytes: number): number {
  return modelBytes < smallModelBytes ? 1 : Math.max(1, availableParallelism() - 1);
}

/** Throws ModelOpenError, because llama.cpp supports quantized values only with flash attention. */
export function checkAttention({ model, flashAttention, cacheTypeV }: OpenModelMessage): void {
  if (flashAttention !== "off" || !isQuantized(cacheTypeV)) return;
  throw new ModelOpenError(
    "load-failed",
    `${model} cannot be opened with cacheTypeV: ${cacheTypeV} and flashAttention: off: a quantized cache of values needs flash ` +
      "attention. Use flashAttention: auto, or cacheTypeV: f16.",
  );
}

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
export function chooseAttention(model: NativeModel, threads: number): "auto" | "off" {
  const flash: AttentionMs[] = [];
  const plain: AttentionMs[] = [];
  for (let round = 0; round < attentionRounds; round++) {
    // Alternately, because the load of the machine changes.
    flash.push(measureAttention(model, threads, "on"));
    plain.push(measureAttention(model, threads, "off"));
  }
  return isPlainFaster(shortest(flash), shortest(plain)) ? "off" : "auto";
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

function measureAttention(model: NativeModel, threads: number, flashAttention: "on" | "off"): AttentionMs {
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
