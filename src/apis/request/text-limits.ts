import { invalidValue } from "./refusals.ts";

/**
 * Characters (UTF-16 units) of all texts of a parameter that are searched for while an answer is written: stop strings, biases by text.
 * A search automaton has a node for each of them, for each choice of an answer.
 */
export const maxTextsLength = 65_536;

/** Says what is wrong with texts that are too long in total; undefined: nothing is. */
export function lengthProblem(texts: readonly string[], longest: number = maxTextsLength): string | undefined {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length <= longest ? undefined : `the strings have ${length} characters in total, and ${longest} is the limit`;
}

/** Throws FailureError, 400, for texts that are longer together than `longest`. `path`: the parameter. */
export function checkTotalLength(path: string, texts: readonly string[], longest?: number): void {
  const problem = lengthProblem(texts, longest);
  if (problem !== undefined) throw invalidValue(path, `${problem}.`, "string_above_max_length");
}
