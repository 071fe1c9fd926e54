import type { JsonSchema } from "../../core/message.ts";
import type { GrammarExpression } from "./expression.ts";
import { SchemaReader } from "./schema-reader.ts";
import type { Grammar } from "./grammar.ts";
import type { SchemaGap } from "./schema-error.ts";
import { valueExpression } from "./value-expression.ts";
import { jsonSyntax } from "./value-syntax.ts";

interface SchemaAnswer {
  readonly root: GrammarExpression;
  /** Assertions that the grammar does not enforce, each once, in the order of the schema. */
  readonly widened: readonly SchemaGap[];
  /** Whether every text of the grammar satisfies the schema. False with `widened`, and if a `oneOf` was read as `anyOf`. */
  readonly exact: boolean;
}

/**
 * Adds to `grammar` the JSON texts that satisfy a schema (2020-12 and draft-07; `nullable`, boolean `exclusiveMinimum` and int32/int64 of
 * OpenAPI).
 *
 * Every text of the grammar is valid, except for what `widened` names. Some valid texts are not in the grammar:
 * - properties are in the order of the schema, declared ones before others, and no key occurs twice except undeclared ones;
 * - a schema with `properties`, `patternProperties` or `prefixItems` that does not describe further members has none;
 * - a schema with keywords of some types, but without `type`, has only values of those types;
 * - numbers have at most 16 digits on each side of the point and an exponent of at most two digits; bounded numbers have no exponent;
 *   decimals that are multiples have exactly the digits of `multipleOf`;
 * - strings with a pattern or format are spelled as `JSON.stringify` spells them;
 * - white space is bounded (`jsonSyntax`).
 *
 * Annotations and unknown keywords are ignored. `path` is the prefix of all paths in results and errors.
 *
 * @throws {SchemaError} if the schema is malformed or contains a reference that cannot be resolved.
 */
export function schemaAnswer(grammar: Grammar, schema: JsonSchema, path: string): SchemaAnswer {
  const reader = new SchemaReader(schema, path);
  const root = valueExpression({ grammar, reader, syntax: jsonSyntax(grammar) }, [{ schema, path }], "root-value");
  return { root, widened: reader.gaps, exact: reader.gaps.length === 0 && !reader.sawOneOf };
}
