import type { JsonSchema, Tool } from "./message.ts";

/**
 * The member of a call's arguments that holds the text for a custom tool. Models are trained on functions alone, so those that a prompt
 * is written for are offered a custom tool as a function with this one string; what they write for it becomes the call's input.
 */
export const customInput = "input";

/** The arguments of a call of the function that represents a custom tool. */
export function argumentsOfInput(input: string): { readonly [customInput]: string } {
  return { [customInput]: input };
}

/** The keyword, beyond JSON Schema's own, under which a model is shown the Lark grammar of a custom tool's input. */
export const larkKeyword = "x-lark-grammar";

/** The parameters that a model is shown for this tool: a function's own, undefined if it declares none; one text for a custom tool. */
export function parametersOf({ kind, parameters, inputGrammar }: Tool): JsonSchema | undefined {
  if (kind !== "custom") return parameters;
  return {
    type: "object",
    properties: { [customInput]: { type: "string", ...(inputGrammar && textShape(inputGrammar)) } },
    required: [customInput],
    additionalProperties: false,
  };
}

function textShape({ syntax, definition }: NonNullable<Tool["inputGrammar"]>): { readonly [keyword: string]: string } {
  return syntax === "regex" ? { pattern: `^(?:${definition})$` } : { [larkKeyword]: definition };
}
