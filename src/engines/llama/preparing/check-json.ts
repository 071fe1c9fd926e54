import type { ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { JsonSchema } from "../../../generation/message.ts";

/** What is wrong with a JSON text by a client's schema; null: nothing. Throws for a schema that cannot be used. */
export function checkJson(json: string, schema: JsonSchema): string | null {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, logger: false });
  formats.default(ajv);
  const validate = ajv.compile(schema === true || schema === false ? schema : { ...schema });
  return validate(JSON.parse(json)) ? null : told(validate.errors);
}

function told(errors: readonly ErrorObject[] | null | undefined): string {
  return (errors ?? []).map(({ instancePath, message }) => `${instancePath || "/"} ${message}`).join("; ");
}
