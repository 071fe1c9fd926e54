import { expect, test } from "vitest";
import { bestProjector } from "./find-projector.ts";

test.each([
  ["model.gguf", ["model.gguf"], null],
  ["model.gguf", ["model.gguf", "mmproj-F32.gguf", "mmproj-F16.gguf", "mmproj-BF16.gguf"], "mmproj-F16.gguf"],
  [
    "Qwen2-VL-2B-Q4_K_M.gguf",
    ["Qwen2-VL-2B-Q4_K_M.gguf", "Qwen2-VL-2B-Q8_0.gguf", "mmproj-Q8_0.gguf"],
    "mmproj-Q8_0.gguf",
  ],
  [
    "Qwen2-VL-2B-Q4_K_M.gguf",
    ["Qwen2-VL-2B-Q4_K_M.gguf", "llama.gguf", "mmproj-Qwen2-VL-2B-f16.gguf", "mmproj-gemma-f16.gguf"],
    "mmproj-Qwen2-VL-2B-f16.gguf",
  ],
  [
    "gemma-3-4b-it-Q4_K_M.gguf",
    ["gemma-3-4b-it-Q4_K_M.gguf", "llama.gguf", "gemma-3-4b-it.mmproj-f16.gguf"],
    "gemma-3-4b-it.mmproj-f16.gguf",
  ],
  ["llama.gguf", ["gemma.gguf", "llama.gguf", "mmproj-gemma.gguf"], null],
  ["llama.gguf", ["gemma.gguf", "llama.gguf", "mmproj-F16.gguf"], null],
  [
    "big-00001-of-00002.gguf",
    ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf", "mmproj-F16.gguf"],
    "mmproj-F16.gguf",
  ],
])("the projector of %s among %j", (model, names, expected) => {
  expect(bestProjector(names, model)).toBe(expected);
});
