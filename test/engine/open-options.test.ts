import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gpuModelParams } from "../../src/engines/llama/process/c-api/native-model.ts";
import type { ModelParams } from "../../src/engines/llama/process/c-api/structs.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt } from "./local-engine.ts";
import { llamaApi } from "./native-model.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const path = join(folder, "random.gguf");
beforeAll(() => writeRandomModel(path));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What llama.cpp would read of these parameters, by the layout of its own header. */
function readBack({ params }: ReturnType<typeof gpuModelParams>): ModelParams {
  const { koffi, structs } = llamaApi();
  const at = koffi.alloc(structs.modelParams, 1);
  koffi.encode(at, structs.modelParams, params);
  const read = koffi.decode(at, structs.modelParams) as ModelParams;
  koffi.free(at);
  return read;
}

test("how several GPUs share a model reaches llama.cpp's structure", () => {
  const api = llamaApi();
  const made = gpuModelParams(api, { gpuLayers: 20, placement: { splitMode: "row", tensorSplit: [3, 1], mainGpu: 1 } });
  const read = readBack(made);
  expect(read).toMatchObject({ n_gpu_layers: 20, split_mode: 2, main_gpu: 1, devices: null });
  const most = Number(api.llama_max_devices());
  const shares = [...new Float32Array(api.koffi.view(read.tensor_split, most * 4).slice(0))];
  expect(shares).toEqual([3, 1, ...Array.from({ length: most - 2 }, () => 0)]);
  made.free();
});

test("what is not asked for stays as llama.cpp has it", () => {
  const made = gpuModelParams(llamaApi(), { gpuLayers: -1 });
  expect(readBack(made)).toMatchObject({ n_gpu_layers: -1, split_mode: 1, main_gpu: 0, tensor_split: null });
  made.free();
});

// With `none` and no GPU, llama.cpp refuses the model: "invalid value for main_gpu".
test("without a GPU nothing is divided", () => {
  const made = gpuModelParams(llamaApi(), { gpuLayers: 0, placement: { splitMode: "none", mainGpu: 0 } });
  expect(readBack(made)).toMatchObject({ n_gpu_layers: 0, split_mode: 1, devices: expect.anything() as unknown });
  made.free();
});

test("more shares than there can be GPUs are refused in words", () => {
  const shares = Array.from({ length: 1000 }, () => 1);
  expect(() => gpuModelParams(llamaApi(), { gpuLayers: -1, placement: { tensorSplit: shares } })).toThrow(
    "1000 numbers",
  );
});

test.each(["q8_0", "q4_0", "f32", "bf16"] as const)("a model answers with a cache of %s", async (type) => {
  const engine = await openBuilt({ model: path, cacheTypeK: type, cacheTypeV: type, flashAttention: "auto" });
  const { usage, end } = await drive(engine).complete("b ".repeat(60), { limits: { maxTokens: 5 } });
  await engine.close(0);
  expect(end).toEqual({ kind: "done" });
  expect(usage?.completionTokens).toBe(5);
});

test("a quantized cache of values without flash attention is refused in words", async () => {
  const opening = openBuilt({ model: path, cacheTypeV: "q8_0", flashAttention: "off" });
  await expect(opening).rejects.toThrow("a quantized cache of values needs flash attention");
});
