import type * as z from "zod";

export interface SchemaViolation {
  /** The path in the JSON, as a client writes it: `choices[0].delta.content`. */
  readonly path: string;
  readonly found: string;
  /** The names and positions of the path. */
  readonly keys: readonly PropertyKey[];
  /** The last name in the path, or "" for the whole value. */
  readonly member: string;
}

type Issue = z.core.$ZodIssue;

/** Returns the first difference between a value and its schema, or `undefined`. */
export function schemaViolation(schema: z.ZodType, value: unknown): SchemaViolation | undefined {
  const result = schema.safeParse(value);
  if (result.success) return undefined;
  const [first] = result.error.issues
    .map((issue) => innermost(issue, []))
    .toSorted((a, b) => b.path.length - a.path.length);
  if (first === undefined) return undefined;
  const { path, issue } = first;
  const missing = issue.code !== "custom" && isMissing(value, path);
  return {
    path: path.reduce<string>(
      (text, name) =>
        typeof name === "number" ? `${text}[${name}]` : text === "" ? String(name) : `${text}.${String(name)}`,
      "",
    ),
    found: missing ? "is missing" : words(issue),
    keys: path,
    member: String(path.findLast((name) => typeof name === "string") ?? ""),
  };
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

function isMissing(value: unknown, path: readonly PropertyKey[]): boolean {
  const name = path.at(-1);
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((inner, name) => (inner as Record<PropertyKey, unknown>)[name], value);
  return name !== undefined && !Object.hasOwn(parent as object, name);
}

function words(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${issue.expected === "int" ? "integer" : issue.expected === "record" ? "object" : issue.expected}`;
    case "invalid_value":
      return issue.values.length === 1
        ? `must be ${JSON.stringify(issue.values[0])}`
        : `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_small":
      return `must be >= ${issue.minimum}`;
    case "too_big":
      return `must be <= ${issue.maximum}`;
    case "invalid_union":
      return "has an unknown type";
    default:
      return issue.code === "custom" ? issue.message : `has another form: ${issue.message}`;
  }
}
