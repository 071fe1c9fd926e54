import type { ChatPrompt, GenerationRequest, OutputConstraint } from "../../core/request.ts";
import { type Adaptation, adaptBody } from "../adapt/adaptations.ts";
import {
  finishRequestBody,
  isOn,
  type NoteAdaptation,
  type RequestBody,
  type ServerProfile,
  withoutExtensions,
  withoutUndefined,
  writeSampling,
} from "../adapt/server-profile.ts";
import { memberAdaptations } from "./fit-members.ts";
import { chatParameters } from "./request.ts";
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
  if (!original) {
    removeReasoningOptions(body, profile, note);
    withoutExtensions(body, chatParameters, profile, note);
  }
  if (original && legacy !== (prompt.legacyFunctions ?? false)) {
    body["messages"] = writeChatMessages(prompt.messages, legacy);
    writeToolMembers(body, request, legacy);
  }
  return finishRequestBody(adaptBody(body, chatAdaptations, { profile, request, note }), request, profile, note);
}

/** The adaptations of chat requests, in the order in which they are applied. */
export const chatAdaptations: readonly Adaptation[] = [...memberAdaptations, ...messageAdaptations];

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
