import { codePointOf, complement, oneCodePoint, union, type CodePoints } from "./code-points.ts";
import { chars, choice, empty, sequence, type Expression } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/**
 * Any text up to and including the first `end`. It holds none of `forbidden`, which a reader would take for something else.
 *
 * It is the automaton that searches for all of them at once (Knuth–Morris–Pratt, Aho–Corasick) as right-linear rules: a state is
 * what of a marker has been read, and a character leads to one state only, so that there is never more than one parse open.
 */
export function until(grammar: Grammar, end: string, forbidden: readonly string[] = []): Expression {
  if (end === "") return empty;
  const markers = [end, ...forbidden.filter((marker) => marker !== "" && marker !== end)];
  return state(grammar, markers, "");
}

function state(grammar: Grammar, markers: readonly string[], read: string): Expression {
  return grammar.shared(`until ${JSON.stringify(markers)} ${read}`, "until", () => {
    const [end = ""] = markers;
    const byNext = new Map<string, CodePoints>();
    const named = new Set<string>();
    for (const marker of markers) for (const character of marker) named.add(character);
    const options: Expression[] = [];
    for (const character of named) {
      const text = read + character;
      if (text.endsWith(end)) options.push(chars(oneCodePoint(character)));
      else if (!markers.some((marker) => text.endsWith(marker))) {
        const next = longestBeginning(markers, text);
        byNext.set(next, union(byNext.get(next) ?? [], oneCodePoint(character)));
      }
    }
    const others = complement(
      union(...[...named].map((character) => [[codePointOf(character), codePointOf(character)]] as const)),
    );
    byNext.set("", union(byNext.get("") ?? [], others));
    for (const [next, set] of byNext) options.push(sequence(chars(set), state(grammar, markers, next)));
    return choice(...options);
  });
}

/** The longest beginning of a marker that `text` ends with. */
function longestBeginning(markers: readonly string[], text: string): string {
  for (let start = 0; start < text.length; start++) {
    const tail = text.slice(start);
    if (markers.some((marker) => marker.startsWith(tail))) return tail;
  }
  return "";
}
