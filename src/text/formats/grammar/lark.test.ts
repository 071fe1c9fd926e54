import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Gbnf } from "../../../../test/support/gbnf.ts";
import { llamaGrammar } from "../../../../test/support/llama-grammar.ts";
import type { Tool } from "../../../wire/core/message.ts";
import { formatNamed } from "../known.ts";
import { callGrammar } from "./call-grammar.ts";
import { GrammarError } from "./grammar.ts";
import { LarkError } from "./grammar-errors.ts";
import { larkToGbnf } from "./lark-to-expression.ts";

function grammarOf(definition: string): Gbnf {
  return new Gbnf(larkToGbnf(definition));
}

/** Which of these texts the grammar has. */
function accepted(definition: string, ...texts: string[]): string[] {
  const grammar = grammarOf(definition);
  return texts.filter((text) => grammar.accepts(text));
}

/** As Codex sends it for its custom tool `apply_patch` (https://github.com/openai/codex, Apache 2.0). */
const applyPatch = String.raw`start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
`;

describe("a Lark grammar", () => {
  test("of Codex's patches", () => {
    const patch = (...lines: string[]): string => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
    const good = [
      patch("*** Add File: a.ts", "+one", "+"),
      patch("*** Delete File: b"),
      patch("*** Update File: c", "*** Move to: d", "@@ function f", " same", "-old", "+new", "*** End of File"),
      `${patch("*** Update File: c")}\n`,
    ];
    const bad = [
      "",
      patch(),
      patch("*** Add File: a"),
      patch("*** Update File: c", "neither"),
      `${good[0]}x`,
      "*** Begin Patch",
    ];
    expect(accepted(applyPatch, ...good, ...bad)).toEqual(good);
  });

  test("of Codex's patches is read by llama.cpp, as it is and in a call", async () => {
    const patch = '*** Begin Patch\n*** Update File: a\n@@\n-x "q"\n+y\t<b>\n*** End Patch\n';
    const plain = await llamaGrammar(larkToGbnf(applyPatch));
    expect([patch, "*** Begin Patch\n*** End Patch"].map((text) => plain.accepts(text))).toEqual([true, false]);
    const tool: Tool = { name: "patch", kind: "custom", inputGrammar: { syntax: "lark", definition: applyPatch } };
    const format = formatNamed("hermes");
    if (!format) throw new Error("there is no such format");
    const { gbnf, exact } = callGrammar(format, [tool], { mode: "forced", parallel: false });
    const calls = await llamaGrammar(gbnf);
    const call = (input: string): string =>
      `<tool_call>\n${JSON.stringify({ name: "patch", arguments: { input } }).replaceAll(/":(?=[{"])|,(?=")/g, "$& ")}\n</tool_call>`;
    expect(exact).toBe(true);
    expect([patch, "nonsense"].map((input) => calls.accepts(call(input)))).toEqual([true, false]);
  });

  test("of terminals, groups, options, repetitions and ranges", () => {
    const grammar = `
      // what a comment says
      start: item ("," item)~1..2 [END]   # as Lark has them, too
      ?item: WORD | NUMBER
           | "(" item ")" -> nested
      WORD.2: "a".."c"+
      NUMBER: /[0-9]{2}/
      END: "END"i
    `;
    const good = ["a,b", "abc,12,c", "(a),((12))", "a,bEnd", "a,bEND"];
    expect(accepted(grammar, ...good, "a", "a,b,c,a", "d,a", "a,1", "a,(b")).toEqual(good);
  });

  test("that begins with itself", () => {
    const grammar =
      'start: sum\nsum: sum "+" product | sum "-" product | product\nproduct: product "*" INT | INT\n%import common.INT';
    const good = ["1", "1+2", "1+2*3-4", "12*3*4"];
    expect(accepted(grammar, ...good, "", "+1", "1+", "1**2")).toEqual(good);
  });

  test("with ignored terminals between its tokens", () => {
    const grammar =
      'start: "let" NAME "=" INT\n%import common (CNAME, INT)\n%import common.WS_INLINE -> BLANK\nNAME: CNAME\n%ignore BLANK\n%ignore /#[^\\n]*/';
    const good = ["let x=1", "  let   x_1 = 12 ", "letx=1", "let x = 1 # one"];
    expect(accepted(grammar, ...good, "l et x = 1", "let x =\n1")).toEqual(good);
  });

  test.each([
    ["DIGIT", ["0", "9"], ["a", ""]],
    ["SIGNED_NUMBER", ["1", "-1.5", "+2e10", ".5"], ["e", "1.5.2"]],
    ["ESCAPED_STRING", ['""', '"a\\"b"'], ['"', '"a"b"', '"\n"']],
    ["CNAME", ["_a1", "B"], ["1a"]],
    ["NEWLINE", ["\n", "\r\n\n"], ["\r", ""]],
    ["C_COMMENT", ["/**/", "/* a * b\n */"], ["/* */ */", "/*"]],
    ["WS", [" ", "\t\n"], [""]],
  ])("with common.%s", (name, good, bad) => {
    expect(accepted(`start: ${name}\n%import common.${name}`, ...good, ...bad)).toEqual(good);
  });

  test("with regular expressions and their flags", () => {
    expect(accepted("start: /a.b/", "a b", "a\rb", "a\nb")).toEqual(["a b", "a\rb"]);
    expect(accepted("start: /a.b[.]/s", "a\nb.", "a\nbx")).toEqual(["a\nb."]);
    expect(accepted("start: /[ab]c/i", "AC", "bc", "cc")).toEqual(["AC", "bc"]);
    expect(accepted(String.raw`start: /a\/b/ "\x41\u00e9\n"`, "a/bAé\n")).toEqual(["a/bAé\n"]);
  });

  test.each([
    ["", "there is no rule 'start'"],
    ["start: other", "there is no rule 'other'"],
    ["start: WORD", "there is no terminal 'WORD'"],
    ["start: A\nA: B\nB: A", "the terminal 'A' refers to itself"],
    ["start: A\nA: start", "the rule 'start' is used in a terminal"],
    ['start: list{WORD}\nWORD: "a"', "templates (list{…}) are not supported"],
    ["%declare A\nstart: A", "%declare is not supported"],
    ["%import python.NAME\nstart: NAME", '%import of "python" is not supported; only common is'],
    ["%import common.NOTHING\nstart: NOTHING", "common has no terminal 'NOTHING'"],
    ["start: /a(?=b)/", "/a(?=b)/: "],
    ["start: /a/x", "the flag 'x' of /a/ is not supported"],
    ["start: <|tool|>", "special tokens (<…>) are not supported"],
    ['start: a\na: b "x"\nb: a "y" | "z"', "the rule 'a' begins with itself by way of others"],
    ['start: a\na: "x"? a "y" | "z"', "the rule 'a' begins with itself by way of others"],
    ['start: "a" "b', 'unexpected "'],
    ['start: ("a"', "unexpected the end, expected ')'"],
    ['start: "a"\nstart: "b"', "'start' is defined twice"],
    ['start: "b".."a"', 'the range "b".."a" is empty'],
  ])("that cannot be had is refused by name: %j", (definition, message) => {
    expect(() => larkToGbnf(definition)).toThrow(LarkError);
    expect(() => larkToGbnf(definition)).toThrow(message);
  });

  test("that never comes to an end is refused", () => {
    expect(() => larkToGbnf('start: "a" start')).toThrow(GrammarError);
  });

  test("whatever its text is a grammar or an error that says so", () => {
    const part = fc.constantFrom(
      ...'start a A : | ( ) [ ] * + ? ~ 1 2 .. -> , . { } < > % / \\ " \n'.split(" "),
      '"x"',
      "/y/i",
      "\nstart: ",
      "\nA: ",
      "%import common.INT",
      "%ignore ",
      "INT",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
        const definition = `start: ${parts.join(" ")}`;
        try {
          expect(larkToGbnf(definition)).toMatch(/^root ::= /);
        } catch (error) {
          expect(error instanceof LarkError || error instanceof GrammarError).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("makes texts that it accepts", () => {
    const grammar = grammarOf(applyPatch);
    fc.assert(
      fc.property(fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })), (numbers) => {
        const random = (): number => numbers.next().value ?? 0;
        const text = grammar.walk(random);
        expect(text).toMatch(/^\*{3} Begin Patch\n[^]*\*{3} End Patch\n?$/);
        expect(grammar.accepts(text)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});
