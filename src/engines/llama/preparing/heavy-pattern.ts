import { GrammarLoadError } from "../../../formats/grammar/gbnf-error.ts";
import { gbnfOf } from "../../../formats/grammar/grammar.ts";
import { checkLoad } from "../../../formats/grammar/grammar-load.ts";
import { readGbnf } from "../../../formats/grammar/read-gbnf.ts";
import { regexExpression } from "../../../formats/grammar/regex-to-gbnf.ts";

/** So many patterns are looked at. Each takes a few milliseconds. */
const mostPatterns = 200;

/** A pattern that can be read in too many ways as it stands, and where it stands. */
export interface HeavyPattern {
  readonly pattern: string;
  readonly path: string;
}

/** The heavy patterns of a schema, which stands at `path`. `longestToken`: characters of the longest token in the vocabulary. */
export function heavyPatterns(schema: unknown, path: string, longestToken: number): readonly HeavyPattern[] {
  const todo: { readonly value: unknown; readonly path: string }[] = [{ value: schema, path }];
  const found: HeavyPattern[] = [];
  let patterns = 0;
  for (const place of todo) {
    const { value } = place;
    if (typeof value !== "object" || value === null) continue;
    for (const [key, member] of Object.entries(value)) {
      const at = Array.isArray(value) ? `${place.path}[${key}]` : `${place.path}.${key}`;
      if (key !== "pattern" || typeof member !== "string") todo.push({ value: member, path: at });
      else if (++patterns > mostPatterns) return found;
      else if (isHeavy(member, longestToken)) found.push({ pattern: member, path: at });
    }
  }
  return found;
}

function isHeavy(pattern: string, longestToken: number): boolean {
  try {
    const limits = { depth: Infinity, elements: Infinity };
    checkLoad(readGbnf(gbnfOf(regexExpression(pattern, "anywhere")), limits), longestToken);
    return false;
  } catch (error) {
    return error instanceof GrammarLoadError;
  }
}
