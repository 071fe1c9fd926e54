import { expect, test } from "vitest";
import { readModelList } from "./models.ts";

const sees = (list: unknown): unknown => readModelList(JSON.stringify(list))?.map((model) => model.sees);

test("whether models accept images, from the list of each server", () => {
  for (const [entry, expected] of [
    [{ architecture: { input_modalities: ["text", "image"] } }, true],
    [{ architecture: { input_modalities: ["text", "file"] } }, false],
    [{ architecture: { modality: "text+image->text" } }, true],
    [{ architecture: { modality: "text->text+image" } }, false],
    [{ capabilities: { completion_chat: true, vision: true } }, true],
    [{ capabilities: { completion_chat: true, vision: false } }, false],
    [{ capabilities: { image_input: { supported: true } } }, true],
    [{ type: "vlm" }, true],
    [{ type: "llm" }, false],
    [{ type: "embeddings" }, null],
    [{ type: "model" }, null],
    [{ architecture: "llama", capabilities: "chat" }, null],
    [{}, null],
  ] as const)
    expect(sees({ object: "list", data: [{ id: "m", ...entry }] }), JSON.stringify(entry)).toEqual([expected]);
});

test("llama.cpp has it in its second list; a multimodal model may accept only audio", () => {
  const list = (capabilities: readonly string[]): unknown => ({
    models: [{ name: "other" }, { name: "m", model: "m", capabilities }],
    object: "list",
    data: [{ id: "m", object: "model", owned_by: "llamacpp", meta: { n_ctx_train: 512 } }],
  });
  expect(sees(list(["completion"]))).toEqual([false]);
  expect(sees(list(["completion", "multimodal"]))).toEqual([null]);
});

test("the context that a server enforces, from the list of each server", () => {
  const context = (entry: object): unknown => {
    const [model] = readModelList(JSON.stringify({ data: [{ id: "m", ...entry }] })) ?? [];
    return [model?.contextLength, model?.contextIsEnforced];
  };
  expect(context({ max_model_len: 32_768 })).toEqual([32_768, true]);
  expect(context({ context_length: 131_072, top_provider: { max_completion_tokens: 8192 } })).toEqual([131_072, true]);
  expect(context({ context_window: 8192 })).toEqual([8192, true]);
  expect(context({ max_context_length: 131_072, loaded_context_length: 4096 })).toEqual([4096, true]);
  expect(context({ max_context_length: 131_072 })).toEqual([131_072, false]);
  expect(context({ max_input_tokens: 200_000, max_tokens: 64_000 })).toEqual([200_000, false]);
  expect(context({ meta: { n_ctx_train: 40_960, n_ctx: 65_536 } })).toEqual([65_536, false]);
  expect(context({ meta: { n_ctx_train: 40_960 } })).toEqual([40_960, false]);
  expect(context({})).toEqual([null, false]);
});
