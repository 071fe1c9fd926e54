import fc from "fast-check";

/** Expressions over few characters, so that many texts have many ways; rules refer to later ones only. */
function expressions(rules: readonly string[], maxDepth: number): fc.Arbitrary<string> {
  const times = fc.constantFrom("", "", "", "?", "*", "+", "{2}", "{0,3}", "{1,}");
  const leaf = fc.constantFrom(
    '"a"',
    '"b"',
    '"ab"',
    "[ab]",
    "[^a]",
    ".",
    '""',
    "[a-c]",
    ...rules.map((name) => ` ${name} `),
  );
  return fc.letrec<{ options: string; part: string; items: string }>((tie) => ({
    part: fc.oneof(
      { maxDepth },
      leaf,
      tie("options").map((inner) => `(${inner})`),
    ),
    items: fc
      .array(fc.tuple(tie("part"), times), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.map(([part, suffix]) => (part === '""' ? part : part + suffix)).join(" ")),
    options: fc.array(tie("items"), { minLength: 1, maxLength: 3 }).map((options) => options.join(" | ")),
  })).options;
}

/** Small grammars in GBNF. */
export function grammarTexts(maxDepth: number): fc.Arbitrary<string> {
  return fc
    .tuple(expressions(["x", "y"], maxDepth), expressions(["y"], maxDepth), expressions([], maxDepth))
    .map(([root, x, y]) => `root ::= ${root}\nx ::= ${x}\ny ::= ${y}\n`);
}
