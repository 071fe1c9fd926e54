import { isObject } from "../../core/json.ts";
import type { JsonSchema } from "../../core/message.ts";
import { SchemaError } from "./schema-error.ts";

/** Finds the schemas that references within one document mean. Other documents are never fetched. */
export class References {
  readonly #document: JsonSchema;
  readonly #found = new Map<string, JsonSchema>();
  /** `#name` and ids → the schemas that have them; made when the first is asked for. */
  #named: ReadonlyMap<string, JsonSchema> | undefined;

  constructor(document: JsonSchema) {
    this.#document = document;
  }

  /**
   * The schema that a `$ref` means: `#`, `#/…` (RFC 6901), `#name` (`$anchor`, or `$id: "#name"` in draft-07), or the `$id` of an
   * embedded schema.
   *
   * @throws {SchemaError} at `path` if there is none.
   */
  resolve(reference: string, path: string): JsonSchema {
    let schema = this.#found.get(reference);
    if (schema !== undefined) return schema;
    const isPointer = reference.startsWith("#/") || reference === "#";
    const found = isPointer ? follow(this.#document, reference) : this.#byName(reference);
    if (typeof found !== "boolean" && !isObject(found))
      throw new SchemaError(`${path}.$ref`, `reference ${JSON.stringify(reference)} cannot be resolved`);
    schema = found;
    this.#found.set(reference, schema);
    return schema;
  }

  #byName(reference: string): JsonSchema | undefined {
    this.#named ??= namedIn(this.#document);
    return this.#named.get(reference);
  }
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

/** The schemas of a document that have a name. The first of a name counts, in the order of the text. */
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
