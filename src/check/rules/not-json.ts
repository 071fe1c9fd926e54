import type { Violation } from "./rule.ts";

/** Returns why a text is not one JSON object: a number that JSON does not have, or the kind of text that it begins with. */
export function notJson(text: string): Violation {
  for (const { 0: found, index, groups } of text.matchAll(/"(?:[^"\\]|\\.)*"|(?<number>NaN|-?Infinity)/g)) {
    if (groups?.number !== undefined)
      return { start: index, end: index + found.length, found: `${found}, which is not JSON` };
  }
  return { start: 0, end: Math.min(text.length, 80), found: kindOf(text) };
}

function kindOf(text: string): string {
  if (text.trim() === "") return "an empty body";
  if (/^\s*</.test(text)) return "an HTML page";
  return text.startsWith("data:") ? "a stream that was not requested" : "not a JSON object";
}
