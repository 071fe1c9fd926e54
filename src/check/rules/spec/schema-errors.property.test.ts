import { Ajv } from "ajv";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { events, response } from "../responses/schemas.ts";
import { schemaErrors } from "./schema-errors.ts";
import * as ofOpenai from "./schemas.ts";

const all: readonly object[] = [...Object.values(ofOpenai), response, ...Object.values(events)];
const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: false });
const compiled = all.map((schema) => ajv.compile(schema));

/** A value that fits a schema more often than not: what a property says, with now and then something else in its place. */
function valueFor(schema: Readonly<Record<string, unknown>>): fc.Arbitrary<unknown> {
  const {
    type,
    properties = {},
    items,
    anyOf,
    allOf,
    enum: values,
  } = schema as {
    readonly type?: string | readonly string[];
    readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    readonly items?: Readonly<Record<string, unknown>>;
    readonly anyOf?: readonly Readonly<Record<string, unknown>>[];
    readonly allOf?: readonly Readonly<Record<string, unknown>>[];
    readonly enum?: readonly unknown[];
  };
  const anything = fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    0.5,
    7,
    300,
    "",
    "x",
    "function",
    "message",
    "output_text",
    [],
    [1],
    {},
    { type: "message" },
    { type: "reasoning", id: "x" },
  );
  const fitting = (): fc.Arbitrary<unknown> => {
    if ("const" in schema) return fc.constant(schema["const"]);
    if (values) return fc.constantFrom(...values);
    if (items) return fc.array(valueFor(items), { maxLength: 3 });
    const kinds = [type ?? []].flat();
    if (kinds.includes("object") || Object.keys(properties).length > 0) {
      const parts = (allOf ?? []).flatMap((part) => [part, (part["else"] ?? {}) as Readonly<Record<string, unknown>>]);
      const members = Object.assign(
        {},
        ...[...parts, ...(anyOf ?? [])].map((part) => part["properties"] ?? {}),
        properties,
      ) as typeof properties;
      const model = {
        ...Object.fromEntries(Object.entries(members).map(([name, one]) => [name, valueFor(one)])),
        extra: anything,
      };
      return fc.oneof(fc.record(model), fc.record(model, { requiredKeys: [] }));
    }
    if (anyOf) return fc.oneof(...anyOf.map(valueFor));
    if (allOf) return fc.oneof(...allOf.map(valueFor));
    return anything;
  };
  return fc.oneof({ weight: 8, arbitrary: fitting() }, { weight: 1, arbitrary: anything });
}

test("for every value: the errors of ajv, in its order", { timeout: 120_000 }, () => {
  const cases = fc
    .nat(all.length - 1)
    .chain((at) => fc.tuple(fc.constant(at), valueFor(all[at] as Readonly<Record<string, unknown>>)));
  let wrong = 0;
  fc.assert(
    fc.property(cases, ([at, value]) => {
      const validate = compiled[at];
      if (!validate) throw new Error("no such schema");
      const right = validate(value);
      if (!right) wrong++;
      const ours = schemaErrors(all[at] ?? {}, value).map(({ keyword, path, schemaPath, missing }) => [
        keyword,
        path.map((name) => `/${name}`).join(""),
        `#/${schemaPath.map((name) => encodeURIComponent(name)).join("/")}`,
        missing,
      ]);
      const theirs = (validate.errors ?? []).map(({ keyword, instancePath, schemaPath, params }) => [
        keyword,
        instancePath,
        schemaPath,
        params["missingProperty"] as unknown,
      ]);
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 3000 },
  );
  expect(wrong).toBeGreaterThan(1000);
});

test("a keyword that is not known is refused, wherever it stands", () => {
  expect(() => schemaErrors({ properties: { a: { maxLength: 3 } } }, { a: "x" })).toThrow("maxLength");
});
