import { SchemaError } from "./schema-error.ts";

/** Far above what schemas in use need: OpenAI's strict mode allows 10 levels of nesting and 5,000 properties in all (guide "Structured Outputs"). */
export const maxDepth = 200;
const maxProperties = 10_000;

/** @throws {SchemaError} for a schema whose JSON is nested too deeply, or holds an object with too many members. Works without recursion. */
export function checkLimits(schema: unknown, path: string): void {
  let level: readonly Place[] = [{ value: schema, key: "", parent: null }];
  for (let depth = 0; level.length > 0; depth++) {
    const below: Place[] = [];
    for (const place of level) {
      const { value } = place;
      if (typeof value !== "object" || value === null) continue;
      if (depth > maxDepth) throw new SchemaError(pathOf(place, path), `nested deeper than ${maxDepth} levels`);
      const isList = Array.isArray(value);
      const entries = Object.entries(value);
      if (!isList && entries.length > maxProperties)
        throw new SchemaError(pathOf(place, path), `more than ${maxProperties} members`);
      for (const [key, member] of entries) {
        if (typeof member === "object" && member !== null)
          below.push({ value: member, key: isList ? `[${key}]` : `.${key}`, parent: place });
      }
    }
    level = below;
  }
}

interface Place {
  readonly value: unknown;
  readonly key: string;
  readonly parent: Place | null;
}

function pathOf(place: Place, path: string): string {
  const keys: string[] = [];
  for (let at: Place | null = place; at !== null; at = at.parent) keys.push(at.key);
  return path + keys.toReversed().join("");
}
