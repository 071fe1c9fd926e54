import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MathPart, readFormula } from "./formula.ts";

/** All elements of a formula, with their attributes and styles, in one line each. */
function linesOf(part: MathPart): string[] {
  if (typeof part === "string") return [];
  const { name, attributes, style, children } = part;
  return [`${name} ${JSON.stringify(attributes)} ${JSON.stringify(style)}`, ...children.flatMap(linesOf)];
}

function textOf(part: MathPart | undefined): string {
  if (part === undefined) return "";
  return typeof part === "string" ? part : part.children.map(textOf).join("");
}

describe("a formula", () => {
  test.each([
    ["x_1^2", "x12", "msubsup"],
    ["\\frac{a}{b}", "ab", "mfrac"],
    ["\\sqrt{2}", "2", "msqrt"],
    ["\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "(1234)", "mtable"],
    ["\\begin{aligned} x &= y \\\\ &= z \\end{aligned}", "x=y=z", "mtable"],
    ["f(x) = \\begin{cases} 1 & x > 0 \\\\ 0 & \\text{otherwise} \\end{cases}", "f(x)={1x>00otherwise", "mtable"],
    ["\\mathbb{R}", "ℝ", "mi"],
    ["\\ce{H2O}", "H2O", "msub"],
    ["\\boxed{42}", "42", "mrow"],
    ["\\int_0^\\infty e^{-x}\\,dx", "∫0∞e−xdx", "msubsup"],
  ])("%s", (tex, text, element) => {
    const formula = readFormula(tex, true);
    expect(textOf(formula).replaceAll(/[\s\u2061\u200B]/g, "")).toBe(text);
    expect(formula && linesOf(formula).map((line) => line.split(" ")[0])).toContain(element);
    expect(formula?.name).toBe("math");
  });

  test.each([
    "\\frac{a}{",
    "\\nosuchcommand",
    "\\href{javascript:alert(1)}{x}",
    "\\url{https://evil.example}",
    "\\includegraphics{https://evil.example/x.png}",
    "\\class{x}{y}",
    "\\def\\a{xx}\\a",
    "\\newcommand{\\a}{xx}\\a",
    "\\gdef\\a{\\a\\a}\\a",
    "x".repeat(4001),
    "\\sqrt{".repeat(100) + "x" + "}".repeat(100),
  ])("is shown as it was written where it cannot be read, or must not be: %.40s", (tex) => {
    expect(readFormula(tex, true)).toBeUndefined();
  });

  /** What LaTeX may say, whole commands more often than single letters. */
  const latex = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          "\\frac",
          "\\sqrt",
          "{",
          "}",
          "^",
          "_",
          "&",
          "\\\\",
          "\\left(",
          "\\right)",
          "\\text{",
          "\\ce{",
          "x",
          "\\color{red}",
        ),
        fc.constantFrom(
          "\\colorbox{blue}{",
          "\\begin{matrix}",
          "\\end{matrix}",
          "\\kern999em",
          "\\rule{99em}{9em}",
          "\\tag{1}",
          "\\label{a}",
        ),
        fc.constantFrom(
          "\\href{javascript:1}{x}",
          "\\style{color:red}{x}",
          "\\id{a}{x}",
          "\\data{a}{x}",
          "\\cancel{x}",
          "\\raisebox{9em}{x}",
        ),
        fc.string({ maxLength: 6 }),
      ),
      { maxLength: 40 },
    )
    .map((parts) => parts.join(""));

  // Formulas come from a model, which quotes what it has read on the web.
  test("has no address, no script, no id and no style but lengths and colours, whatever is written", () => {
    fc.assert(
      fc.property(latex, fc.boolean(), (tex, display) => {
        const formula = readFormula(tex, display);
        for (const line of formula ? linesOf(formula) : []) {
          expect(line).toMatch(/^[a-z]+ /);
          expect(line).not.toMatch(/href|src|url|javascript|"id"|"on|[;():]\s*[a-z]+\(/i);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("takes time in proportion to its length, however it is nested", () => {
    const shapes = [
      "{",
      "x^{",
      "\\sqrt{",
      "\\frac{",
      "\\left(",
      "\\text{$",
      "\\ce{",
      "\\hat{",
      "&",
      "\\\\",
      "\\begin{matrix}",
      "'",
      "\\TeX ",
    ];
    const cost = (length: number): number => {
      const before = process.cpuUsage();
      for (const shape of shapes)
        for (let time = 0; time < 2; time++) readFormula(shape.repeat(length / shape.length), true);
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    cost(900);
    expect(cost(3600) / cost(900)).toBeLessThan(12);
  });
});
