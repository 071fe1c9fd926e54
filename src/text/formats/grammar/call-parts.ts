import { parametersOf } from "../../../wire/core/custom-tool.ts";
import type { JsonSchema, Tool } from "../../../wire/core/message.ts";
import { codePoints } from "./code-points.ts";
import { chars, choice, repeat, sequence, type GrammarExpression } from "./expression.ts";
import { SchemaReader } from "./schema-reader.ts";
import type { Grammar } from "./grammar.ts";
import type { Parts } from "./schema-shape.ts";

/** A tool as the grammar of its calls needs it. */
export interface CallableTool {
  readonly name: string;
  readonly reader: SchemaReader;
  /** The schemas that its arguments must satisfy; always an object. */
  readonly parts: Parts;
  /** The tool as the parser of tagged values needs it: its declared parameters determine the types of values. */
  readonly tool: Tool;
  /** Its arguments may be any object. */
  readonly free: boolean;
}

/** What the functions that build the grammar of calls share. */
export interface CallGrammarContext {
  readonly grammar: Grammar;
  readonly tools: readonly CallableTool[];
  /** More than one call is allowed. */
  readonly parallel: boolean;
  /** White space where templates may write some. It is bounded, so that a model cannot write it forever. */
  readonly gap: GrammarExpression;
}

export function callGap(grammar: Grammar): GrammarExpression {
  return grammar.shared("gap", "gap", () => repeat(chars(codePoints(" ", "\t", "\n")), 0, 3));
}

/** `free`: the arguments may be any object, regardless of the declared parameters. */
export function callableTool(tool: Tool, index: number, path: string, free: boolean): CallableTool {
  // "Omitting `parameters` defines a function with an empty parameter list." (OpenAI's specification, FunctionObject)
  const none: JsonSchema = { type: "object", properties: {} };
  const schema = free ? { type: "object" } : (parametersOf(tool) ?? none);
  return {
    name: tool.name,
    tool,
    free,
    reader: new SchemaReader(schema, path, `tool ${index}`),
    parts: [
      { schema, path },
      { schema: { type: "object" }, path },
    ],
  };
}

/** One call, or several in a row if parallel calls are allowed. */
export function severalCalls(
  context: CallGrammarContext,
  call: GrammarExpression,
  between: GrammarExpression,
): GrammarExpression {
  return sequence(call, repeat(sequence(between, call), 0, context.parallel ? null : 0));
}

/** One call of any of the tools. */
export function anyTool(
  context: CallGrammarContext,
  callOf: (tool: CallableTool) => GrammarExpression,
): GrammarExpression {
  return choice(...context.tools.map(callOf));
}

const idCharacter = chars(codePoints("az", "AZ", "09"));
const digit = chars(codePoints("09"));

/** An id as models write it: nine letters and digits (Mistral), or a small number. */
export const callIdExpression: GrammarExpression = choice(repeat(idCharacter, 9, 9), repeat(digit, 1, 2));
export const callIndexExpression: GrammarExpression = repeat(digit, 1, 2);
