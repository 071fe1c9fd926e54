import type { JsonValue } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { responseForms } from "./form.ts";

/** The body of an answer that is not streamed. */
export function bodyText(value: JsonValue, { name }: Profile): string {
  return responseForms[name].body(value);
}
