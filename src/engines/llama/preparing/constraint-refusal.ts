import { GrammarError } from "../../../formats/grammar/grammar.ts";
import { LarkError } from "../../../formats/grammar/lark-error.ts";
import { RegexError } from "../../../formats/grammar/regex-syntax.ts";
import { SchemaError, type Gap } from "../../../formats/grammar/schema-error.ts";
import { FailureError, invalidRequest } from "../../../generation/failure.ts";

/** Runs `make`; what it cannot make a grammar of is a 400 with its path. `path`: where the pattern or the grammar stood. */
export function asInvalidRequest<T>(make: () => T, path = "tools"): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof FailureError) throw error;
    if (error instanceof SchemaError)
      throw invalidRequest(`Invalid schema at '${error.path}': ${error.message}.`, error.path, "invalid_json_schema");
    if (error instanceof RegexError)
      throw invalidRequest(`Invalid pattern at '${path}': ${error.message}.`, path, "invalid_value");
    if (error instanceof LarkError)
      throw invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_value");
    if (error instanceof GrammarError)
      throw invalidRequest(`Invalid value at '${path}': ${error.message}.`, path, "invalid_value");
    // The only recursion is into what the client sent.
    if (error instanceof RangeError)
      throw invalidRequest(`Invalid value at '${path}': it is nested too deeply.`, path, "invalid_value");
    throw error;
  }
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
