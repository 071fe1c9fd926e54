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
