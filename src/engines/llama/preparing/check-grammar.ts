import { readGbnf } from "../../../formats/grammar/read-gbnf.ts";
import { checkBeginnings } from "../../../formats/grammar/rule-beginnings.ts";

/** The parser calls itself for every open parenthesis. */
const depth = 200;

/**
 * Checks that a grammar can be followed at all. What following it costs is known only while an answer is sampled, and has its own budget
 * there (`process/token-grammar.ts`).
 *
 * @param elements how many characters, classes and references it may have with its repetitions written out.
 * @throws {GbnfError} for a grammar that is malformed, too large, or has a rule that begins with itself.
 */
export function checkGrammar(gbnf: string, elements: number): void {
  checkBeginnings(readGbnf(gbnf, { depth, elements }).rules);
}
