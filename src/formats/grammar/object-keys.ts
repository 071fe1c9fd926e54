import { choice, choiceOf, text, type Expression } from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";
import type { ObjectLimits, Parts } from "./schema-shape.ts";
import { keyCharacters } from "./string-limits.ts";
import { anyKeyBut } from "./value-syntax.ts";

/** The keys that match a pattern, if no declared name is among them. */
export function patternKeys(
  reader: SchemaReader,
  pattern: ObjectLimits["patterns"][number],
  declared: ReadonlySet<string>,
): Expression | null {
  if ([...declared].some((name) => reader.matches(pattern, name, "patternProperties") !== false)) return null;
  try {
    return regexExpression(pattern.pattern, "anywhere");
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}

/** The characters of the keys that `propertyNames` allows and that are not declared. */
export function nameKeys(reader: SchemaReader, names: Parts, declared: ReadonlySet<string>): Expression {
  if (names.length === 0) return anyKeyBut(declared);
  const path = names[0]?.path ?? "";
  return choice(
    ...reader.shapes(names).map(({ values, string }) => {
      if (values !== undefined) {
        const free = values.filter((value) => typeof value === "string" && !declared.has(value));
        return choiceOf(free.map((value) => text(String(value))));
      }
      const apart = [...declared].every((name) =>
        string.patterns.some((pattern) => reader.matches(pattern, name, "propertyNames") === false),
      );
      if (apart) return keyCharacters(reader, string, path);
      reader.report(path, "propertyNames");
      return anyKeyBut(declared);
    }),
  );
}
