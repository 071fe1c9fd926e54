import { expect, test } from "vitest";
import type { ModelInfo } from "../../core/engine.ts";
import { exact, lean } from "../profile.ts";
import { readModelList, samplingParameters, writeModel, writeModelList } from "./models.ts";

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
  expect(writeModel({ ...blind, takesAudio: true }, lean)).toContain('"input_modalities":["text","audio"]}');
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

test("profile lean has the known defaults under OpenRouter's name, and where each of them is set", () => {
  const defaults: ModelInfo["defaults"] = [
    {
      origin: "engine",
      parameters: samplingParameters({ temperature: 1, topK: 0, xtc: { probability: 0, threshold: 0.1 } }),
    },
    { origin: "configuration", parameters: { temperature: 0.2, max_completion_tokens: 100 } },
  ];
  const entry = JSON.parse(writeModel({ ...model, defaults }, lean)) as object;
  expect(entry).toMatchObject({
    default_parameters: {
      temperature: 0.2,
      top_k: 0,
      xtc_probability: 0,
      xtc_threshold: 0.1,
      max_completion_tokens: 100,
    },
    truewire: {
      default_origins: {
        temperature: "configuration",
        top_k: "engine",
        xtc_probability: "engine",
        xtc_threshold: "engine",
        max_completion_tokens: "configuration",
      },
    },
  });
  expect(Object.keys(JSON.parse(writeModel({ ...model, defaults }, exact)) as object)).toEqual([
    "id",
    "object",
    "created",
    "owned_by",
  ]);
});

test("defaults of OpenRouter's list, and of another Truewire, are those of the server", () => {
  const list = {
    data: [
      { id: "a", default_parameters: { temperature: 0.6, top_p: null, stop: ["x"] } },
      { id: "b", default_parameters: [] },
    ],
  };
  expect(readModelList(JSON.stringify(list))?.map(({ defaults }) => defaults)).toEqual([
    [{ origin: "server", parameters: { temperature: 0.6 } }],
    undefined,
  ]);
});
