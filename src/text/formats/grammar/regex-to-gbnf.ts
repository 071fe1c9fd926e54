import { type CodePoints, everyCodePoint, oneCodePoint, union } from "./code-points.ts";
import { chars, choice, empty, type GrammarExpression, isEmpty, isNever, repeat, sequence } from "./expression.ts";
import { factoredChoice } from "./text-choice.ts";
import { parseRegex, RegexError, type RegexNode } from "./regex-syntax.ts";

/**
 * The texts that a pattern matches: as a whole, or (JSON Schema's `pattern`) anywhere in them, except where `^` and `$` require otherwise.
 * The expression contains no references to rules.
 *
 * @throws {RegexError} also if `^` or `$` is at a position where text may precede or follow.
 */
export function regexExpression(pattern: string, match: "whole" | "anywhere"): GrammarExpression {
  const around = match === "whole" ? empty : repeat(chars(everyCodePoint), 0, null);
  return choice(
    ...translate(parseRegex(pattern)).map(({ body, start, end }) =>
      sequence(start ? empty : around, body, end ? empty : around),
    ),
  );
}

/** One alternative, and whether it must begin at the start, or end at the end, of the text. */
interface Variant {
  readonly body: GrammarExpression;
  readonly start: boolean;
  readonly end: boolean;
}

function translate(node: RegexNode): readonly Variant[] {
  switch (node.kind) {
    case "chars":
      return [{ body: chars(node.set), start: false, end: false }];
    case "start":
      return [{ body: empty, start: true, end: false }];
    case "end":
      return [{ body: empty, start: false, end: true }];
    case "choice":
      return joined(node.options.flatMap(translate));
    case "sequence":
      return joined(node.items.map(translate).reduce(append, [{ body: empty, start: false, end: false }]));
    case "repeat":
      return repeated(node);
  }
}

function append(before: readonly Variant[], after: readonly Variant[]): readonly Variant[] {
  return before.flatMap((a) =>
    after.map((b) => {
      if (b.start && !isEmpty(a.body)) throw new RegexError("^ after other text is not supported");
      if (a.end && !isEmpty(b.body)) throw new RegexError("$ before other text is not supported");
      return { body: sequence(a.body, b.body), start: a.start || b.start, end: a.end || b.end };
    }),
  );
}

function repeated({ item, min, max }: RegexNode & { kind: "repeat" }): readonly Variant[] {
  const variants = translate(item);
  const anchored = variants.some(({ start, end }) => start || end);
  if (!anchored) {
    return [{ body: repeat(choice(...variants.map(({ body }) => body)), min, max), start: false, end: false }];
  }
  if (max !== 1) throw new RegexError("an anchor cannot be repeated");
  return min === 1 ? variants : [...variants, { body: empty, start: false, end: false }];
}

/** Combines alternatives with the same anchors. */
function joined(variants: readonly Variant[]): readonly Variant[] {
  const groups = new Map<string, Variant[]>();
  for (const variant of variants) {
    if (isNever(variant.body)) continue;
    const key = `${variant.start} ${variant.end}`;
    const group = groups.get(key);
    if (group) group.push(variant);
    else groups.set(key, [variant]);
  }
  return [...groups.values()].map((group) => ({
    body: factoredChoice(singlesTogether(group.map(({ body }) => body))),
    start: group[0]?.start ?? false,
    end: group[0]?.end ?? false,
  }));
}

/** Combines alternatives of one character each into one set: a character in two of them (`\w|\d`) would have two parses. */
function singlesTogether(options: readonly GrammarExpression[]): readonly GrammarExpression[] {
  const sets = options.map(singleCharacter);
  const first = sets.findIndex((set) => set !== null);
  if (sets.filter((set) => set !== null).length < 2) return options;
  const all = chars(union(...sets.filter((set) => set !== null)));
  return options.flatMap((option, i) => (i === first ? [all] : sets[i] === null ? [option] : []));
}

function singleCharacter(option: GrammarExpression): CodePoints | null {
  if (option.kind === "chars") return option.set;
  return option.kind === "text" && [...option.text].length === 1 ? oneCodePoint(option.text) : null;
}
