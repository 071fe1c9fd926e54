import { compileExpression } from "./jinja/compile-expression.ts";
import { parseTemplate } from "./jinja/parse-template.ts";
import { Scope } from "./jinja/scope.ts";
import type { Body } from "./jinja/syntax.ts";
import { isList, isText, type Value } from "./jinja/values.ts";
import { guardedTokens } from "./special-tokens.ts";
import { UserText } from "./user-text.ts";

/** Facts about its model that a template states, by the convention of theroyallab/tabbyAPI. Absent: not stated. */
export interface TemplateMetadata {
  /** Texts that end an answer: `{% set stop_strings = [...] %}`. */
  readonly stopStrings?: readonly string[];
  /** The text before calls: `tool_start`. */
  readonly toolStart?: string;
  /** The text after calls: `tool_end`. */
  readonly toolEnd?: string;
  /** The name of a format: `tool_call_format`. */
  readonly toolCallFormat?: string;
}

/**
 * Reads the metadata of a template: assignments outside of every block, of texts and lists of texts that do not depend on the
 * conversation. A source that cannot be parsed has none.
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

function statements(source: string): Body {
  try {
    return parseTemplate(source).body;
  } catch {
    return [];
  }
}

function assigned(body: Body): ReadonlyMap<string, Value> {
  const values = new Map<string, Value>();
  const rendering = { user: new UserText(guardedTokens([], [], []), "", []), now: new Date(0) };
  for (const statement of body) {
    if (statement.kind !== "set" || statement.target.kind !== "name" || !names.has(statement.target.name)) continue;
    try {
      values.set(statement.target.name, compileExpression(statement.value)(new Scope(null), rendering));
    } catch {
      // It depends on the conversation, so it is not metadata.
    }
  }
  return values;
}
