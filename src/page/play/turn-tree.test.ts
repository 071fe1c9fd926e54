import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Answer, Choice } from "./answer.ts";
import { TurnTree } from "./turn-tree.ts";
import { placeAfter, placesAfter } from "./turn.ts";
import type { Turn } from "./turn.ts";

let count = 0;

function question(parent: string): Turn {
  return { kind: "question", id: `q${++count}`, parent, created: count, text: `question ${count}`, images: [] };
}

function answer(parent: string, choices = 1): Turn {
  const answer = new Answer(0);
  for (let choice = 0; choice < choices; choice++) answer.choices.push(new Choice());
  return {
    kind: "answer",
    id: `a${++count}`,
    parent,
    created: count,
    request: { model: "m" },
    system: "",
    answer,
    chosen: 0,
  };
}

/** Adds a question and its answer, and shows them, as `Conversation` does. */
function ask(tree: TurnTree, parent: string, choices?: number): readonly [question: Turn, answer: Turn] {
  const asked = question(parent);
  const answered = answer(placeAfter(asked), choices);
  tree.put(asked);
  tree.put(answered);
  tree.show(answered.id);
  return [asked, answered];
}

/** Each turn follows the one before it, and is shown alone at its place. */
function expectOnePath(tree: TurnTree): void {
  const { path } = tree;
  let place = "";
  for (const turn of path) {
    expect(turn.parent).toBe(place);
    place = placeAfter(turn);
  }
  // Nothing follows the last one.
  expect(tree.all.filter(({ parent }) => parent === place)).toEqual([]);
  expect(tree.end).toBe(place);
}

test("for every sequence of ask, edit, ask again, choose, switch and delete: every branch is reachable, and one path is shown", () => {
  const step = fc.record({
    kind: fc.constantFrom("ask", "ask", "edit", "again", "choose", "show", "remove", "undo"),
    at: fc.nat(1000),
    choices: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const tree = new TurnTree();
      const expected = new Set<string>();
      let removed: readonly Turn[] = [];
      for (const { kind, at, choices } of steps) {
        const turn = kind === "show" ? tree.all[at % tree.all.length] : tree.path[at % tree.path.length];
        let added: readonly Turn[] = [];
        if (kind === "ask") added = ask(tree, tree.end, choices);
        else if (kind === "edit" && turn?.kind === "question") added = ask(tree, turn.parent, choices);
        else if (kind === "again" && turn?.kind === "answer") {
          const again = answer(turn.parent, choices);
          tree.put(again);
          tree.show(again.id);
          added = [again];
        } else if (kind === "choose" && turn?.kind === "answer") tree.choose(turn.id, at % turn.answer.choices.length);
        else if (kind === "show" && turn) {
          tree.show(turn.id);
          expect(tree.path.map(({ id }) => id)).toContain(turn.id);
        } else if (kind === "remove" && turn && tree.versionsOf(turn).length > 1) {
          removed = tree.remove(turn.id);
          expect(removed[0]?.id).toBe(turn.id);
          for (const { id } of removed) expected.delete(id);
        } else if (kind === "undo" && removed.every(({ id }) => !tree.get(id))) {
          // What it followed may be gone, too.
          const lost = new Set(tree.addAll(removed));
          added = removed.filter((turn) => !lost.has(turn));
        }
        for (const { id } of added) expected.add(id);
        expectOnePath(tree);
      }
      expect(new Set(tree.all.map(({ id }) => id))).toEqual(expected);
      for (const { id } of tree.all) {
        tree.show(id);
        expectOnePath(tree);
        expect(tree.path.map(({ id }) => id)).toContain(id);
        const upTo = tree.pathTo(id);
        expect(tree.path.slice(0, upTo.length)).toEqual(upTo);
      }
    }),
  );
});

test("for every tree: turns in any order, with what was shown, give the same tree", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1000), { maxLength: 30 }), fc.infiniteStream(fc.nat(1000)), (asks, order) => {
      const tree = new TurnTree();
      for (const at of asks) {
        const places = ["", ...tree.all.flatMap(placesAfter)];
        ask(tree, places[at % places.length] ?? "", (at % 3) + 1);
      }
      const shuffled = tree.all
        .map((turn) => ({ turn, key: order.next().value as number }))
        .toSorted((a, b) => a.key - b.key)
        .map(({ turn }) => turn);
      const copy = new TurnTree();
      expect(copy.addAll(shuffled, tree.shown)).toEqual([]);
      expect(copy.path).toEqual(tree.path);
      for (const turn of tree.all) expect(copy.versionsOf(turn)).toEqual(tree.versionsOf(turn));
    }),
  );
});

test("an earlier version comes back with its own continuation", () => {
  const tree = new TurnTree();
  const [first, answered] = ask(tree, "");
  const [second] = ask(tree, tree.end);
  const [edited] = ask(tree, "");
  expect(tree.path.map(({ id }) => id)).not.toContain(first.id);
  expect(tree.versionsOf(edited)).toEqual([first.id, edited.id]);
  tree.show(first.id);
  expect(tree.path.map(({ id }) => id).slice(0, 3)).toEqual([first.id, answered.id, second.id]);
  // Of a deleted version, the one before it is shown.
  tree.show(edited.id);
  tree.remove(edited.id);
  expect(tree.path[0]?.id).toBe(first.id);
});

test("turns that follow nothing, or each other in a circle, are not added", () => {
  const tree = new TurnTree();
  const start = answer("", 2);
  const turns = [
    start,
    { ...question("b"), id: "a" },
    { ...question("a"), id: "b" },
    question("nowhere"),
    question(start.id),
    question(`${start.id}/2`),
    question(`${start.id}/1`),
  ];
  expect(tree.addAll(turns)).toEqual(turns.slice(1, 6));
  expect(tree.all).toEqual([start, turns[6]]);
});
