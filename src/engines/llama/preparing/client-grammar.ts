import { invalidRequest } from "../../../core/failure.ts";
import { checkGrammar } from "./check-grammar.ts";
import type { PlannedGrammar } from "./constraint-plan.ts";
import { invalidRequestOf } from "./constraint-refusal.ts";

/** Characters of a grammar. */
const longest = 64 * 1024;
/** With its repetitions written out. */
const elements = 250_000;

/**
 * A client's own grammar in GBNF, which is at `path` in the request.
 *
 * @throws {FailureError} 400 for one that is malformed or too large.
 */
export function clientGrammar(gbnf: string, path: string): PlannedGrammar {
  if (gbnf.length > longest) {
    const why = `it has ${gbnf.length} characters, and ${longest} is the limit`;
    throw invalidRequest(`Invalid grammar at '${path}': ${why}.`, path, "invalid_grammar");
  }
  try {
    checkGrammar(gbnf, elements);
    return { type: "gbnf", path, gbnf };
  } catch (error) {
    throw invalidRequestOf(error, path);
  }
}
