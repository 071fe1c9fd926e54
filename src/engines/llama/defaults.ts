/** Where the configuration does not say: what a model is opened with. */
export const defaultSlots = 4;
export const defaultBatchSize = 512;
export const defaultLoadTimeoutMs = 600_000;
/** What is kept beside the slots, at most, in bytes. */
export const largestDefaultCacheMemory: number = 512 * 2 ** 20;
/** Tokens; less where the model was trained for less. */
export const largestDefaultContext = 8192;
