import { parametersOf } from "../../core/custom-tool.ts";
import type { Tool, ToolChoice } from "../../core/message.ts";

/**
 * The instruction about tools for a model whose chat template does not support tools. It is added to the system message; the calls are read
 * as `generic-json`.
 */
export function toolInstruction(tools: readonly Tool[], choice: ToolChoice = { type: "auto" }): string {
  const described = tools.map((tool) =>
    JSON.stringify({
      name: tool.name,
      ...(tool.description === undefined ? {} : { description: tool.description }),
      parameters: parametersOf(tool) ?? { type: "object", properties: {} },
    }),
  );
  const call = 'a single JSON object and nothing else: {"name": <function name>, "arguments": <object of arguments>}';
  const must =
    choice.type === "named"
      ? `You must call the function ${JSON.stringify(choice.name)}. Answer with ${call}`
      : choice.type === "required" || (choice.type === "allowed" && choice.mode === "required")
        ? `You must call one of them. Answer with ${call}`
        : `To call one of them, answer with ${call}. If no function is needed, answer in plain text.`;
  return `You can call these functions, each described by a JSON object with the JSON Schema of its parameters:\n${described.join("\n")}\n${must}`;
}
