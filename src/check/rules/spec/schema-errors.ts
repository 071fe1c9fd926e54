import { isObject } from "../../../generation/json.ts";

/** Where a value leaves its schema. */
export interface SchemaError {
  readonly keyword: string;
  /** The names and places that lead to the value. */
  readonly path: readonly string[];
  /** The names that lead to the keyword, within the schema. */
  readonly schemaPath: readonly string[];
  readonly message: string;
  /** Of `required`: which member is missing. */
  readonly missing?: string;
}

/**
 * Every place where a value leaves a schema, for the keywords that our schemas use: `type`, `const`, `enum`, `minimum`, `maximum`, `pattern`,
 * `required`, `properties`, `additionalProperties`, `items`, `not`, `anyOf`, `allOf`, `if` with `else`. Others are refused (TypeError), never
 * passed over. Nothing is compiled: a page whose Content-Security-Policy forbids to make code at run time judges as well.
 *
 * Errors and their order are those of ajv 8 with `allErrors`: a test compares them.
 */
export function schemaErrors(schema: object, value: unknown): SchemaError[] {
  const errors: SchemaError[] = [];
  new Visit(errors, [], []).visit(schema as Schema, value);
  return errors;
}

type Schema = Readonly<Record<string, unknown>>;

/** The type whose values a keyword is about; null: any. A type that is wrong is told in place of the first of its keywords. */
const typeOfKeyword: Readonly<Record<string, string | null>> = {
  maximum: "number",
  minimum: "number",
  pattern: "string",
  const: null,
  enum: null,
  not: null,
  anyOf: null,
  allOf: null,
  if: null,
  items: "array",
  required: "object",
  additionalProperties: "object",
  properties: "object",
};
/** In the order in which they are applied. */
const keywords = Object.keys(typeOfKeyword);
const known = new Set([...keywords, "type", "else"]);

class Visit {
  readonly #errors: SchemaError[];
  readonly #path: readonly string[];
  readonly #schemaPath: readonly string[];

  constructor(errors: SchemaError[], path: readonly string[], schemaPath: readonly string[]) {
    this.#errors = errors;
    this.#path = path;
    this.#schemaPath = schemaPath;
  }

  visit(schema: Schema, value: unknown): void {
    for (const keyword in schema)
      if (!known.has(keyword)) throw new TypeError(`The keyword ${keyword} is not known here.`);
    const { type } = schema;
    const fits = type === undefined || [type].flat().some((one) => isOfType(value, String(one)));
    const waitsFor =
      typeof type === "string"
        ? keywords.find((keyword) => keyword in schema && typeOfKeyword[keyword] === type)
        : undefined;
    if (!fits && waitsFor === undefined) this.#tellType(type);
    for (const keyword of keywords) {
      if (!(keyword in schema)) continue;
      const about = typeOfKeyword[keyword];
      if (about === null || isOfType(value, about ?? "")) this.#apply(keyword, schema, value);
      else if (keyword === waitsFor) this.#tellType(type);
    }
  }

  #tellType(type: unknown): void {
    this.#tell("type", `must be ${[type].flat().join(",")}`);
  }

  #apply(keyword: string, schema: Schema, value: unknown): void {
    const rule = schema[keyword];
    switch (keyword) {
      case "maximum":
        if (!((value as number) <= (rule as number))) this.#tell(keyword, `must be <= ${rule}`);
        break;
      case "minimum":
        if (!((value as number) >= (rule as number))) this.#tell(keyword, `must be >= ${rule}`);
        break;
      case "pattern":
        if (!new RegExp(rule as string, "u").test(value as string)) this.#tell(keyword, `must match pattern "${rule}"`);
        break;
      case "const":
        if (value !== rule) this.#tell(keyword, `must be ${JSON.stringify(rule)}`);
        break;
      case "enum":
        if (!(rule as readonly unknown[]).includes(value))
          this.#tell(
            keyword,
            `must be one of ${(rule as readonly unknown[]).map((one) => JSON.stringify(one)).join(", ")}`,
          );
        break;
      case "not":
        if (schemaErrors(rule as Schema, value).length === 0) this.#tell(keyword, "must NOT be valid");
        break;
      case "anyOf":
        this.#applyUnion(rule as readonly Schema[], value);
        break;
      case "allOf":
        (rule as readonly Schema[]).forEach((one, at) => this.#below([], ["allOf", String(at)]).visit(one, value));
        break;
      case "if": {
        const other = schema["else"] as Schema | undefined;
        if (!other || schemaErrors(rule as Schema, value).length === 0) break;
        const before = this.#errors.length;
        this.#below([], ["else"]).visit(other, value);
        if (this.#errors.length > before) this.#tell(keyword, 'must match "else" schema');
        break;
      }
      case "items":
        (value as readonly unknown[]).forEach((item, at) =>
          this.#below([String(at)], ["items"]).visit(rule as Schema, item),
        );
        break;
      default:
        this.#applyMembers(keyword, schema, value as Schema);
    }
  }

  #applyUnion(branches: readonly Schema[], value: unknown): void {
    const before = this.#errors.length;
    for (const [at, branch] of branches.entries()) {
      const begun = this.#errors.length;
      this.#below([], ["anyOf", String(at)]).visit(branch, value);
      if (this.#errors.length > begun) continue;
      this.#errors.length = before;
      return;
    }
    this.#tell("anyOf", "must match a schema in anyOf");
  }

  #applyMembers(keyword: string, schema: Schema, value: Schema): void {
    const { required = [], properties = {} } = schema as {
      readonly required?: readonly string[];
      readonly properties?: Readonly<Record<string, Schema>>;
    };
    if (keyword === "required") {
      for (const missing of required)
        if (value[missing] === undefined) this.#tell(keyword, `must have required property '${missing}'`, missing);
    } else if (keyword === "properties") {
      for (const [name, one] of Object.entries(properties))
        if (value[name] !== undefined) this.#below([name], ["properties", name]).visit(one, value[name]);
    } else {
      for (const name in value)
        if (!(name in properties)) this.#below([name], [keyword]).visit(schema[keyword] as Schema, value[name]);
    }
  }

  #below(names: readonly string[], schemaNames: readonly string[]): Visit {
    return new Visit(this.#errors, [...this.#path, ...names], [...this.#schemaPath, ...schemaNames]);
  }

  #tell(keyword: string, message: string, missing?: string): void {
    const schemaPath = [...this.#schemaPath, keyword];
    this.#errors.push({ keyword, path: this.#path, schemaPath, message, ...(missing !== undefined && { missing }) });
  }
}

/** Source of the words: JSON Schema, "type". */
function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    default:
      return typeof value === type;
  }
}
