import type { ModelInfo } from "../../generation/engine.ts";
import type { Profile } from "../profile.ts";

/** The body of `GET /v1/models`. OpenAI's is pretty, today without a final line feed (wire.md section 5). */
export function writeModelList(models: readonly ModelInfo[], profile: Profile): string {
  return write({ object: "list", data: models.map((model) => modelObject(model)) }, profile);
}

/** The body of `GET /v1/models/{id}`. */
export function writeModel(model: ModelInfo, profile: Profile): string {
  return write(modelObject(model), profile);
}

function modelObject({ id, created, ownedBy }: ModelInfo): object {
  return { id, object: "model", created, owned_by: ownedBy };
}

function write(value: object, profile: Profile): string {
  return profile.name === "exact" ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}
