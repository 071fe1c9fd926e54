import { schemaErrors } from "./schema-errors.ts";
import type { SchemaError } from "./schema-errors.ts";

export interface SpecOffence {
  /** Where in the JSON, as a client would write it: `choices[0].delta.content`. */
  readonly path: string;
  readonly found: string;
  /** The last name of the path, to find the place in the text; "" for the whole. */
  readonly member: string;
}

/** The first thing in which a value leaves its schema; undefined when it does not. */
export function specOffence(schema: object, value: unknown): SpecOffence | undefined {
  const error = mostTelling(schemaErrors(schema, value));
  if (!error) return undefined;
  const { missing } = error;
  const path = [...error.path, ...(missing === undefined ? [] : [missing])];
  return {
    path: path.reduce(
      (text, name) => (/^\d+$/.test(name) ? `${text}[${name}]` : text === "" ? name : `${text}.${name}`),
      "",
    ),
    found: missing === undefined ? error.message : "is missing",
    member: path.findLast((name) => !/^\d+$/.test(name)) ?? "",
  };
}

/**
 * Of a union every branch reports its own errors. Meant was the branch whose constants fit (`type: "function"`), and of those the one
 * that got deepest into the value. An error of the union itself ("must match a schema in anyOf") says least and comes last.
 */
function mostTelling(errors: readonly SchemaError[]): SchemaError | undefined {
  const notMeant = new Set(errors.filter(({ keyword }) => keyword === "const").map(branchOf));
  const rank = (error: SchemaError): number => {
    if (error.keyword === "anyOf") return 0;
    const branch = branchOf(error);
    if (branch === "") return 3;
    return notMeant.has(branch) || error.message === "must be null" ? 1 : 2;
  };
  return errors.toSorted((a, b) => rank(b) - rank(a) || b.path.length - a.path.length)[0];
}

/** The union's branch that an error stands in; "" for none. */
function branchOf({ schemaPath }: SchemaError): string {
  return /^.*\/anyOf\/\d+/.exec(`/${schemaPath.join("/")}`)?.[0] ?? "";
}
