import { invalidValue } from "./refusals.ts";

/**
 * The maximum length, in UTF-16 units, of all texts of a parameter together that are searched for during generation: stop strings, biases
 * by text. The search automaton of each choice has a node for each character.
 */
export const maxTextsLength = 65_536;

/** Returns what is wrong with texts that are too long in total, or `undefined`. */
export function lengthProblem(texts: readonly string[], maxLength: number = maxTextsLength): string | undefined {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length <= maxLength
    ? undefined
    : `the strings have ${length} characters in total, and ${maxLength} is the limit`;
}

/** Throws `FailureError` (400) for texts that are longer than `maxLength` in total. `path`: the parameter. */
export function checkTotalLength(path: string, texts: readonly string[], maxLength?: number): void {
  const problem = lengthProblem(texts, maxLength);
  if (problem !== undefined) throw invalidValue(path, `${problem}.`, "string_above_max_length");
}
