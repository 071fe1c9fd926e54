import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";

export interface SpecOffence {
  /** Where in the JSON, as a client would write it: `choices[0].delta.content`. */
  readonly path: string;
  readonly found: string;
  /** The last name of the path, to find the place in the text; "" for the whole. */
  readonly member: string;
}

const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: false });
const compiled = new WeakMap<object, ValidateFunction>();

/** The first thing in which a value leaves its schema; undefined when it does not. */
export function specOffence(schema: object, value: unknown): SpecOffence | undefined {
  let validate = compiled.get(schema);
  if (!validate) compiled.set(schema, (validate = ajv.compile(schema)));
  if (validate(value)) return undefined;
  const error = mostTelling(validate.errors ?? []);
  if (!error) return undefined;
  const names = error.instancePath
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const missing = error.keyword === "required" ? String(error.params.missingProperty) : undefined;
  const path = [...names, ...(missing === undefined ? [] : [missing])];
  return {
    path: path.reduce(
      (text, name) => (/^\d+$/.test(name) ? `${text}[${name}]` : text === "" ? name : `${text}.${name}`),
      "",
    ),
    found: missing === undefined ? messageOf(error) : "is missing",
    member: path.findLast((name) => !/^\d+$/.test(name)) ?? "",
  };
}

/**
 * Of a union every branch reports its own errors. Meant was the branch whose constants fit (`type: "function"`), and of those the one
 * that got deepest into the value. An error of the union itself ("must match a schema in anyOf") says least and comes last.
 */
function mostTelling(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const notMeant = new Set(errors.filter(({ keyword }) => keyword === "const").map(branchOf));
  const rank = (error: ErrorObject): number => {
    if (error.keyword === "anyOf") return 0;
    const branch = branchOf(error);
    if (branch === "") return 3;
    return notMeant.has(branch) || isNullBranch(error) ? 1 : 2;
  };
  const depth = (error: ErrorObject): number => error.instancePath.split("/").length;
  return errors.toSorted((a, b) => rank(b) - rank(a) || depth(b) - depth(a))[0];
}

/** The union's branch that an error stands in; "" for none. */
function branchOf({ schemaPath }: ErrorObject): string {
  return /^.*\/anyOf\/\d+/.exec(schemaPath)?.[0] ?? "";
}

/** "must be null", of a value that may be null and is not. */
function isNullBranch({ keyword, params }: ErrorObject): boolean {
  return keyword === "type" && params.type === "null";
}

function messageOf(error: ErrorObject): string {
  if (error.keyword === "const") return `must be ${JSON.stringify(error.params.allowedValue)}`;
  if (error.keyword === "enum")
    return `must be one of ${(error.params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(", ")}`;
  return error.message ?? "is wrong";
}
