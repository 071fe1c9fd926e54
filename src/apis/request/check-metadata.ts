import { valuePhrase } from "./issue-failure.ts";
import { invalidType, stringTooLong, tooManyProperties } from "./refusals.ts";

/** Throws `FailureError` unless there are at most 16 strings of at most 512 characters. Source: OpenAI's specification, `Metadata`. */
export function checkMetadata(value: Readonly<Record<string, unknown>>): asserts value is Record<string, string> {
  const { length } = Object.keys(value);
  if (length > 16) throw tooManyProperties("metadata", 16, length);
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") throw invalidType(`metadata.${key}`, "a string", valuePhrase(text));
    if (text.length > 512) throw stringTooLong(`metadata.${key}`, 512, text.length);
  }
}
