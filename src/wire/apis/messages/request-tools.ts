import { type FailureError, invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { JsonSchema, Tool, ToolChoice } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { Profile } from "../profile.ts";
import { withMark } from "../request/cache-mark.ts";
import { unknownType } from "../request/check-schema.ts";
import { refuseOrWarn } from "../request/vendor-rules.ts";
import { readClientTool } from "./client-tools.ts";
import { modelName, notRun } from "../../core/hosted-tool.ts";
import type { HostedTool } from "../../core/hosted-tool.ts";
import { readHostedTools } from "./hosted-tools.ts";
import { refusal } from "./request-issue.ts";
import { definedTool, isCustomTool, requiredBetas } from "./request-schema.ts";
import type {
  AnthropicTool,
  ApiFeatures,
  CustomTool,
  MessageParam,
  MessageRequest,
  RequestTool,
} from "./request-schema.ts";

type ToolMembers = Pick<GenerationRequest, "tools" | "hostedTools" | "toolChoice" | "parallelToolCalls">;

interface Options {
  readonly profile: Profile;
  /** The request continues as it came to a server that speaks this API. */
  readonly forwards: boolean;
  readonly features: ApiFeatures;
  readonly warnings: string[];
  readonly runs?: ((tool: HostedTool) => boolean) | undefined;
}

/** Anthropic's tools that the client runs, and whose schemas are not known here (client-tools.ts has those that are). */
const clientTypes = /^(bash|text_editor|computer|memory|browser)(_toolset)?_\d+$/;

/**
 * Reads the tools of a request and the choice among them. A deferred tool is available only if the conversation or the choice has named
 * it. Throws `FailureError`.
 */
export function* readMessageTools(body: MessageRequest, options: Options): Steps<ToolMembers> {
  const { available, defined, listings } = yield* toolChanges(body.messages);
  const [inline] = defined;
  if (inline && options.profile.judgesAsVendor && !options.features.betas.has(requiredBetas.inlineTools))
    throw refusal(
      inline.block.path,
      `\`${inline.block.type}\` blocks require anthropic-beta: ${requiredBetas.inlineTools}`,
    );
  const choice = body.tool_choice;
  const listed = (body.tools ?? []).map((tool, index) => ({ tool, path: `tools.${index}` }));
  const isDefined = new Set(defined.map(({ tool }) => tool));
  const tools = new Map<string, Tool>();
  const vendors: { readonly tool: AnthropicTool; readonly path: string }[] = [];
  const pace = new StepCounter();
  for (const { tool, path } of [...listed, ...defined]) {
    const own = isCustomTool(tool) ? undefined : readClientTool(tool, path);
    if (own) tools.set(own.name, own);
    else if (!isCustomTool(tool)) {
      checkVendorTool(tool, path, options);
      vendors.push({ tool, path });
    } else {
      // A tool that the conversation defines may replace an older one of its name.
      if (tools.has(tool.name) && !isDefined.has(tool))
        refuseOrWarn(refusal("tools", "Tool names must be unique."), "Anthropic", options);
      if (options.profile.judgesAsVendor && unknownType(tool.input_schema) !== undefined)
        throw refusal(`${path}.custom.input_schema`, invalidSchema);
      tools.set(tool.name, customTool(tool, `${path}.custom.input_schema`));
    }
    if (pace.endsStep()) yield;
  }
  const hostedTools = readHostedTools(vendors, {
    servers: body.mcp_servers,
    listings,
    knowsListings: options.features.betas.has(requiredBetas.mcpListings),
    forwards: options.forwards,
  });
  const hostedNames = new Map<string, string>();
  for (const tool of options.forwards ? [] : hostedTools) {
    if (options.runs?.(tool) === true) hostedNames.set(tool.name, modelName({ ...tool, tool: tool.name }));
    else options.warnings.push(notRun(tool));
  }
  const toolChoice = choiceOf(body, new Set(tools.keys()), hostedNames, options);
  const deferred = new Set(listed.flatMap(({ tool }) => (tool.defer_loading === true ? [tool.name] : [])));
  const chosen = choice?.type === "tool" ? choice.name : undefined;
  const shown = [...tools.values()].filter(
    ({ name }) => name === chosen || (available.get(name) ?? !deferred.has(name)),
  );
  const isParallel = choice === undefined || choice.type === "none" || choice.disable_parallel_tool_use !== true;
  return {
    ...(shown.length > 0 && { tools: shown }),
    ...(hostedTools.length > 0 && { hostedTools }),
    ...(shown.length + hostedNames.size > 0 && toolChoice && { toolChoice }),
    ...(shown.length + hostedNames.size > 0 && !isParallel && { parallelToolCalls: false }),
  };
}

interface ToolChanges {
  /** By name: whether the conversation added the tool or removed it; the last change counts. */
  readonly available: ReadonlyMap<string, boolean>;
  readonly defined: readonly DefinedTool[];
  /** The blocks that list functions of MCP servers. */
  readonly listings: readonly unknown[];
}

/** A tool that the conversation defines, with the path of its definition, and the block that defines it. */
interface DefinedTool {
  readonly tool: RequestTool;
  readonly path: string;
  readonly block: { readonly type: string; readonly path: string };
}

/**
 * Collects the changes that a conversation makes to the tools: results of a tool search and `tool_addition` add tools, `tool_removal`
 * removes them.
 * Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, and the types of Anthropic's SDK 1.12.0.
 */
function* toolChanges(messages: readonly MessageParam[]): Steps<ToolChanges> {
  const available = new Map<string, boolean>();
  const defined: DefinedTool[] = [];
  const listings: unknown[] = [];
  const readReferences = (content: unknown): void => {
    if (isObject(content)) return readReferences(content["tool_references"] ?? content["content"]);
    if (!Array.isArray(content)) return;
    for (const block of content) {
      if (!isObject(block)) continue;
      if (block["type"] === "tool_reference" && typeof block["tool_name"] === "string")
        available.set(block["tool_name"], true);
      else if (block["type"] === "tool_result" || block["type"] === "tool_search_tool_result")
        readReferences(block["content"]);
    }
  };
  const pace = new StepCounter();
  for (const [at, { content }] of messages.entries()) {
    if (pace.endsStep(1 + (typeof content === "object" ? content.length : 0))) yield;
    readReferences(content);
    if (typeof content !== "object") continue;
    for (const [index, block] of content.entries()) {
      if (block.type === "mcp_tool_listing") listings.push(block);
      if (block.type !== "tool_addition" && block.type !== "tool_removal") continue;
      const definition = definedTool(block);
      const name = definition?.name ?? block.tool["name"];
      if (typeof name === "string") available.set(name, block.type === "tool_addition");
      const path = `messages.${at}.content.${index}`;
      if (definition)
        defined.push({ tool: definition, path: `${path}.tool.definition`, block: { type: block.type, path } });
    }
  }
  return { available, defined, listings };
}

/** Source: errors of 2026-08, https://github.com/anthropics/claude-code/issues/86665. */
const invalidSchema =
  "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview.";

function customTool(tool: CustomTool, path: string): Tool {
  const { name, description, input_schema: schema, strict } = tool;
  const own: Tool = {
    name,
    ...(typeof description === "string" && { description }),
    parameters: schema as JsonSchema,
    ...(typeof strict === "boolean" && { strict }),
    path,
  };
  return withMark(own, tool);
}

function checkVendorTool({ type }: AnthropicTool, path: string, { forwards }: Options): void {
  if (forwards || !clientTypes.test(type)) return;
  throw refusal(
    `${path}.type`,
    `'${type}' is a tool that only Anthropic's models know. Declare it as a custom tool, with its input_schema`,
  );
}

function choiceOf(
  { tools = [], tool_choice: choice }: MessageRequest,
  names: ReadonlySet<string>,
  hosted: ReadonlyMap<string, string>,
  options: Options,
): ToolChoice | undefined {
  if (!choice) return undefined;
  if (tools.length === 0) {
    if (choice.type === "tool") throw toolNotFound(choice.name);
    const message = `tool_choice.${choice.type} may only be specified while providing tools`;
    if (choice.type === "any") throw invalidRequest(message, "tool_choice");
    refuseOrWarn(invalidRequest(message, "tool_choice"), "Anthropic", options);
    return undefined;
  }
  switch (choice.type) {
    case "tool": {
      const { name } = choice;
      const own = hosted.get(name);
      if (own !== undefined) return { type: "named", name: own };
      if (!names.has(name) && !(options.forwards && tools.some((tool) => tool.name === name))) throw toolNotFound(name);
      return { type: "named", name };
    }
    case "any":
      return { type: "required" };
    case "auto":
    case "none":
      return { type: choice.type };
  }
}

function toolNotFound(name: string): FailureError {
  return invalidRequest(`Tool '${name}' not found in provided tools`, "tool_choice");
}
