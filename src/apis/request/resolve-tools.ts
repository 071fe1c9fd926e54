import type { Tool, ToolChoice } from "../../core/message.ts";
import type { NamedChoice, RequestDraft } from "./draft.ts";
import { invalidValue } from "./refusals.ts";

export interface ResolvedTools {
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  /** The request has `functions`, so the answer has `function_call`. */
  readonly legacy: boolean;
  /** The request forces one tool by name. */
  readonly named: boolean;
}

/** Checks the choice of tools against the tools, and converts the legacy form. Throws `FailureError`. */
export function resolveTools(draft: RequestDraft): ResolvedTools {
  const legacy = (draft.tools?.length ?? 0) === 0 && (draft.functions?.length ?? 0) > 0;
  const tools = legacy ? draft.functions : draft.tools;
  const choice = legacy ? draft.functionCall : draft.toolChoice;
  requireTools(
    "tool_choice",
    "tools",
    draft.toolChoice,
    draft.tools,
    requiresNoCall(draft.toolChoice) ? draft : undefined,
  );
  requireTools("parallel_tool_calls", "tools", draft.parallelToolCalls, draft.tools, draft);
  requireTools(
    "function_call",
    "functions",
    draft.functionCall,
    draft.functions,
    requiresNoCall(draft.functionCall) ? draft : undefined,
  );
  if (!tools || tools.length === 0) return { legacy: false, named: false };
  const toolChoice = choice && fittingChoice(choice, tools, legacy ? "functions" : "tools");
  const parallelToolCalls = legacy ? false : draft.parallelToolCalls;
  return {
    tools,
    ...(toolChoice && { toolChoice }),
    ...(parallelToolCalls !== undefined && { parallelToolCalls }),
    legacy,
    named: toolChoice?.type === "named",
  };
}

/** Returns whether a tool choice allows an answer without calls. Some clients send it without any tools. */
function requiresNoCall(choice: NamedChoice | undefined): boolean {
  return choice?.type === "none" || choice?.type === "auto";
}

function requireTools(
  name: string,
  needed: string,
  value: unknown,
  tools: readonly Tool[] | undefined,
  lenient?: RequestDraft,
): void {
  if (value === undefined || (tools && tools.length > 0)) return;
  const message = `'${name}' is only allowed when '${needed}' are specified.`;
  if (lenient?.profile.judgesAsVendor === false) lenient.warnings.push(message);
  else throw invalidValue(name, message);
}

function fittingChoice(choice: NamedChoice, tools: readonly Tool[], parameter: string): ToolChoice {
  switch (choice.type) {
    case "named":
      requireTool(choice.name, choice.path, tools, parameter);
      return { type: "named", name: choice.name };
    case "allowed":
      for (const { name, path } of choice.names) requireTool(name, path, tools, parameter);
      return { type: "allowed", mode: choice.mode, names: choice.names.map(({ name }) => name) };
    default:
      return { type: choice.type };
  }
}

function requireTool(name: string, path: string, tools: readonly Tool[], parameter: string): void {
  if (tools.some((tool) => tool.name === name)) return;
  throw invalidValue(path, `no function named '${name}' was specified in the '${parameter}' parameter.`);
}
