import type { ModelInfo } from "../../generation/engine.ts";
import type { Profile } from "../profile.ts";

/** The body of `GET /v1/models`. */
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

function write(value: object, { name }: Profile): string {
  return JSON.stringify(value, null, indents[name]);
}

/** OpenAI's list is pretty, today without a final line feed (recordings of 2025 and 2026). */
const indents: Readonly<Record<Profile["name"], number>> = { lean: 0, exact: 2 };
