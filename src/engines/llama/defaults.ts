import type { Sampling } from "../../wire/core/request.ts";

/** Defaults of the configuration. */
export const defaultSlots = 4;
/** Answers of one owner that may wait for a slot. */
export const defaultQueueLimit = 64;
export const defaultBatchSize = 512;
export const defaultMaxTokenGap = 250;
export const defaultLoadTimeout = 600_000;
/** Tokens that a draft model drafts at most. */
export const defaultDraftTokens = 15;
/** The same for a recurrent model, which keeps a state for each of them. */
export const defaultRecurrentDraftTokens = 8;
/** Maximum default size of the prompt cache in bytes. */
export const maxDefaultCacheMemory: number = 512 * 2 ** 20;
/** Maximum default context size in tokens; less if the model was trained for less. */
export const maxDefaultContextSize = 8192;
/** Sampling of requests that set nothing: OpenAI's defaults, XTC and DRY off. The other values of DRY are llama.cpp's (common.h, `common_params_sampling`). */
export const defaultSampling = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repeatPenalty: 1,
  /** As in llama.cpp and vLLM. */
  repeatLastN: 64,
  xtc: { probability: 0, threshold: 0.1 },
  dry: { multiplier: 0, base: 1.75, allowedLength: 2, lastN: -1 },
} as const satisfies Sampling;
