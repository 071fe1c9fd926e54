import type { RepairLog } from "./repairs.ts";

/** Strings (to be skipped) and the number words that Python's `json.dumps` writes though JSON has none. */
const numberWords = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/gs;

/** Parses JSON, with Python's NaN and Infinity as null. undefined: not JSON. */
export function parseTolerantly(text: string, repairs: RepairLog): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    if (!/NaN|Infinity/.test(text)) return undefined;
  }
  try {
    const value: unknown = JSON.parse(text.replace(numberWords, (word) => (word.startsWith('"') ? word : "null")));
    repairs.note("not-a-number");
    return value;
  } catch {
    return undefined;
  }
}
