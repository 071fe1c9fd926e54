import { customInput } from "../../core/custom-tool.ts";
import type { Tool } from "../../core/message.ts";

/**
 * Converts a custom tool to a function, for a server that accepts only functions. Its argument is the tool's input. The description explains
 * this, and contains the grammar of the input. A function is returned unchanged.
 */
export function asFunction(tool: Tool): Tool {
  if (tool.kind !== "custom") return tool;
  const { kind: _, inputGrammar, description, ...others } = tool;
  const words = [
    ...(description === undefined ? [] : [description]),
    `Call this function with one argument, \`${customInput}\`: the whole text, unchanged.`,
    ...(inputGrammar ? [grammarText(inputGrammar)] : []),
  ];
  return {
    ...others,
    description: words.join("\n\n"),
    parameters: {
      type: "object",
      properties: { [customInput]: { type: "string" } },
      required: [customInput],
      additionalProperties: false,
    },
  };
}

function grammarText({ syntax, definition }: NonNullable<Tool["inputGrammar"]>): string {
  const name = syntax === "regex" ? "regular expression" : "Lark grammar";
  return `The text must match this ${name}:\n\n${definition}`;
}
