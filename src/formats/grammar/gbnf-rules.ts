import type { CodePoints } from "./code-points.ts";

/** A place in a rule of a grammar as llama.cpp holds it: what is next there. What follows in the same alternative says `behind`. */
export type Place = CharsPlace | TextPlace | RulePlace | TokenPlace;

/** One character of a set. */
interface CharsPlace {
  readonly kind: "chars";
  readonly set: CodePoints;
  readonly next: Place | null;
}

/** A text, from one of its characters on. */
interface TextPlace {
  readonly kind: "text";
  readonly text: string;
  /** In UTF-16 units. */
  readonly at: number;
  readonly next: Place | null;
  /** The place behind this character, once somebody has been there. */
  following?: Place;
}

interface RulePlace {
  readonly kind: "rule";
  readonly rule: GbnfRule;
  readonly next: Place | null;
}

/** One token of the model, by what the grammar has between `<` and `>`, or any token but that one. */
export interface TokenPlace {
  readonly kind: "token";
  readonly name: string;
  readonly negated: boolean;
  readonly next: Place | null;
}

/** The beginnings of a rule's alternatives; null: an empty one. */
export interface GbnfRule {
  readonly name: string;
  options: readonly (Place | null)[];
}

/** A part of an alternative. */
export type Item =
  | { readonly kind: "chars"; readonly set: CodePoints }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "rule"; readonly rule: GbnfRule }
  | { readonly kind: "token"; readonly name: string; readonly negated: boolean };

/** The first place of an alternative; null: it is empty. */
export function linked(items: readonly Item[]): Place | null {
  return items.reduceRight<Place | null>(
    (next, item) => (item.kind === "text" ? { ...item, at: 0, next } : { ...item, next }),
    null,
  );
}

/** What comes behind one character, rule or token; null: the end of the alternative. Always the same object for the same place. */
export function behind(place: Place): Place | null {
  if (place.kind !== "text") return place.next;
  const at = place.at + (valueAt(place) > 0xffff ? 2 : 1);
  if (at === place.text.length) return place.next;
  return (place.following ??= { kind: "text", text: place.text, at, next: place.next });
}

function valueAt({ text, at }: TextPlace): number {
  return text.codePointAt(at) ?? 0;
}
