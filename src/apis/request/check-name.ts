import { patternMismatch, stringTooLong } from "./refusals.ts";

/** Checks the name of a function or schema as OpenAI does. Throws `FailureError`. */
export function checkName(path: string, name: string): void {
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) throw patternMismatch(path, "^[a-zA-Z0-9_-]+$");
  if (name.length > 64) throw stringTooLong(path, 64, name.length);
}
