export type KvCacheType = "f32" | "f16" | "bf16" | "q8_0" | "q5_1" | "q5_0" | "q4_1" | "q4_0" | "iq4_nl";

/** The types of a KV cache: `ggml_type` (ggml.h), and bytes per value. */
export const cacheTypes: Readonly<Record<KvCacheType, { readonly code: number; readonly bytes: number }>> = {
  f32: { code: 0, bytes: 4 },
  f16: { code: 1, bytes: 2 },
  bf16: { code: 30, bytes: 2 },
  // The quantized types pack 32 values into a block with a scale.
  q8_0: { code: 8, bytes: 34 / 32 },
  q5_1: { code: 7, bytes: 24 / 32 },
  q5_0: { code: 6, bytes: 22 / 32 },
  q4_1: { code: 3, bytes: 20 / 32 },
  q4_0: { code: 2, bytes: 18 / 32 },
  iq4_nl: { code: 20, bytes: 18 / 32 },
};

/** llama.cpp's default; no loss of quality is measurable. */
export const defaultCacheType: KvCacheType = "f16";

export function isQuantized(type: KvCacheType): boolean {
  return cacheTypes[type].bytes < 2;
}
