import * as z from "zod";
import type { Tool, ToolChoice } from "../../core/message.ts";
import { StepCounter } from "../../core/steps.ts";
import { withMark } from "../request/cache-mark.ts";
import type { JsonObject } from "../../core/json.ts";
import { checkName, checkObjectSchema, checkSchema } from "../request/check-schema.ts";
import type { NamedChoice, RequestDraft } from "../request/draft.ts";
import { type RequestParameter, setDraftMember, supportedParameter } from "../request/parameter.ts";
import { arrayTooLong, emptyArray, invalidValue } from "../request/refusals.ts";
import {
  functionCallShape,
  type FunctionDefinition,
  functionsShape,
  type LegacyFunctionChoice,
  type NamedToolChoice,
  toolChoiceShape,
  toolsShape,
  type ChatRequestTool,
  type ChatRequestToolChoice,
} from "./request-schema.ts";

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

/** The work for a tool, whose schema may have to be checked, in units of `Pace`. */
const workPerTool = 8;

/** Tools, and the choice between them. `resolveTools` compares the two when all parameters are read. */
export const toolParameters: readonly RequestParameter[] = [
  supportedParameter(
    "tools",
    {
      endpoints: ["chat"],
      note: "Functions, and custom tools with text input. The calls of a local model follow the grammars of custom tools, `regex` or `lark` (OpenAI's subset).",
      shape: toolsShape,
    },
    function* (value, draft) {
      checkCount("tools", value.length, draft);
      const tools: Tool[] = [];
      const pace = new StepCounter();
      for (const [index, tool] of value.entries()) {
        tools.push(neutralTool(tool, `tools[${index}]`, draft));
        if (pace.endsStep(workPerTool)) yield;
      }
      draft.tools = tools;
    },
  ),
  supportedParameter(
    "tool_choice",
    {
      endpoints: ["chat"],
      note: "`none`, `auto`, `required`, a tool by name, `allowed_tools`. Requires `tools`; profile `lean` also accepts `none` and `auto` without them.",
      shape: toolChoiceShape,
    },
    (value, draft) => {
      draft.toolChoice = neutralChoice(value);
    },
  ),
  supportedParameter(
    "parallel_tool_calls",
    { endpoints: ["chat"], shape: z.boolean() },
    setDraftMember("parallelToolCalls"),
  ),
  supportedParameter(
    "functions",
    {
      endpoints: ["chat"],
      note: "The legacy form of `tools`. The answer has the legacy form too.",
      shape: functionsShape,
    },
    (value, draft) => {
      checkCount("functions", value.length, draft);
      draft.functions = value.map((raw, index) => neutralFunction(raw, `functions[${index}]`, draft));
    },
  ),
  supportedParameter(
    "function_call",
    { endpoints: ["chat"], note: "The legacy form of `tool_choice`.", shape: functionCallShape },
    (value, draft) => {
      draft.functionCall = neutralFunctionCall(value);
    },
  ),
];

/** An empty list is an error at OpenAI; in profile `lean` it means no tools. */
function checkCount(path: string, count: number, draft: RequestDraft): void {
  if (!draft.profile.judgesAsVendor) return;
  if (count === 0) throw emptyArray(path);
  if (count > 128) throw arrayTooLong(path, 128, count);
}

function neutralTool(raw: ChatRequestTool, path: string, draft: RequestDraft): Tool {
  // LiteLLM also reads a mark of the prompt cache inside the function.
  if (raw.type === "function")
    return withMark(withMark(neutralFunction(raw.function, `${path}.function`, draft), raw.function), raw);
  const { name, description, format } = raw.custom;
  const inputGrammar = format?.type === "grammar" ? format.grammar : undefined;
  const tool: Tool = {
    name,
    ...(typeof description === "string" && { description }),
    kind: "custom",
    ...(inputGrammar && { inputGrammar }),
  };
  return withMark(tool, raw);
}

function neutralFunction(
  { name, description, parameters, strict }: FunctionDefinition,
  path: string,
  draft: RequestDraft,
): Tool {
  // An upstream of the same API judges names itself, and a name that it refuses is shortened for it.
  if (draft.profile.judgesAsVendor && !draft.forwards) checkName(`${path}.name`, name);
  checkParameters(name, parameters ?? undefined, strict ?? false, `${path}.parameters`, draft);
  return {
    name,
    ...(typeof description === "string" && { description }),
    ...(parameters && { parameters }),
    ...(typeof strict === "boolean" && { strict }),
  };
}

function checkParameters(
  name: string,
  parameters: JsonObject | undefined,
  strict: boolean,
  path: string,
  draft: RequestDraft,
): void {
  const about = { subject: `function '${name}'`, param: path, code: "invalid_function_parameters" };
  checkObjectSchema(parameters ?? {}, draft.profile, about);
  // A function without parameters has an empty object.
  if (draft.profile.judgesAsVendor) checkSchema(parameters ?? { type: "object" }, strict, about);
}

function neutralChoice(raw: ChatRequestToolChoice): NamedChoice {
  if (typeof raw === "string") return { type: raw };
  if (raw.type === "allowed_tools") {
    const { mode, tools } = raw.allowed_tools;
    const names = tools.map((tool, index) => ({
      name: nameOf(tool),
      path: `tool_choice.allowed_tools.tools[${index}].${tool.type}.name`,
    }));
    return { type: "allowed", mode, names };
  }
  return { type: "named", name: nameOf(raw), path: `tool_choice.${raw.type}.name` };
}

function nameOf(tool: NamedToolChoice): string {
  return tool.type === "function" ? tool.function.name : tool.custom.name;
}

function neutralFunctionCall(raw: LegacyFunctionChoice): NamedChoice {
  return typeof raw === "string" ? { type: raw } : { type: "named", name: raw.name, path: "function_call.name" };
}
