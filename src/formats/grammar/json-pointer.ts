import { isObject } from "../../generation/json.ts";
import type { JsonSchema } from "../../generation/message.ts";
import { SchemaError } from "./schema-error.ts";

/**
 * The schema that a `$ref` within one document means: `#`, `#/…` (RFC 6901), `#name` (`$anchor`, or `$id: "#name"` in draft-07), or
 * the `$id` of an embedded schema.
 *
 * @throws {SchemaError} at `path` if there is none; other documents are never fetched.
 */
export function resolveReference(document: JsonSchema, reference: string, path: string): JsonSchema {
  const found =
    reference.startsWith("#/") || reference === "#" ? follow(document, reference) : named(document, reference);
  if (typeof found === "boolean" || isObject(found)) return found;
  throw new SchemaError(`${path}.$ref`, `reference ${JSON.stringify(reference)} cannot be resolved`);
}

function follow(document: unknown, reference: string): unknown {
  let here = document;
  for (const step of reference.split("/").slice(1)) {
    const key = decode(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, key)) return undefined;
    here = (here as Record<string, unknown>)[key];
  }
  return here;
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function named(value: unknown, reference: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const { $id, $anchor } = value as { $id?: unknown; $anchor?: unknown };
  if (!Array.isArray(value) && ($id === reference || (typeof $anchor === "string" && `#${$anchor}` === reference))) {
    return value;
  }
  for (const member of Object.values(value)) {
    const found = named(member, reference);
    if (found !== undefined) return found;
  }
  return undefined;
}
