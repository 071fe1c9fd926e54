import { shown } from "./place.ts";

/** What is wrong with ids of which each must be a text of its own, by their place in the list. */
export function* ownIdOffences(
  name: string,
  ids: readonly unknown[],
): Generator<{ readonly at: number; readonly found: string }> {
  for (const [at, id] of ids.entries()) {
    if (typeof id !== "string" || id === "") yield { at, found: `${name} is ${shown(id)}` };
    else if (ids.indexOf(id) !== at) yield { at, found: `the ${name} ${shown(id)} twice` };
  }
}
