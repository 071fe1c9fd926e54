import { wellFormed } from "./well-formed.ts";

/** A JSON object with unknown members. */
export type JsonObject = { readonly [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members that have a value: a null is no value. */
export function given<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: NonNullable<Members[Name]> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(entries) as { [Name in keyof Members]?: NonNullable<Members[Name]> };
}

/** The value if it is a string with at least one character, else undefined. */
export function nonEmpty(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A string, number or boolean as text; "" for any other value. (`String` throws for an object whose `toString` is not a function.) */
export function scalarText(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** Whether a text is JSON, of any value. */
export function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** `JSON.stringify` reads nested values recursively: some thousands of levels overflow the stack, which a model can write. */
const maxDepth = 1000;

/** Returns the object that a text is the JSON of, with well-formed texts; undefined for any other text, and for JSON that is nested too deeply to be written again. */
export function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || isNestedTooDeeply(text)) return undefined;
    return /\\u[dD][89a-fA-F]/.test(text) ? wellFormed(value) : value;
  } catch {
    return undefined;
  }
}

/** `text`: valid JSON. */
function isNestedTooDeeply(text: string): boolean {
  if (text.length <= 2 * maxDepth) return false;
  let depth = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') isString = !isString;
    else if (character === "\\") at++;
    else if (isString) continue;
    else if (character === "{" || character === "[") {
      if (++depth > maxDepth) return true;
    } else if (character === "}" || character === "]") depth--;
  }
  return false;
}
