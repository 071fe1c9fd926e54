import { isObject } from "../../wire/core/json.ts";
import type { JsonSchema } from "../../wire/core/message.ts";

/** The named schemas of documents whose names were asked for. */
const known = new WeakMap<object, ReadonlyMap<string, JsonSchema>>();

/**
 * Returns what a `$ref` in a document refers to: `#`, `#/…` (RFC 6901), `#name` (`$anchor`, or `$id: "#name"` in draft-07), or the `$id` of
 * an embedded schema. `undefined` if it refers to nothing; other documents are never fetched.
 */
export function findReference(document: unknown, reference: string): unknown {
  if (reference === "#" || reference.startsWith("#/")) return follow(document, reference);
  if (!isObject(document)) return undefined;
  let names = known.get(document);
  if (names === undefined) known.set(document, (names = namedIn(document)));
  return names.get(reference);
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

/** The named schemas of a document. Of several with the same name, the first in the text applies. */
function namedIn(document: unknown): ReadonlyMap<string, JsonSchema> {
  const names = new Map<string, JsonSchema>();
  const todo: unknown[] = [document];
  for (let value = todo.pop(); value !== undefined; value = todo.pop()) {
    if (typeof value !== "object" || value === null) continue;
    if (isObject(value)) {
      const { $id, $anchor } = value;
      if (typeof $id === "string" && !names.has($id)) names.set($id, value);
      if (typeof $anchor === "string" && !names.has(`#${$anchor}`)) names.set(`#${$anchor}`, value);
    }
    for (const member of Object.values(value).toReversed()) todo.push(member ?? null);
  }
  return names;
}
