/** Returns the name that a mistyped one most likely means: the nearest of `known` within two edits; undefined if none is near. */
export function nearest(typed: string, known: Iterable<string>): string | undefined {
  // One letter is near every other one; a text longer than any name would take long.
  if (typed.length < 2 || typed.length > 64) return undefined;
  let best: string | undefined;
  let least = typed.length <= 3 ? 1 : 2;
  for (const name of known) {
    if (Math.abs(name.length - typed.length) > least) continue;
    const edits = distance(typed.toLowerCase(), name.toLowerCase());
    if (edits > least || (edits === least && best !== undefined)) continue;
    best = name;
    least = edits;
  }
  return best;
}

/** Returns the names of `known` within two edits of a mistyped one, the nearest first. */
export function namesNear(typed: string, known: Iterable<string>): readonly string[] {
  if (typed.length > 64) return [];
  return [...known]
    .filter((name) => Math.abs(name.length - typed.length) <= 2)
    .map((name) => ({ name, edits: distance(typed, name) }))
    .filter(({ edits }) => edits <= 2)
    .toSorted((a, b) => a.edits - b.edits || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** The number of inserted, deleted, replaced and swapped characters between two texts (optimal string alignment). */
function distance(one: string, other: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      let edits = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) edits = Math.min(edits, (before[j - 2] ?? 0) + 1);
      row.push(edits);
    }
    [before, last] = [last, row];
  }
  return last[other.length] ?? 0;
}
