import type { HostedTool, JsonSchema, Tool, ToolChoice } from "../../core/message.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { Profile } from "../profile.ts";
import { unknownType } from "../request/check-schema.ts";
import { refusal } from "./request-issue.ts";
import type { RawRequest, RawTool } from "./request-shapes.ts";
import type { ToolChanges } from "./tool-changes.ts";

export interface ReadTools {
  readonly tools: readonly Tool[];
  readonly hostedTools: readonly HostedTool[];
  readonly toolChoice?: ToolChoice;
  /** Several calls in one message are allowed. */
  readonly parallel: boolean;
}

interface Judge {
  readonly profile: Profile;
  /** The request goes on to a server that speaks this API, as it came. */
  readonly forwards: boolean;
  readonly warnings: string[];
}

/** Tools that the client runs, but whose schema only Anthropic's models know. */
const clientTypes = /^(bash|text_editor|computer|memory|browser)_\d+$/;

/**
 * The tools and the choice between them. A deferred tool is there only when the conversation or the choice has named it. Throws
 * `FailureError`.
 */
export function* readTools(raw: RawRequest, { available, defined }: ToolChanges, judge: Judge): Steps<ReadTools> {
  const choice = raw.tool_choice;
  const listed = (raw.tools ?? []).map((tool, index) => ({ tool, path: `tools.${index}` }));
  // Defined on the way, a tool may take the place of an older one of its name.
  const isDefined = new Set(defined.map(({ tool }) => tool));
  const tools = new Map<string, Tool>();
  const hostedTools: HostedTool[] = [];
  const pace = new Pace();
  for (const { tool, path } of [...listed, ...defined]) {
    if (typeof tool.type === "string" && tool.type !== "custom")
      hostedTools.push(hostedTool(tool.type, tool, path, judge));
    else {
      if (tools.has(tool.name) && !isDefined.has(tool)) complain(judge, "tools", "Tool names must be unique.");
      if (judge.profile.judgesAsVendor && unknownType(tool.input_schema) !== undefined)
        throw refusal(`${path}.custom.input_schema`, invalidSchema);
      tools.set(tool.name, ownTool(tool, `${path}.custom.input_schema`));
    }
    if (pace.isOver()) yield;
  }
  const names = new Set(tools.keys());
  const deferred = new Set(listed.flatMap(({ tool }) => (tool.defer_loading === true ? [tool.name] : [])));
  const isThere = ({ name }: Tool): boolean => name === choice?.name || (available.get(name) ?? !deferred.has(name));
  const toolChoice = choice && neutralChoice(raw, names, judge);
  return {
    tools: [...tools.values()].filter(isThere),
    hostedTools,
    parallel: choice?.disable_parallel_tool_use !== true,
    ...(toolChoice && { toolChoice }),
  };
}

/** Source: errors of 2026-08, https://github.com/anthropics/claude-code/issues/86665. */
const invalidSchema =
  "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview.";

function ownTool({ name, description, input_schema: schema, strict }: RawTool, path: string): Tool {
  return {
    name,
    ...(typeof description === "string" && { description }),
    ...(schema && { parameters: schema as JsonSchema }),
    ...(typeof strict === "boolean" && { strict }),
    path,
  };
}

function hostedTool(type: string, tool: RawTool, path: string, { forwards, warnings }: Judge): HostedTool {
  if (!forwards) {
    if (clientTypes.test(type))
      throw refusal(
        `${path}.type`,
        `'${type}' is a tool that only Anthropic's models know. Declare it as a custom tool, with its input_schema`,
      );
    warnings.push(`${path}: there is no server here that runs ${type}; the answer is made without it`);
  }
  return { type: type.replace(/_\d+$/, ""), declaration: { ...tool } };
}

function neutralChoice(raw: RawRequest, names: ReadonlySet<string>, judge: Judge): ToolChoice | undefined {
  const choice = raw.tool_choice;
  if (!choice) return undefined;
  if (raw.tools === undefined || raw.tools.length === 0) {
    if (choice.type === "tool" || choice.type === "any")
      throw refusal("tool_choice", "may only be specified while providing tools");
    complain(judge, "tool_choice", "may only be specified while providing tools");
    return undefined;
  }
  switch (choice.type) {
    case "tool": {
      const { name = "" } = choice;
      if (!names.has(name) && !(judge.forwards && raw.tools.some((tool) => tool.name === name)))
        throw refusal("tool_choice", `Tool '${name}' not found in provided tools`);
      return { type: "named", name };
    }
    case "any":
      return { type: "required" };
    case "auto":
    case "none":
      return { type: choice.type };
  }
}

/** What Anthropic refuses, and can be served. */
function complain({ profile, warnings }: Judge, path: string, words: string): void {
  if (profile.judgesAsVendor) throw refusal(path, words);
  warnings.push(`${path}: ${words}`);
}
