/** Defaults of the configuration. */
export const defaultSlots = 4;
export const defaultBatchSize = 512;
export const defaultMaxTokenGapMs = 250;
export const defaultLoadTimeoutMs = 600_000;
/** Tokens that a draft model drafts at most. */
export const defaultDraftTokens = 8;
/** Maximum default size of the prompt cache in bytes. */
export const maxDefaultCacheMemory: number = 512 * 2 ** 20;
/** Maximum default context size in tokens; less if the model was trained for less. */
export const maxDefaultContextSize = 8192;
