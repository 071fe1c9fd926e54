import { existsSync, readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { parse } from "yaml";

const document = new URL("../../../shared/openapi/openapi-2026-08-21.yaml", import.meta.url);

/** Whether OpenAI's document lies next to the project. */
export const hasOfficialSchemas: boolean = existsSync(document);

export interface OfficialSchemas {
  /** The schemas by name, as the document has them. */
  readonly components: Readonly<Record<string, unknown>>;
  /** What the schema of this name says against a value, in the validator's words; the branches of unions are left out. */
  rejected(name: string, value: unknown): readonly string[];
}

/** Compiles OpenAI's own schemas. */
export function readOfficialSchemas(): OfficialSchemas {
  const { components } = parse(readFileSync(document, "utf8")) as {
    components: { schemas: Readonly<Record<string, unknown>> };
  };
  const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
  ajv.addSchema({ $id: "openai", components: withNulls(components) as object });
  return {
    components: components.schemas,
    rejected(name, value) {
      const validate = ajv.getSchema(`openai#/components/schemas/${name}`);
      if (!validate) throw new Error(`no schema ${name}`);
      if (validate(value)) return [];
      return (validate.errors ?? [])
        .filter(({ keyword }) => keyword !== "anyOf" && keyword !== "oneOf")
        .map(({ instancePath, message }) => `${instancePath.replaceAll("/", " ").trim()} ${message ?? ""}`);
    },
  };
}

/**
 * OpenAPI 3.0 says `nullable` where JSON Schema has a union. Branches of the document's `oneOf` overlap (a user's message in parts fits
 * two), so `oneOf` is read as `anyOf`.
 */
function withNulls(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withNulls);
  if (typeof schema !== "object" || schema === null) return schema;
  const { nullable, ...rest } = schema as { nullable?: unknown };
  const mapped = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key === "oneOf" && Array.isArray(value) ? "anyOf" : key,
      withNulls(value),
    ]),
  );
  return nullable === true ? { anyOf: [mapped, { type: "null" }] } : mapped;
}
