import type { JsonSchema } from "../../src/wire/core/message.ts";
import type { GrammarExpression } from "../../src/text/formats/grammar/expression.ts";
import { Grammar, GrammarError } from "../../src/text/formats/grammar/grammar.ts";
import { SchemaError, type SchemaGap } from "../../src/text/formats/grammar/grammar-errors.ts";
import { schemaAnswer } from "../../src/text/formats/grammar/call-grammar.ts";

/** The GBNF of an expression without rules of its own. */
export function gbnfOf(expression: GrammarExpression): string {
  return new Grammar().toGbnf(expression);
}

/** The GBNF of the JSON texts that satisfy a schema, and what `schemaAnswer` reports about it. @throws {SchemaError} if there is none. */
export function schemaToGbnf(
  schema: JsonSchema,
  path = "schema",
): { readonly gbnf: string; readonly widened: readonly SchemaGap[]; readonly exact: boolean } {
  const grammar = new Grammar();
  const { root, ...rest } = schemaAnswer(grammar, schema, path);
  try {
    return { gbnf: grammar.toGbnf(root), ...rest };
  } catch (error) {
    throw error instanceof GrammarError ? new SchemaError(path, error.message, { cause: error }) : error;
  }
}
