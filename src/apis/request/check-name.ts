import { patternMismatch, stringTooLong } from "./refusals.ts";

/** Names of functions and schemas, as OpenAI wants them. */
export function checkName(path: string, name: string): void {
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) throw patternMismatch(path, "^[a-zA-Z0-9_-]+$");
  if (name.length > 64) throw stringTooLong(path, 64, name.length);
}
