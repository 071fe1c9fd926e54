import { shown } from "./place.ts";

/** Yields what is wrong with ids that must be different, non-empty strings, with their place in the list. */
export function* ownIdViolations(
  name: string,
  ids: readonly unknown[],
): Generator<{ readonly at: number; readonly found: string }> {
  for (const [at, id] of ids.entries()) {
    if (typeof id !== "string" || id === "") yield { at, found: `${name} is ${shown(id)}` };
    else if (ids.indexOf(id) !== at) yield { at, found: `the ${name} ${shown(id)} twice` };
  }
}
