import type * as z from "zod";
import { shown } from "../place.ts";
import type { SchemaViolation } from "../rule.ts";

type Issue = z.core.$ZodIssue;

/** Returns the differences between a value and its schema, the innermost first. */
export function schemaViolations(schema: z.ZodType, value: unknown): readonly SchemaViolation[] {
  const issues = schema.safeParse(value).error?.issues ?? [];
  const places = issues.map((issue) => innermost(issue, [])).toSorted((a, b) => b.path.length - a.path.length);
  return places.map(({ path, issue }) => {
    const [parent, there] = [valueAt(value, path.slice(0, -1)), valueAt(value, path)];
    const name = path.at(-1);
    const isMissing =
      issue.code === "custom" ? there === undefined : name !== undefined && !Object.hasOwn(parent as object, name);
    const text = path.reduce<string>(
      (before, key) =>
        typeof key === "number" ? `${before}[${key}]` : before === "" ? String(key) : `${before}.${String(key)}`,
      "",
    );
    return {
      path: text === "" ? "the value" : text,
      found: isMissing ? "is missing" : `is ${shown(there)}, must be ${demand(issue)}`,
      keys: path,
      member: String(path.findLast((key) => typeof key === "string") ?? ""),
    };
  });
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);
}

interface Place {
  readonly issue: Issue;
  readonly path: readonly PropertyKey[];
}

/**
 * Returns the issue to report. An issue of a union contains the issues of each alternative; the relevant alternative is the one whose
 * discriminator matches, or the one with the longest path to its first issue if several match.
 */
function innermost(issue: Issue, parent: readonly PropertyKey[]): Place {
  const path = [...parent, ...issue.path];
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return { issue, path };
  const alternatives = issue.errors.flatMap(([first]) => (first === undefined ? [] : [innermost(first, path)]));
  const depth = (place: Place): number => (isOfType(place.issue) ? -1 : place.path.length);
  return alternatives.toSorted((a, b) => depth(b) - depth(a))[0] ?? { issue, path };
}

/** Returns whether an alternative has another discriminator than the value. */
function isOfType(issue: Issue): boolean {
  return issue.code === "invalid_format" || (issue.code === "invalid_union" && issue.errors.length === 0);
}

function demand(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected === "int" ? "integer" : issue.expected === "record" ? "object" : issue.expected;
    case "invalid_value":
      return issue.values.length === 1
        ? JSON.stringify(issue.values[0])
        : `one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_small":
      return issue.origin === "number" || issue.origin === "int" ? `>= ${issue.minimum}` : "filled";
    case "too_big":
      return `<= ${issue.maximum}`;
    case "invalid_union":
      return "of a known type";
    default:
      return issue.message;
  }
}
