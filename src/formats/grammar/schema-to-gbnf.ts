import type { JsonSchema } from "../../core/message.ts";
import type { Expression } from "./expression.ts";
import { SchemaReader } from "./flatten-schema.ts";
import { Grammar, GrammarError } from "./grammar.ts";
import { SchemaError, type Gap } from "./schema-error.ts";
import { valueExpression } from "./value-expression.ts";
import { anyValue, jsonSyntax } from "./value-syntax.ts";

export interface SchemaGrammar {
  /** The grammar; its start is the rule `root`. */
  readonly gbnf: string;
  /** Assertions that the grammar does not enforce: an answer may fail these. In order of their appearance, each once. */
  readonly widened: readonly Gap[];
  /** Whether every text of the grammar satisfies the schema. False with gaps, and where a `oneOf` was read as `anyOf`. */
  readonly exact: boolean;
}

/**
 * JSON texts that satisfy a schema (2020-12 and draft-07; `nullable`, boolean `exclusiveMinimum` and int32/int64 of OpenAPI), in
 * GBNF.
 *
 * Every text of the grammar is valid, except for what `widened` names. Not every valid text is in the grammar:
 * - properties stand in the order of the schema, declared ones before others, and a key never twice except undeclared ones;
 * - a schema with `properties`, `patternProperties` or `prefixItems` that says nothing of further members gets none;
 * - a schema with keywords of some types, but without `type`, gets values of those types;
 * - numbers have at most 16 digits on each side of the point and an exponent of up to two; bounded ones no exponent; decimals that
 *   are multiples are written with exactly the digits of `multipleOf`;
 * - strings with a pattern or format are spelled as `JSON.stringify` spells them;
 * - white space is bounded (`jsonSyntax`).
 *
 * Annotations and unknown keywords are ignored. `path` stands before all paths in results and errors.
 *
 * @throws {SchemaError} if the schema is malformed, refers to what is not there, or allows nothing.
 */
export function schemaToGbnf(schema: JsonSchema, path = "schema"): SchemaGrammar {
  const grammar = new Grammar();
  const { root, widened, exact } = schemaAnswer(grammar, schema, path);
  try {
    return { gbnf: grammar.toGbnf(root), widened, exact };
  } catch (error) {
    if (!(error instanceof GrammarError)) throw error;
    throw new SchemaError(path, `the schema allows no value: ${error.message}`, { cause: error });
  }
}

/** The same as part of a larger grammar. */
export function schemaAnswer(
  grammar: Grammar,
  schema: JsonSchema,
  path: string,
): Pick<SchemaGrammar, "widened" | "exact"> & { readonly root: Expression } {
  const reader = new SchemaReader(schema, path);
  const root = valueExpression({ grammar, reader, syntax: jsonSyntax(grammar) }, [{ schema, path }], "root-value");
  return { root, widened: reader.gaps, exact: reader.gaps.length === 0 && !reader.sawOneOf };
}

/** Any JSON object (`response_format: json_object`). */
export function jsonObjectGbnf(): string {
  const grammar = new Grammar();
  return grammar.toGbnf(anyValue(grammar, jsonSyntax(grammar), "object"));
}
