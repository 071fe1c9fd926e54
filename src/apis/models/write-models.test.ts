import { expect, test } from "vitest";
import type { ModelInfo } from "../../core/engine.ts";
import { exact, lean } from "../profile.ts";
import { readModelList, writeModel, writeModelList } from "./models.ts";

const model: ModelInfo = { id: "tiny", created: 5, ownedBy: "me", contextLength: 512, endpoints: ["chat"] };

test("profile lean is compact, and has the context size under the names of vLLM and OpenRouter", () => {
  expect(writeModel(model, lean)).toBe(
    '{"id":"tiny","object":"model","created":5,"owned_by":"me","max_model_len":512,"context_length":512}',
  );
  const { contextLength: _, ...unknown } = model;
  expect(writeModel(unknown, lean)).toBe('{"id":"tiny","object":"model","created":5,"owned_by":"me"}');
  expect(writeModelList([], lean)).toBe('{"object":"list","data":[]}');
});

test("profile lean has OpenRouter's input modalities if they are known", () => {
  const { contextLength: _, ...blind } = { ...model, takesImages: false };
  expect(writeModel(blind, lean)).toContain('"owned_by":"me","architecture":{"input_modalities":["text"]}}');
  expect(writeModel({ ...blind, takesImages: true }, lean)).toContain('"input_modalities":["text","image"]}');
});

test("profile exact is indented, without a final line feed", () => {
  expect(writeModelList([{ ...model, takesImages: true }], exact)).toBe(`{
  "object": "list",
  "data": [
    {
      "id": "tiny",
      "object": "model",
      "created": 5,
      "owned_by": "me"
    }
  ]
}`);
});

test("a shutdown that an upstream has announced is passed on", () => {
  const entry = { id: "tiny", object: "model", created: 5, owned_by: "me", shutdown_date: "2027-01-31" };
  const [listed] = readModelList(JSON.stringify({ object: "list", data: [entry] })) ?? [];
  expect(listed?.shutdownDate).toBe("2027-01-31");
  expect(JSON.parse(writeModel({ ...model, shutdownDate: "2027-01-31" }, exact))).toEqual(entry);
});
