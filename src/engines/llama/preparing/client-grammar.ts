import { invalidRequest } from "../../../generation/failure.ts";
import { bearableGrammar } from "./bearable-grammar.ts";
import type { PlannedGrammar } from "./constraint-plan.ts";
import { invalidRequestOf } from "./constraint-refusal.ts";

/** llama.cpp's time to read a grammar grows with the square of the alternatives: a hundred thousand, in 600 KiB, took 35 seconds. */
const longest = 64 * 1024;
/** With its repetitions written out: 2 MiB for each choice of an answer. */
const elements = 250_000;

/**
 * A client's own grammar in GBNF, which stood at `path`; or the same texts as an automaton, where llama.cpp would be lost in it.
 *
 * @throws {FailureError} 400 for one that is malformed, or more than llama.cpp can bear.
 */
export function clientGrammar(gbnf: string, path: string, longestToken: number): PlannedGrammar {
  if (gbnf.length > longest) {
    const why = `it has ${gbnf.length} characters, and ${longest} is the limit`;
    throw invalidRequest(`Invalid grammar at '${path}': ${why}.`, path, "invalid_grammar");
  }
  try {
    const { automaton: _, ...borne } = bearableGrammar(gbnf, { elements, longestToken });
    return { type: "gbnf", path, ...borne };
  } catch (error) {
    throw invalidRequestOf(error, path);
  }
}
