import { parametersOf } from "../../core/custom-tool.ts";
import type { JsonSchema, Tool } from "../../core/message.ts";
import { codePoints } from "./code-points.ts";
import { chars, choice, repeat, sequence, type Expression } from "./expression.ts";
import { SchemaReader } from "./flatten-schema.ts";
import type { Grammar } from "./grammar.ts";
import type { Parts } from "./schema-shape.ts";

/** A tool as the grammar of its calls is made from it. */
export interface CallableTool {
  readonly name: string;
  readonly reader: SchemaReader;
  /** What its arguments must satisfy; always an object. */
  readonly parts: Parts;
  /** The tool as the reader of tagged values gets it: its declared parameters type the values. */
  readonly tool: Tool;
  /** Its arguments may be any object. */
  readonly free: boolean;
}

/** What the parts of a call's grammar are made with. */
export interface CallContext {
  readonly grammar: Grammar;
  readonly tools: readonly CallableTool[];
  /** More than one call may be made. */
  readonly parallel: boolean;
  /** White space where a template may have some. Bounded, so that a model cannot write it for ever. */
  readonly gap: Expression;
}

export function callGap(grammar: Grammar): Expression {
  return grammar.shared("gap", "gap", () => repeat(chars(codePoints(" ", "\t", "\n")), 0, 3));
}

/** `free`: the arguments are any object, whatever the tool declares. */
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

/** An item for each tool, one after another where several calls are allowed. */
export function severalCalls(context: CallContext, call: Expression, between: Expression): Expression {
  return sequence(call, repeat(sequence(between, call), 0, context.parallel ? null : 0));
}

/** One call: of whichever tool. */
export function anyTool(context: CallContext, callOf: (tool: CallableTool) => Expression): Expression {
  return choice(...context.tools.map(callOf));
}

const idCharacter = chars(codePoints("az", "AZ", "09"));
const digit = chars(codePoints("09"));

/** An id as models write them: nine letters and digits (Mistral), or a small number. */
export const callId: Expression = choice(repeat(idCharacter, 9, 9), repeat(digit, 1, 2));
export const callIndex: Expression = repeat(digit, 1, 2);
