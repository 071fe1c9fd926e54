import fc from "fast-check";

/** A JSON Schema as an object, with values that satisfy it, their properties in its order. */
export interface SchemaSample {
  readonly schema: { readonly [keyword: string]: unknown };
  readonly value: fc.Arbitrary<unknown>;
}

const propertyNames = ["a", "b", "name", "snake_case", "über", "with space", 'quo"te'];
const formats: Readonly<Record<string, fc.Arbitrary<string>>> = {
  date: fc
    .date({ min: new Date(0), max: new Date("2099-12-31"), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10)),
  "date-time": fc
    .date({ min: new Date(0), max: new Date("2099-12-31"), noInvalidDate: true })
    .map((date) => date.toISOString()),
  uuid: fc.uuid(),
  ipv4: fc.ipV4(),
};
const patterns: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "^[A-Z]{2}-[0-9]{1,3}$": fc.stringMatching(/^[A-Z]{2}-[0-9]{1,3}$/),
  "^(on|off)$": fc.constantFrom("on", "off"),
  "^\\w{1,6}\\.(txt|md)$": fc.stringMatching(/^[A-Za-z0-9_]{1,6}\.(txt|md)$/),
};

/**
 * Schemas within what a grammar holds whose values are all short: strings, arrays and numbers have ends, so that even a model that
 * writes noise comes to one. `depth` counts containers.
 */
export function boundedSchema(depth = 3): fc.Arbitrary<SchemaSample> {
  const leaf = fc.oneof(...leaves);
  if (depth === 0) return leaf;
  const inner = boundedSchema(depth - 1);
  return fc.oneof(
    { weight: 3, arbitrary: leaf },
    { weight: 3, arbitrary: objects(inner) },
    arrays(inner),
    tuples(inner),
    unions(inner),
    merged(inner),
    referring(inner),
  );
}

/** The same with an object at its root: what a tool's parameters are. */
export function boundedObjectSchema(depth = 2): fc.Arbitrary<SchemaSample> {
  return objects(boundedSchema(depth));
}

const leaves: readonly fc.Arbitrary<SchemaSample>[] = [
  fc.constant(sample({ type: "boolean" }, fc.boolean())),
  fc.constant(sample({ type: "null" }, fc.constant(null))),
  fc.tuple(fc.nat(4), fc.nat(12)).map(([min, more]) =>
    sample(
      { type: "string", minLength: min, maxLength: min + more },
      fc
        .array(fc.constantFrom("x", "é", "😀", '"', "\\", "\n", "<"), { minLength: min, maxLength: min + more })
        .map((characters) => characters.join("")),
    ),
  ),
  fc.constantFrom(...Object.entries(patterns)).map(([pattern, value]) => sample({ type: "string", pattern }, value)),
  fc.constant(
    sample(
      { type: "string", pattern: "^[a-z]+(-[a-z]+)*$", minLength: 3, maxLength: 8 },
      fc.stringMatching(/^[a-z]{3,4}(-[a-z]{1,3})?$/),
    ),
  ),
  fc.constantFrom(...Object.entries(formats)).map(([format, value]) => sample({ type: "string", format }, value)),
  fc
    .uniqueArray(fc.oneof(fc.string({ maxLength: 6 }), fc.integer(), fc.constant(null), fc.boolean()), {
      minLength: 1,
      maxLength: 5,
    })
    .map((values) => sample({ enum: values }, fc.constantFrom(...values))),
  fc
    .tuple(fc.integer({ min: -5000, max: 5000 }), fc.nat(20_000))
    .map(([min, more]) =>
      sample({ type: "integer", minimum: min, maximum: min + more }, fc.integer({ min, max: min + more })),
    ),
  fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: -50, max: 50 }), fc.nat(200)).map(([step, from, more]) =>
    sample(
      { type: "integer", multipleOf: step, minimum: from * step - 1, exclusiveMaximum: (from + more + 1) * step },
      fc.integer({ min: from, max: from + more }).map((factor) => factor * step + 0),
    ),
  ),
  fc.tuple(fc.integer({ min: -300, max: 300 }), fc.integer({ min: 1, max: 400 })).map(([from, more]) =>
    sample(
      { type: "number", minimum: from / 4, exclusiveMaximum: (from + more) / 4 },
      fc.integer({ min: from * 2, max: (from + more) * 2 - 1 }).map((eighths) => eighths / 8 + 0),
    ),
  ),
];

