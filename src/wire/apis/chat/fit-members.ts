import { invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { Adaptation, AdaptationContext } from "../adapt/adaptations.ts";
import { asFunction } from "../adapt/custom-tools.ts";
import { joinContents } from "../adapt/place-system-messages.ts";
import type { RequestBody } from "../adapt/server-profile.ts";
import { needsSimpleSchemas, simplifySchema } from "../adapt/simplify-schema.ts";
import { writeFunction, writeToolChoice } from "./write-messages.ts";

/** The adaptations of the members of a chat request but `messages`, in the order in which they are applied. */
export const memberAdaptations: readonly Adaptation[] = [
  { name: "logprobs", isNeeded: ({ logprobs }) => logprobs === false, adapt: refuseLogprobs },
  { name: "custom-tool", isNeeded: ({ customTools }) => customTools !== true, adapt: withoutCustomTools },
  { name: "allowed-tools", isNeeded: ({ customTools }) => customTools !== true, adapt: withoutAllowedTools },
  { name: "tools-left-out", isNeeded: ({ tools }) => tools === false, adapt: withoutTools },
  { name: "tool-choice", isNeeded: ({ toolChoices }) => toolChoices !== undefined, adapt: withKnownToolChoice },
  { name: "parallel-calls", isNeeded: ({ parallelCalls }) => parallelCalls === false, adapt: withoutParallelCalls },
  { name: "output-format", isNeeded: ({ outputFormats }) => outputFormats !== undefined, adapt: withKnownFormat },
  { name: "simple-schema", isNeeded: needsSimpleSchemas, adapt: withSimpleSchemas },
  { name: "strict-schema", isNeeded: ({ strictSchemas }) => strictSchemas === false, adapt: withoutStrict },
];

/** Log probabilities cannot be made up, so a request for them is refused in words. */
function refuseLogprobs(body: RequestBody): RequestBody {
  for (const name of ["logprobs", "top_logprobs"]) {
    const value = body[name];
    if (value !== undefined && value !== null && value !== false)
      throw invalidRequest(
        `The model's server does not return log probabilities; leave out ${name}.`,
        name,
        "unsupported_parameter",
      );
  }
  return body;
}

/** Writes custom tools as functions, and a choice of one as a choice of the function. */
function withoutCustomTools(body: RequestBody, { request, note }: AdaptationContext): RequestBody {
  const { tools: list, tool_choice: choice } = body;
  if (!Array.isArray(list) || !list.some(isCustomTool)) return body;
  const declared = new Map(request.tools?.map((tool) => [tool.name, tool]));
  const tools = list.map((tool: unknown, at): unknown => {
    const name = isCustomTool(tool) ? nameOf(tool) : undefined;
    if (name === undefined) return tool;
    note("custom-tool", `tools[${at}].type`);
    return { type: "function", function: writeFunction(asFunction(declared.get(name) ?? { name, kind: "custom" })) };
  });
  const chosen = isCustomTool(choice) ? nameOf(choice) : undefined;
  if (chosen === undefined) return { ...body, tools };
  return { ...body, tools, tool_choice: writeToolChoice({ type: "named", name: chosen }, []) };
}

/** Keeps only the tools that `allowed_tools` allows. */
function withoutAllowedTools(body: RequestBody, { request, note }: AdaptationContext): RequestBody {
  const { toolChoice } = request;
  const { tools } = body;
  if (toolChoice?.type !== "allowed" || !Array.isArray(tools)) return body;
  note("allowed-tools", "tool_choice");
  const names = new Set<unknown>(toolChoice.names);
  return {
    ...body,
    tools: tools.filter((tool: unknown) => isObject(tool) && names.has(nameOf(tool))),
    tool_choice: toolChoice.mode,
  };
}

function isCustomTool(tool: unknown): tool is JsonObject {
  return isObject(tool) && tool["type"] === "custom";
}

/** Leaves out the tools, unless the model must call one: then the request is refused in words. */
function withoutTools(body: RequestBody, { note }: AdaptationContext): RequestBody {
  const { tools, tool_choice: choice } = body;
  if (!Array.isArray(tools) || tools.length === 0) return body;
  if (choice !== undefined && choice !== null && choice !== "auto" && choice !== "none")
    throw invalidRequest("The model does not call tools, so none can be required.", "tool_choice", "unsupported_value");
  note("tools-left-out", "tools");
  return withoutMembers(body, toolMembers);
}

const toolMembers = ["tools", "tool_choice", "parallel_tool_calls"];

/**
 * Writes `tool_choice` in a form that the server accepts. A choice of one function becomes that function alone with "required"; "none"
 * leaves out the tools; "required" becomes a choice of the function, where there is only one, or "auto" if the server has nothing stronger.
 */
function withKnownToolChoice(
  body: RequestBody,
  { note, profile: { toolChoices = [] } }: AdaptationContext,
): RequestBody {
  const { tool_choice: choice, tools } = body;
  if (choice === undefined || choice === null) return body;
  const form = isObject(choice) ? "named" : choice;
  if ((toolChoices as readonly unknown[]).includes(form)) return body;
  const known = (["none", "auto", "required", "named"] as const).find((one) => one === form);
  const name = isObject(choice) ? nameOf(choice) : undefined;
  // Another form, such as `allowed_tools`, is the business of another adaptation, or the server's to refuse.
  if (known === undefined || (known === "named" && name === undefined)) return body;
  note("tool-choice", "tool_choice");
  if (known === "none") return withoutMembers(body, toolMembers);
  if (known === "auto") return withoutMembers(body, ["tool_choice"]);
  const chosen =
    known === "named" && Array.isArray(tools)
      ? { ...body, tools: tools.filter((tool: unknown) => isObject(tool) && nameOf(tool) === name) }
      : body;
  const only: unknown = Array.isArray(tools) && tools.length === 1 ? tools[0] : undefined;
  if (known === "required" && toolChoices.includes("named") && isObject(only) && only["type"] === "function")
    return { ...body, tool_choice: { type: "function", function: { name: nameOf(only) } } };
  const forced = known === "named" && toolChoices.includes("required");
  if (forced) return { ...chosen, tool_choice: "required" };
  return toolChoices.includes("auto") ? { ...chosen, tool_choice: "auto" } : withoutMembers(chosen, ["tool_choice"]);
}

function withoutParallelCalls(body: RequestBody, { note }: AdaptationContext): RequestBody {
  if (body["parallel_tool_calls"] === undefined) return body;
  note("parallel-calls", "parallel_tool_calls");
  return withoutMembers(body, ["parallel_tool_calls"]);
}

/**
 * Writes `response_format` as a type that the server accepts: any object as a schema of any object, a schema as any object with the schema
 * in the instructions. If the server has neither, only the instructions ask for JSON.
 */
function withKnownFormat(body: RequestBody, { note, profile: { outputFormats = [] } }: AdaptationContext): RequestBody {
  const { response_format: format, messages } = body;
  if (!isObject(format)) return body;
  const { type, json_schema: described } = format;
  if ((type !== "json_object" && type !== "json_schema") || outputFormats.includes(type)) return body;
  note("output-format", "response_format.type");
  if (type === "json_object" && outputFormats.includes("json_schema")) {
    const anyObject = { type: "json_schema", json_schema: { name: "object", schema: { type: "object" } } };
    return { ...body, response_format: anyObject };
  }
  const { schema } = isObject(described) ? described : {};
  const instruction =
    schema === undefined
      ? "Answer with a JSON object, and nothing else."
      : `Answer with JSON, and nothing else. It must match this JSON Schema:\n${JSON.stringify(schema)}`;
  const asked = Array.isArray(messages) ? { ...body, messages: withInstruction(messages, instruction) } : body;
  if (outputFormats.includes("json_object")) return { ...asked, response_format: { type: "json_object" } };
  return withoutMembers(asked, ["response_format"]);
}

/** Adds an instruction to the system message at the beginning, or one. */
function withInstruction(messages: readonly unknown[], text: string): unknown[] {
  const [first, ...others] = messages;
  if (!isObject(first) || (first["role"] !== "system" && first["role"] !== "developer"))
    return [{ role: "system", content: text }, ...messages];
  return [{ ...first, content: joinContents([first["content"], text]) }, ...others];
}

/** Leaves out `strict` in the definitions of functions and of the answer's schema. */
function withoutStrict(body: RequestBody, { note }: AdaptationContext): RequestBody {
  const { tools: list, response_format: format } = body;
  let adapted = body;
  if (Array.isArray(list)) {
    const tools = list.map((tool: unknown, at): unknown => {
      const inner = isObject(tool) ? tool["function"] : undefined;
      if (!isObject(tool) || !isObject(inner) || inner["strict"] === undefined) return tool;
      note("strict-schema", `tools[${at}].function.strict`);
      return { ...tool, function: withoutMembers(inner, ["strict"]) };
    });
    if (tools.some((tool, at) => tool !== list[at])) adapted = { ...adapted, tools };
  }
  const described = isObject(format) ? format["json_schema"] : undefined;
  if (!isObject(format) || !isObject(described) || described["strict"] === undefined) return adapted;
  note("strict-schema", "response_format.json_schema.strict");
  return { ...adapted, response_format: { ...format, json_schema: withoutMembers(described, ["strict"]) } };
}

function withoutMembers(body: JsonObject, names: readonly string[]): RequestBody {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

/** Returns the name of a tool, or of a choice of one, in a chat request. */
function nameOf(tool: JsonObject): string | undefined {
  const inner = tool[String(tool["type"])];
  const name = isObject(inner) ? inner["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}

/** Simplifies the schemas of functions and of the answer for the server's compiler. */
function withSimpleSchemas(body: RequestBody, { profile, note }: AdaptationContext): RequestBody {
  const adapted = { ...body };
  const simplify = <T>(owner: T, member: string, place: string): T => {
    if (!isObject(owner) || !isObject(owner[member])) return owner;
    const { schema } = simplifySchema(owner[member], owner["strict"] === true, profile);
    if (schema === owner[member]) return owner;
    note("simple-schema", `${place}.${member}`);
    return { ...owner, [member]: schema };
  };
  const { tools, functions, response_format: format } = body;
  if (Array.isArray(tools))
    adapted["tools"] = tools.map((tool: unknown, at) => {
      if (!isObject(tool)) return tool;
      const written = simplify(tool["function"], "parameters", `tools[${at}].function`);
      return written === tool["function"] ? tool : { ...tool, function: written };
    });
  if (Array.isArray(functions))
    adapted["functions"] = functions.map((each: unknown, at) => simplify(each, "parameters", `functions[${at}]`));
  if (isObject(format)) {
    const written = simplify(format["json_schema"], "schema", "response_format.json_schema");
    if (written !== format["json_schema"]) adapted["response_format"] = { ...format, json_schema: written };
  }
  return adapted;
}
