import { expect, test } from "vitest";
import { readModelList } from "./read-models.ts";

const sees = (list: unknown): unknown => readModelList(JSON.stringify(list))?.map((model) => model.sees);

test("whether models see, as each server's list tells it", () => {
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

test("llama.cpp tells it in its second list; a model that is multimodal may only hear", () => {
  const list = (capabilities: readonly string[]): unknown => ({
    models: [{ name: "other" }, { name: "m", model: "m", capabilities }],
    object: "list",
    data: [{ id: "m", object: "model", owned_by: "llamacpp", meta: { n_ctx_train: 512 } }],
  });
  expect(sees(list(["completion"]))).toEqual([false]);
  expect(sees(list(["completion", "multimodal"]))).toEqual([null]);
});
