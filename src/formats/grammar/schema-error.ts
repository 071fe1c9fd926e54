/** A schema that no grammar can be made for, because it is malformed or nothing satisfies it. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  /** Where in the schema, in the notation of OpenAI's `param`: `response_format.json_schema.schema.properties.a`. */
  readonly path: string;

  constructor(path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.path = path;
  }
}

/** An assertion that the grammar does not enforce: a text of the grammar may fail it. */
export interface Gap {
  readonly path: string;
  readonly keyword: string;
}
