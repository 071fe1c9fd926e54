import { between, oneOf } from "./random.ts";

/** A copy in which one member, at any depth, is dropped or has a value of another kind. */
export function spoiledValue(value: unknown, random: () => number): unknown {
  const copy = structuredClone(value);
  const places = placesIn(copy);
  const { owner, key } = oneOf(places, random);
  if (random() < 0.3) delete (owner as Record<string, unknown>)[key];
  else {
    const others = [null, 7, -1, 0.5, "x", "", true, [], {}, [7], { x: 1 }].filter((other) => other !== owner[key]);
    owner[key] = others[between(0, others.length - 1, random)];
  }
  return copy;
}

interface Owner {
  [key: string]: unknown;
}

function placesIn(value: unknown): readonly { readonly owner: Owner; readonly key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  const owner = value as Owner;
  // An array's elements are changed, not dropped: a hole is no JSON.
  return Object.keys(owner).flatMap((key) => [
    ...(Array.isArray(owner) ? [] : [{ owner, key }]),
    ...placesIn(owner[key]),
  ]);
}
