import { GbnfError } from "../../../formats/grammar/gbnf-error.ts";
import { GrammarError } from "../../../formats/grammar/grammar.ts";
import { LarkError } from "../../../formats/grammar/lark-error.ts";
import { RegexError } from "../../../formats/grammar/regex-syntax.ts";
import { SchemaError, type Gap } from "../../../formats/grammar/schema-error.ts";
import { invalidRequest } from "../../../core/failure.ts";

/** Runs `make`; what it cannot make a grammar of is a 400 with its path. `path`: where the pattern or the grammar stood. */
export function asInvalidRequest<T>(make: () => T, path = "tools"): T {
  try {
    return make();
  } catch (error) {
    throw invalidRequestOf(error, path);
  }
}

/** The 400 that says what is wrong; an error of another kind is given back as it is. */
export function invalidRequestOf(error: unknown, path: string): unknown {
  if (error instanceof SchemaError)
    return invalidRequest(`Invalid schema at '${error.path}': ${error.message}.`, error.path, "invalid_json_schema");
  if (error instanceof RegexError)
    return invalidRequest(`Invalid pattern at '${path}': ${error.message}.`, path, "invalid_value");
  if (error instanceof LarkError)
    return invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_value");
  if (error instanceof GbnfError)
    return invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_grammar");
  if (error instanceof GrammarError)
    return invalidRequest(`Invalid value at '${path}': ${error.message}.`, path, "invalid_value");
  // The only recursion is into what the client sent.
  if (error instanceof RangeError)
    return invalidRequest(`Invalid value at '${path}': it is nested too deeply.`, path, "invalid_value");
  return error;
}

/**
 * Under `strict`, an assertion below `path` that the grammar does not hold is an error: OpenAI promises that strict output matches the
 * schema exactly, and refuses keywords that it cannot enforce (its guide to structured outputs, "Supported schemas").
 */
export function refuseGaps(widened: readonly Gap[], path: string, what: string, code: string): void {
  const gap = widened.find((gap) => gap.path === path || gap.path.startsWith(`${path}.`));
  if (gap === undefined) return;
  throw invalidRequest(
    `Invalid schema for ${what}: '${gap.keyword}' at '${gap.path}' cannot be enforced with strict: true.`,
    `${gap.path}.${gap.keyword}`,
    code,
  );
}

/** The grammar of a custom tool's input is a promise: where this model's way to write calls cannot hold it, it is an error. */
export function refuseInputGrammar(widened: readonly Gap[], path: string, tool: string): void {
  if (!widened.some((gap) => gap.path.startsWith(`${path}.`))) return;
  throw invalidRequest(
    `Unsupported value: the grammar of the custom tool '${tool}' cannot be enforced in the way this model writes calls.`,
    `${path}.definition`,
    "unsupported_value",
  );
}