function objects(inner: fc.Arbitrary<SchemaSample>): fc.Arbitrary<SchemaSample> {
  const property = fc.record({ member: inner, required: fc.boolean() });
  return fc
    .tuple(
      fc.uniqueArray(fc.constantFrom(...propertyNames), { maxLength: 4 }),
      fc.array(property, { minLength: 4, maxLength: 4 }),
      fc.boolean(),
    )
    .map(([names, properties, closed]) => {
      const entries = names.map((name, i) => ({
        name,
        ...(properties[i] as { member: SchemaSample; required: boolean }),
      }));
      const required = entries.filter((entry) => entry.required).map((entry) => entry.name);
      const values = Object.fromEntries(entries.map(({ name, member }) => [name, member.value]));
      return sample(
        {
          type: "object",
          properties: Object.fromEntries(entries.map(({ name, member }) => [name, member.schema])),
          ...(required.length > 0 ? { required } : {}),
          ...(closed || entries.length === 0 ? { additionalProperties: false } : {}),
        },
        fc.record(values, { requiredKeys: required, noNullPrototype: true }).map((value) => inOrder(value, names)),
      );
    });
}

function inOrder(value: Readonly<Record<string, unknown>>, names: readonly string[]): unknown {
  return Object.fromEntries(names.filter((name) => Object.hasOwn(value, name)).map((name) => [name, value[name]]));
}

function arrays(inner: fc.Arbitrary<SchemaSample>): fc.Arbitrary<SchemaSample> {
  return fc
    .tuple(inner, fc.nat(2), fc.nat(3))
    .map(([item, min, more]) =>
      sample(
        { type: "array", items: item.schema, minItems: min, maxItems: min + more },
        fc.array(item.value, { minLength: min, maxLength: min + more }),
      ),
    );
}

function tuples(inner: fc.Arbitrary<SchemaSample>): fc.Arbitrary<SchemaSample> {
  return fc
    .array(inner, { minLength: 1, maxLength: 3 })
    .map((items) =>
      sample(
        { type: "array", prefixItems: items.map((item) => item.schema), items: false, minItems: items.length },
        fc.tuple(...items.map((item) => item.value)),
      ),
    );
}

function unions(inner: fc.Arbitrary<SchemaSample>): fc.Arbitrary<SchemaSample> {
  return fc
    .array(inner, { minLength: 2, maxLength: 3 })
    .map((options) =>
      sample({ anyOf: options.map((option) => option.schema) }, fc.oneof(...options.map((option) => option.value))),
    );
}

/** Two objects under `allOf`, with properties of their own and one in common. */
function merged(inner: fc.Arbitrary<SchemaSample>): fc.Arbitrary<SchemaSample> {
  return fc.tuple(inner, inner).map(([first, second]) =>
    sample(
      {
        allOf: [
          {
            type: "object",
            properties: { first: first.schema, both: { type: "integer", minimum: 10 } },
            required: ["first", "both"],
          },
          { properties: { both: { maximum: 20 }, second: second.schema } },
        ],
      },
      fc
        .record(
          { first: first.value, both: fc.integer({ min: 10, max: 20 }), second: second.value },
          { requiredKeys: ["first", "both"], noNullPrototype: true },
        )
        .map((value) => inOrder(value, ["first", "both", "second"])),
    ),
  );
}

/** A reference, and a nullable one: in a document of its own, as a property's schema would be inlined. */
function referring(inner: fc.Arbitrary<SchemaSample>): fc.Arbitrary<SchemaSample> {
  return inner.map(({ schema, value }) =>
    sample({ anyOf: [{ type: "null" }, schema], title: "nullable" }, fc.oneof(fc.constant(null), value)),
  );
}

function sample(schema: SchemaSample["schema"], value: fc.Arbitrary<unknown>): SchemaSample {
  return { schema, value };
}
