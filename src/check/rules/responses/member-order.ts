import { isObject } from "../../../core/json.ts";
import type { Json } from "../view.ts";

/** Members that stand before those in alphabetical order, wherever they are. */
const first = ["id", "object", "created_at", "type", "status"];
/** JSON of the client's own, and lists whose order is another. */
const others: ReadonlySet<string> = new Set([
  "parameters",
  "schema",
  "input_schema",
  "output_schema",
  "metadata",
  "arguments",
  "environment",
  "categories",
  "category_applied_input_types",
  "category_scores",
]);

/** The first object of a response, or of an event, whose members are not in OpenAI's order; undefined: there is none. */
export function outOfOrder(value: Json): { readonly member: string; readonly found: string } | undefined {
  const names = Object.keys(value);
  const due = inOrder(names, value.object === "response");
  const wrong = names.findIndex((name, at) => name !== due[at]);
  const member = names[wrong];
  if (member !== undefined) return { member, found: `${member} in the place of ${due[wrong] ?? ""}` };
  for (const [name, inner] of Object.entries(value)) {
    if (others.has(name)) continue;
    for (const one of [inner].flat()) {
      const found = isObject(one) ? outOfOrder(one) : undefined;
      if (found) return found;
    }
  }
  return undefined;
}

function inOrder(names: readonly string[], isResponse: boolean): readonly string[] {
  const last = isResponse && names.includes("metadata") ? ["metadata"] : [];
  const rest = names.filter((name) => !first.includes(name) && !last.includes(name));
  return [...first.filter((name) => names.includes(name)), ...rest.toSorted(), ...last];
}
