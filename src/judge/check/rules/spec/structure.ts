import type * as z from "zod";
import { notShown, type Rules, type SchemaViolation, type Violation } from "../rule.ts";
import { schemaViolations } from "./validate.ts";

/** An object of the wire that rules describe. */
export interface Structure {
  readonly schema: z.ZodType;
  /** The ids of the rules about single members, by path: `choices[].delta.content`. */
  readonly members: Readonly<Record<string, string>>;
  /** The id of the rule about all other members. */
  readonly rest?: string;
}

/** A value in an answer, and the place of a violation. */
export interface StructuredValue {
  readonly structure: Structure;
  readonly value: unknown;
  at(violation: SchemaViolation): Violation;
}

/**
 * Returns the rules that schemas contain: a member is missing, has another type, or a value that the schema does not list. An answer shows
 * the rules of the structures that it has.
 */
export function structuralRules<View extends object>(
  structures: readonly Structure[],
  valuesOf: (view: View) => readonly StructuredValue[],
): Rules<View> {
  const judged = new WeakMap<View, ReadonlyMap<string, readonly Violation[]>>();
  const judge = (view: View) => {
    let found = judged.get(view);
    if (!found) judged.set(view, (found = violationsByRule(valuesOf(view))));
    return found;
  };
  return Object.fromEntries(
    structures.flatMap(idsOf).map((id) => [
      id,
      function* (view: View) {
        const violations = judge(view).get(id);
        if (!violations) return notShown;
        yield* violations;
      },
    ]),
  );
}

function idsOf({ members, rest }: Structure): readonly string[] {
  return [...Object.values(members), ...(rest === undefined ? [] : [rest])];
}

function violationsByRule(values: readonly StructuredValue[]): ReadonlyMap<string, readonly Violation[]> {
  const found = new Map<string, Violation[]>();
  for (const structure of new Set(values.map((value) => value.structure)))
    for (const id of idsOf(structure)) found.set(id, []);
  for (const { structure, value, at } of values) {
    for (const violation of schemaViolations(structure.schema, value)) {
      const own = structure.members[violation.path.replaceAll(/\[\d+\]/g, "[]")];
      const { member, ...place } = at(violation);
      // A rule about the member may report the same mistake as the general rule.
      if (own !== undefined) found.get(own)?.push(place);
      else if (structure.rest !== undefined)
        found.get(structure.rest)?.push(member === undefined ? place : { ...place, member });
    }
  }
  return found;
}
