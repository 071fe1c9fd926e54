import type { CodePoints } from "./code-points.ts";

/**
 * A position in a rule of a grammar, as in llama.cpp: the element that is next. `following` returns the position after it in the same
 * alternative.
 */
export type RulePosition = CharsPosition | TextPosition | ReferencePosition | TokenPosition;

/** One character of a set. */
interface CharsPosition {
  readonly kind: "chars";
  readonly set: CodePoints;
  readonly next: RulePosition | null;
}

/** A text, from one of its characters on. */
interface TextPosition {
  readonly kind: "text";
  readonly text: string;
  /** In UTF-16 code units. */
  readonly at: number;
  readonly next: RulePosition | null;
  /** The position after this character, once it was computed. */
  cachedNext?: RulePosition;
}

interface ReferencePosition {
  readonly kind: "rule";
  readonly rule: GbnfRule;
  readonly next: RulePosition | null;
}

/** One token of the model, named by the text between `<` and `>`, or any other token. */
export interface TokenPosition {
  readonly kind: "token";
  readonly name: string;
  readonly negated: boolean;
  readonly next: RulePosition | null;
}

/** The first positions of a rule's alternatives; null for an empty alternative. */
export interface GbnfRule {
  readonly name: string;
  options: readonly (RulePosition | null)[];
}

/** An element of an alternative. */
export type RuleItem =
  | { readonly kind: "chars"; readonly set: CodePoints }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "rule"; readonly rule: GbnfRule }
  | { readonly kind: "token"; readonly name: string; readonly negated: boolean };

/** The first position of an alternative; null if it is empty. */
export function linked(items: readonly RuleItem[]): RulePosition | null {
  return items.reduceRight<RulePosition | null>(
    (next, item) => (item.kind === "text" ? { ...item, at: 0, next } : { ...item, next }),
    null,
  );
}

/** The position after one character, rule or token; null at the end of the alternative. Always the same object for the same position. */
export function following(place: RulePosition): RulePosition | null {
  if (place.kind !== "text") return place.next;
  const at = place.at + (valueAt(place) > 0xffff ? 2 : 1);
  if (at === place.text.length) return place.next;
  return (place.cachedNext ??= { kind: "text", text: place.text, at, next: place.next });
}

function valueAt({ text, at }: TextPosition): number {
  return text.codePointAt(at) ?? 0;
}
