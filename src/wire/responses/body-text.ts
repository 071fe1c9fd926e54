import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { pythonJson } from "./python-json.ts";

/** The body of an answer that is not streamed. Profile `exact`: as Python writes JSON; `lean`: compact. */
export function bodyText(value: JsonValue, profile: Profile): string {
  return profile.name === "exact" ? pythonJson(value) : jsonText(value);
}
