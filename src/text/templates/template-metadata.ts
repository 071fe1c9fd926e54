import { compileExpression } from "./jinja/compile-expression.ts";
import { parseTemplate } from "./jinja/parse-template.ts";
import type { Statements } from "./jinja/syntax.ts";
import { isList, isText, Scope, type Value } from "./jinja/values.ts";
import { guardedTokens, UserText } from "./user-text.ts";

/** Metadata about the model in a template, by the convention of theroyallab/tabbyAPI. */
export interface TemplateMetadata {
  /** Strings that end an answer: `{% set stop_strings = [...] %}`. */
  readonly stopStrings?: readonly string[];
  /** The text before calls: `tool_start`. */
  readonly toolStart?: string;
  /** The text after calls: `tool_end`. */
  readonly toolEnd?: string;
  /** The name of a format: `tool_call_format`. */
  readonly toolCallFormat?: string;
}

/**
 * Reads the metadata of a template: top-level assignments of strings and lists of strings that do not depend on the conversation.
 * Returns no metadata for a source that cannot be parsed.
 */
export function templateMetadata(source: string): TemplateMetadata {
  const values = assigned(statements(source));
  const text = (name: string): string | undefined => {
    const value = values.get(name);
    return value !== undefined && isText(value) && value.value !== "" ? value.value : undefined;
  };
  const stops = values.get("stop_strings");
  const stopStrings = stops !== undefined && isList(stops) ? stops.value.filter(isText).map(({ value }) => value) : [];
  const [toolStart, toolEnd, toolCallFormat] = [text("tool_start"), text("tool_end"), text("tool_call_format")];
  return {
    ...(stopStrings.length > 0 && { stopStrings }),
    ...(toolStart !== undefined && { toolStart }),
    ...(toolEnd !== undefined && { toolEnd }),
    ...(toolCallFormat !== undefined && { toolCallFormat }),
  };
}

const names: ReadonlySet<string> = new Set(["stop_strings", "tool_start", "tool_end", "tool_call_format"]);

function statements(source: string): Statements {
  try {
    return parseTemplate(source).body;
  } catch {
    return [];
  }
}

function assigned(body: Statements): ReadonlyMap<string, Value> {
  const values = new Map<string, Value>();
  const rendering = { user: new UserText(guardedTokens([], [], []), "", []), now: new Date(0) };
  for (const statement of body) {
    if (statement.kind !== "set" || statement.target.kind !== "name" || !names.has(statement.target.name)) continue;
    try {
      values.set(statement.target.name, compileExpression(statement.value)(new Scope(null), rendering));
    } catch {
      // The value depends on the conversation.
    }
  }
  return values;
}
