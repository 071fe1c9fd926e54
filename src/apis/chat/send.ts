import type { ChatPrompt, GenerationRequest, OutputConstraint } from "../../core/request.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { asFunction } from "../adapt/custom-tools.ts";
import { type Adaptation, type AdaptationContext, adaptBody, isOn, type NoteAdaptation } from "../adapt/adaptations.ts";
import {
  finishRequestBody,
  type RequestBody,
  type ServerProfile,
  withoutUndefined,
  writeSampling,
} from "../adapt/server-profile.ts";
import { needsSimpleSchemas, simplifySchema } from "../adapt/simplify-schema.ts";
import { messageAdaptations } from "./fit-messages.ts";
import {
  writeChatMessages,
  writeChatTools,
  writeFunction,
  writeFunctionChoice,
  writeToolChoice,
} from "./write-messages.ts";

/**
 * Writes the body of a chat request to another server. A request that came as a chat request is forwarded as it came, unknown members
 * included; any other is written from its API-neutral members. Both are adapted to what the server accepts (`profile`). `note` is called for
 * each adaptation. Throws `TypeError` for a prompt that is not a conversation.
 */
export function writeChatRequest(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, passthrough } = request;
  if (prompt.kind !== "chat") throw new TypeError("A chat request needs a conversation.");
  const legacy = profile.legacyFunctions ?? false;
  const original = passthrough?.dialect === "chat" ? passthrough.body : undefined;
  const body = original ? { ...original } : chatMembers(withExtraFor(request, profile, note), prompt, legacy);
  if (!original) removeReasoningOptions(body, profile, note);
  if (original && legacy !== (prompt.legacyFunctions ?? false)) {
    body["messages"] = writeChatMessages(prompt.messages, legacy);
    writeToolMembers(body, request, legacy);
  }
  return finishRequestBody(adaptBody(body, adaptations, { profile, request, note }), request, profile);
}

/** The adaptations of chat requests, in the order in which they are applied. */
const adaptations: readonly Adaptation[] = [
  { name: "custom-tool", isNeeded: ({ customTools }) => customTools !== true, adapt: withoutCustomTools },
  { name: "allowed-tools", isNeeded: ({ customTools }) => customTools !== true, adapt: withoutAllowedTools },
  { name: "simple-schema", isNeeded: needsSimpleSchemas, adapt: withSimpleSchemas },
  ...messageAdaptations,
];

/** Members that the requests of OpenAI's APIs have in common. Source: https://platform.openai.com/docs/api-reference. */
const sharedRequestMembers: ReadonlySet<string> = new Set([
  "metadata",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "user",
]);

/** Returns the request without the members that only the client's API has. */
function withExtraFor(request: GenerationRequest, profile: ServerProfile, note: NoteAdaptation): GenerationRequest {
  const { extra, passthrough } = request;
  if (!passthrough || !isOn(profile, "foreign-member")) return request;
  const isShared = (name: string): boolean => profile.sharedMembers === true && sharedRequestMembers.has(name);
  const kept = Object.entries(extra)
    .filter(([name]) => isShared(name))
    // Chat completions do not have this tier of Responses.
    .map(([name, value]) => [name, name === "service_tier" && value === "ultrafast" ? "priority" : value]);
  for (const name of Object.keys(extra)) if (!isShared(name)) note("foreign-member", name);
  return { ...request, extra: Object.fromEntries(kept) };
}

/** Removes the reasoning effort and budget if the server may refuse them. */
function removeReasoningOptions(body: RequestBody, profile: ServerProfile, note: NoteAdaptation): void {
  if (!isOn(profile, "reasoning-effort")) return;
  const refused = [
    ...(profile.reasoningEffort === true ? [] : ["reasoning_effort"]),
    ...(profile.reasoningBudget === true ? [] : ["thinking_token_budget"]),
  ];
  for (const name of refused) {
    if (body[name] === undefined) continue;
    delete body[name];
    note("reasoning-effort", name);
  }
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

/** Returns the name of a tool in a chat request. */
function nameOf(tool: JsonObject): string | undefined {
  const inner = tool[String(tool["type"])];
  const name = isObject(inner) ? inner["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}

/**
 * Writes all members of a chat request but `model` and `stream`, under the names of OpenAI and of the servers that extended its API.
 * `legacy`: with `functions` instead of `tools`.
 */
export function chatMembers(request: GenerationRequest, prompt: ChatPrompt, legacy = false): RequestBody {
  const { template } = prompt;
  const body: RequestBody = {
    ...request.extra,
    messages: writeChatMessages(prompt.messages, legacy),
    ...writeSampling(request),
    ...withoutUndefined({
      parallel_tool_calls: request.parallelToolCalls,
      reasoning_effort: request.reasoning?.effort ?? (request.reasoning?.mode === "off" ? "none" : undefined),
      thinking_token_budget: request.reasoning?.budgetTokens,
      reasoning_format: request.reasoning?.inText === true ? "none" : undefined,
      prediction: request.prediction === undefined ? undefined : { type: "content", content: request.prediction },
      verbosity: request.verbosity,
      chat_template_kwargs: template.variables,
      documents: template.documents,
      add_generation_prompt: template.addGenerationPrompt,
      continue_final_message: template.continueFinalMessage,
      response_prefix: template.responsePrefix,
    }),
    ...(request.logprobs && { logprobs: true, top_logprobs: request.logprobs.top }),
    ...(request.output && writeOutput(request.output)),
  };
  writeToolMembers(body, request, legacy);
  return body;
}

/** Writes the tools in one of the two forms, and removes the other. */
function writeToolMembers(body: RequestBody, request: GenerationRequest, legacy: boolean): void {
  const { tools, toolChoice } = request;
  for (const name of ["tools", "tool_choice", "functions", "function_call"]) delete body[name];
  if (legacy) delete body["parallel_tool_calls"];
  if (tools && tools.length > 0) {
    if (legacy) body["functions"] = tools.map(writeFunction);
    else body["tools"] = writeChatTools(tools);
  }
  if (toolChoice) {
    if (legacy) body["function_call"] = writeFunctionChoice(toolChoice);
    else body["tool_choice"] = writeToolChoice(toolChoice, tools ?? []);
  }
}

/** Writes `response_format`, or the members of vLLM and llama.cpp for constraints that OpenAI does not have. */
export function writeOutput(output: OutputConstraint): RequestBody {
  switch (output.type) {
    case "text":
      return { response_format: { type: "text" } };
    case "json-object":
      return { response_format: { type: "json_object" } };
    case "json-schema": {
      const { name, description, schema, strict } = output;
      const described = description === undefined ? {} : { description };
      return { response_format: { type: "json_schema", json_schema: { name, ...described, schema, strict } } };
    }
    case "grammar":
      return { grammar: output.gbnf };
    case "regex":
      return { guided_regex: output.pattern };
    case "choice":
      return { guided_choice: output.options };
  }
}
