/** A schema for which there is no grammar, because it is malformed or unsatisfiable. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  /** The path in the schema, in the notation of OpenAI's `param`: `response_format.json_schema.schema.properties.a`. */
  readonly path: string;

  constructor(path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.path = path;
  }
}

/** An assertion that the grammar does not enforce: a text of the grammar may violate it. */
export interface SchemaGap {
  readonly path: string;
  readonly keyword: string;
}

/** A text that is not a valid grammar. */
export class GbnfError extends Error {
  override readonly name = "GbnfError";
}

/** A grammar that cannot be followed within the budget (`GrammarBudget`). */
export class GrammarLoadError extends Error {
  override readonly name = "GrammarLoadError";
}

/** A Lark grammar that is malformed, or uses an unsupported construct, which the message names. */
export class LarkError extends Error {
  override readonly name = "LarkError";
}
