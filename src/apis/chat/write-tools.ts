import type { Tool, ToolChoice } from "../../core/message.ts";
import type { RequestBody } from "../server-profile.ts";

/** Writes tools in the form of a chat request. */
export function writeChatTools(tools: readonly Tool[]): RequestBody[] {
  return tools.map((tool) =>
    tool.kind === "custom"
      ? { type: "custom", custom: { name: tool.name, ...described(tool), ...inputFormat(tool) } }
      : { type: "function", function: writeFunction(tool) },
  );
}

function inputFormat({ inputGrammar }: Pick<Tool, "inputGrammar">): RequestBody {
  return inputGrammar === undefined ? {} : { format: { type: "grammar", grammar: inputGrammar } };
}

/** Writes a tool as an entry of the legacy `functions`, which is also the member `function` of a tool. */
export function writeFunction(tool: Tool): RequestBody {
  const { parameters, strict } = tool;
  return {
    name: tool.name,
    ...described(tool),
    ...(parameters !== undefined && { parameters }),
    ...(strict !== undefined && { strict }),
  };
}

function described({ description }: Pick<Tool, "description">): RequestBody {
  return description === undefined ? {} : { description };
}

/** Writes `tool_choice`. `tools`: the tools of the request; a choice of a custom tool has another form than a choice of a function. */
export function writeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  const named = (name: string): RequestBody => {
    const kind = tools.find((tool) => tool.name === name)?.kind ?? "function";
    return { type: kind, [kind]: { name } };
  };
  switch (choice.type) {
    case "none":
    case "auto":
    case "required":
      return choice.type;
    case "named":
      return named(choice.name);
    case "allowed":
      return { type: "allowed_tools", allowed_tools: { mode: choice.mode, tools: choice.names.map(named) } };
  }
}

/** Writes `function_call`: "none", "auto", or a function by name. The legacy form has no "required", which becomes "auto". */
export function writeFunctionChoice(choice: ToolChoice): unknown {
  if (choice.type === "named") return { name: choice.name };
  return choice.type === "none" ? "none" : "auto";
}
