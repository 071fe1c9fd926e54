import { invalidRequest } from "../../../generation/failure.ts";
import type { PlannedGrammar } from "./constraint-plan.ts";

/** llama.cpp's parser calls itself for every open parenthesis; a few thousand more than this overflow its stack, which ends the process. */
const deepest = 200;
/** Its time grows with the square of the alternatives: a hundred thousand, in 600 KiB, took 35 seconds. */
const longest = 64 * 1024;

/**
 * A client's own grammar in GBNF, which stood at `path`. llama.cpp is the judge of its syntax.
 *
 * @throws {FailureError} 400 for one that is too long or nested too deeply for llama.cpp.
 */
export function clientGrammar(gbnf: string, path: string): PlannedGrammar {
  if (gbnf.length > longest) throw refused(path, `it has ${gbnf.length} characters, and ${longest} is the limit`);
  if (depthOf(gbnf) > deepest) throw refused(path, `its parentheses are nested more than ${deepest} deep`);
  return { type: "gbnf", gbnf, path };
}

function refused(path: string, why: string): Error {
  return invalidRequest(`Invalid grammar at '${path}': ${why}.`, path, "invalid_grammar");
}

/** How deep parentheses are nested, outside of texts, classes of characters and comments. */
function depthOf(gbnf: string): number {
  let depth = 0;
  let most = 0;
  for (const [token] of gbnf.matchAll(/"(?:[^"\\]|\\[^])*"|\[(?:[^\]\\]|\\[^])*\]|#.*|[()]/g)) {
    if (token === "(") most = Math.max(most, ++depth);
    else if (token === ")") depth--;
  }
  return most;
}
