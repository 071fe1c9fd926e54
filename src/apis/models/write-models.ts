import type { ModelInfo } from "../../core/engine.ts";
import type { Profile } from "../profile.ts";

/** Writes the body of `GET /v1/models`. */
export function writeModelList(models: readonly ModelInfo[], profile: Profile): string {
  return write({ object: "list", data: models.map((model) => modelObject(model, profile)) }, profile);
}

/** Writes the body of `GET /v1/models/{id}`. */
export function writeModel(model: ModelInfo, profile: Profile): string {
  return write(modelObject(model, profile), profile);
}

function modelObject({ id, created, ownedBy, contextLength, takesImages: sees }: ModelInfo, { name }: Profile): object {
  const model = { id, object: "model", created, owned_by: ownedBy };
  if (!forms[name].extended) return model;
  return {
    ...model,
    // The names of vLLM and of OpenRouter.
    ...(contextLength !== undefined && { max_model_len: contextLength, context_length: contextLength }),
    // OpenRouter's name.
    ...(sees !== undefined && { architecture: { input_modalities: sees ? ["text", "image"] : ["text"] } }),
  };
}

function write(value: object, { name }: Profile): string {
  return JSON.stringify(value, null, forms[name].indent);
}

interface Form {
  readonly indent: number;
  /** Has members that OpenAI does not have: the context size, and whether the model accepts images. */
  readonly extended: boolean;
}

/** OpenAI's list is indented, currently without a final line feed (recordings of 2025 and 2026). */
const forms: Readonly<Record<Profile["name"], Form>> = {
  lean: { indent: 0, extended: true },
  exact: { indent: 2, extended: false },
};
