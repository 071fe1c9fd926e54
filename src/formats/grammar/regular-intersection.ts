import { keyOf, settle, type Parse } from "./parses.ts";
import { contains, everyCodePoint, oneCodePoint, union, type CodePoints } from "./code-points.ts";
import { choice, empty, sequence, text, type Expression } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/** More states than this make a grammar that slows down every token. */
const maxStates = 2_000;

/**
 * The texts that all expressions match and whose length is between `min` and `max`: the automata of the expressions side by side, with a counter. The
 * expressions have no references to rules. `spell` writes one character of a set.
 *
 * @returns null where that has too many states.
 */
export function intersected(
  grammar: Grammar,
  { expressions, min, max }: { expressions: readonly Expression[]; min: number; max: number | null },
  spell: (set: CodePoints) => Expression,
): Expression | null {
  const reached = new Map<string, State>();
  const moves = new Map<string, readonly Move[]>();
  const start = stateOf(
    expressions.map((expression) => [{ first: expression, rest: null }]),
    0,
  );
  if (start === null) return null;
  reached.set(start.key, start);
  for (const state of reached.values()) {
    const next = state.count === max ? [] : movesOf(state, Math.min(state.count + 1, max ?? min));
    if (next === null) return null;
    moves.set(state.key, next);
    for (const move of next) reached.set(move.to.key, move.to);
    if (reached.size > maxStates) return null;
  }
  const id = `intersection ${JSON.stringify(expressions)} ${min} ${max} ${JSON.stringify(spell(everyCodePoint))}`;
  const ruleOf = (state: State): Expression =>
    grammar.shared(`${id} ${state.key}`, "both", () =>
      choice(
        ...(state.accepts && state.count >= min ? [empty] : []),
        ...(moves.get(state.key) ?? []).map(({ set, to }) => sequence(spell(set), ruleOf(to))),
      ),
    );
  return ruleOf(start);
}

/** Where all automata stand, each in several places at a time, after so many characters (counted no further than it matters). */
interface State {
  readonly places: readonly (readonly Parse[])[];
  readonly count: number;
  readonly accepts: boolean;
  readonly key: string;
}

interface Move {
  readonly set: CodePoints;
  readonly to: State;
}

/** null: one of the automata stands in too many places. */
function stateOf(parses: readonly (readonly Parse[])[], count: number): State | null {
  const settled = parses.map((parse) => settle(new Map(), parse));
  const places = settled.filter((place) => place !== null);
  if (places.length < settled.length) return null;
  return {
    places,
    count,
    accepts: places.every((place) => place.includes(null)),
    key: `${count}: ${places.map((place) => place.map(keyOf).toSorted().join(" ")).join(" & ")}`,
  };
}

/** The moves by one character, those to the same state together. */
function movesOf(state: State, count: number): Move[] | null {
  const steps = state.places.map((place) => place.flatMap(stepOf));
  const moves = new Map<string, Move>();
  for (const range of piecesOf(steps.flat().map(({ set }) => set))) {
    const next = steps.map((step) => step.filter(({ set }) => contains(set, range[0])).map(({ rest }) => rest));
    if (next.some((place) => place.length === 0)) continue;
    const to = stateOf(next, count);
    if (to === null) return null;
    if (to.places.some((place) => place.length === 0)) continue;
    moves.set(to.key, { set: union(moves.get(to.key)?.set ?? [], [range]), to });
  }
  return [...moves.values()];
}

function stepOf(parse: Parse): { set: CodePoints; rest: Parse }[] {
  if (parse === null) return [];
  const { first, rest } = parse;
  if (first.kind === "chars") return [{ set: first.set, rest }];
  if (first.kind !== "text") return [];
  const [character = ""] = first.text;
  const left = first.text.slice(character.length);
  return [{ set: oneCodePoint(character), rest: left === "" ? rest : { first: text(left), rest } }];
}

/** The ranges that the ends of all sets cut the characters into: each is in a set as a whole, or not at all. */
function piecesOf(sets: readonly CodePoints[]): (readonly [number, number])[] {
  const starts = new Set<number>();
  for (const [first, last] of sets.flat()) starts.add(first).add(last + 1);
  const sorted = [...starts].sort((a, b) => a - b);
  const whole = union(...sets);
  return sorted
    .slice(0, -1)
    .map((first, i) => [first, (sorted[i + 1] ?? first + 1) - 1] as const)
    .filter(([first]) => contains(whole, first));
}
