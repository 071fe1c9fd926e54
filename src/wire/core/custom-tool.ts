import type { JsonSchema, Tool } from "./message.ts";

/**
 * The argument that contains the input of a custom tool. Models are trained on functions only, so a prompt describes a custom tool as a
 * function with this one string, and its value becomes the call's input.
 */
export const customInput = "input";

/** The arguments of a call of the function that represents a custom tool. */
export function argumentsOfInput(input: string): { readonly [customInput]: string } {
  return { [customInput]: input };
}

/** The schema keyword for the Lark grammar of a custom tool's input: an extension of JSON Schema. */
export const larkKeyword = "x-lark-grammar";

/** The parameters of a tool in a prompt: a function's own, undefined if it declares none; one string for a custom tool. */
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

/** The name of a grouped tool in a prompt: namespace and name joined by two underscores, as agents name the tools of MCP servers. */
export function qualifiedName(namespace: string, name: string): string {
  return `${namespace}__${name}`;
}

/** A tool's name within its group. `name` may be the qualified name. */
export function nameWithin(namespace: string, name: string): string {
  const prefix = `${namespace}__`;
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
