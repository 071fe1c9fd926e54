import { expect, test } from "vitest";
import { clientGrammar } from "./constraint-request.ts";

function nested(depth: number): string {
  return `root ::= ${"(".repeat(depth)}"a"${")".repeat(depth)}`;
}

// Twenty thousand parentheses caused a stack overflow in llama.cpp, which ended the model's process.
test("parentheses that are nested too deeply are rejected", () => {
  expect(clientGrammar(nested(200), "grammar")).toMatchObject({ type: "gbnf", path: "grammar" });
  expect(() => clientGrammar(nested(201), "grammar")).toThrow("nested more than 200 deep");
  expect(() => clientGrammar(nested(20_000), "guided_grammar")).toThrow("Invalid grammar at 'guided_grammar'");
});

test("parentheses in strings, classes and comments, and successive ones, are not nested", () => {
  const many = "(".repeat(300);
  const gbnf = `# ${many}\nroot ::= "${many}\\"${many}" [${many}\\]${many}] # ${many}\nb ::= ${'("a")'.repeat(300)}`;
  expect(clientGrammar(gbnf, "grammar")).toMatchObject({ gbnf });
});

// A hundred thousand alternatives blocked all answers of the model for 35 seconds.
test("a grammar of more than 64 KiB is rejected, with its length", () => {
  const gbnf = `root ::= ${'"a" | '.repeat(20_000)}"a"`;
  expect(() => clientGrammar(gbnf, "grammar")).toThrow(`it has ${gbnf.length} characters, and 65536 is the limit`);
});
