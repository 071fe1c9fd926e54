import fc from "fast-check";
import { expect, it } from "vitest";
import { Gbnf } from "../../../../test/support/gbnf.ts";
import { llamaGrammar } from "../../../../test/support/llama-grammar.ts";
import { Grammar } from "./grammar.ts";
import { textChoice } from "./text-choice.ts";

function gbnfOf(texts: readonly string[]): string {
  const grammar = new Grammar();
  return grammar.toGbnf(textChoice(grammar, texts));
}

it("takes the texts and no other, whatever they have in common", () => {
  const letters = fc.array(fc.constantFrom("a", "b", "é", "😀", "😁", '"'), { maxLength: 6 });
  const many = fc.array(
    letters.map((text) => text.join("")),
    { minLength: 40, maxLength: 120 },
  );
  fc.assert(
    fc.property(many, letters, (texts, other) => {
      const grammar = new Gbnf(gbnfOf(texts));
      for (const text of texts) expect(grammar.accepts(text), text).toBe(true);
      const absent = other.join("");
      expect(grammar.accepts(absent), absent).toBe(texts.includes(absent));
    }),
  );
});

it("writes beginnings and endings once, in rules that do not nest without bound", () => {
  const numbered = Array.from({ length: 10_000 }, (_, i) => `item-${String(i).padStart(4, "0")}.json`);
  expect(gbnfOf(numbered).length).toBeLessThan(300);
  const growing = gbnfOf(Array.from({ length: 1500 }, (_, i) => "a".repeat(i + 1)));
  expect(Math.max(...[...growing.matchAll(/\(+/g)].map(([found]) => found.length))).toBeLessThan(20);
});

it("is taken by llama.cpp", async () => {
  const texts = Array.from({ length: 500 }, (_, i) => `${i * 7919}-${i % 13 === 0 ? "😀" : "x"}`);
  const grammar = await llamaGrammar(gbnfOf(texts));
  for (const text of texts.slice(0, 20)) expect(grammar.accepts(text), text).toBe(true);
  for (const text of ["", "0", "0-x", "7919-😀", `${texts[1]}x`]) expect(grammar.accepts(text), text).toBe(false);
});
