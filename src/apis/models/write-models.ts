import type { ModelInfo } from "../../core/engine.ts";
import type { Profile } from "../profile.ts";

/** The body of `GET /v1/models`. */
export function writeModelList(models: readonly ModelInfo[], profile: Profile): string {
  return write({ object: "list", data: models.map((model) => modelObject(model, profile)) }, profile);
}

/** The body of `GET /v1/models/{id}`. */
export function writeModel(model: ModelInfo, profile: Profile): string {
  return write(modelObject(model, profile), profile);
}

function modelObject({ id, created, ownedBy, contextLength, sees }: ModelInfo, { name }: Profile): object {
  const model = { id, object: "model", created, owned_by: ownedBy };
  if (!forms[name].beyond) return model;
  return {
    ...model,
    // vLLM's name for it, and OpenRouter's.
    ...(contextLength !== undefined && { max_model_len: contextLength, context_length: contextLength }),
    // OpenRouter's, too.
    ...(sees !== undefined && { architecture: { input_modalities: sees ? ["text", "image"] : ["text"] } }),
  };
}

function write(value: object, { name }: Profile): string {
  return JSON.stringify(value, null, forms[name].indent);
}

interface Form {
  readonly indent: number;
  /** What OpenAI does not tell: how many tokens have room, and whether the model sees. */
  readonly beyond: boolean;
}

/** OpenAI's list is pretty, today without a final line feed (recordings of 2025 and 2026). */
const forms: Readonly<Record<Profile["name"], Form>> = {
  lean: { indent: 0, beyond: true },
  exact: { indent: 2, beyond: false },
};
