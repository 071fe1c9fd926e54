import type { ChatPrompt, GenerationRequest, OutputConstraint } from "../../core/request.ts";
import { isObject } from "../../core/json.ts";
import { type AssistantPart, assistantParts, type Message, reasoningOf } from "../../core/message.ts";
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
import { fitMarks, hasMarks, requestMark } from "../adapt/cache-marks.ts";
import { memberAdaptations } from "./fit-members.ts";
import { chatParameters } from "./request.ts";
import { messageAdaptations } from "./fit-messages.ts";
import {
  reasoningStates,
  withCallStates,
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
  const marks = profile.cacheMarks === true && hasMarks(request);
  const body = original
    ? clientBody(request, prompt)
    : chatMembers(
        withExtraFor(request, profile, note),
        profile.states ? prompt : withKnownMakers(prompt),
        legacy,
        marks,
      );
  if (profile.cacheMarks === true) {
    const whole = requestMark(request, profile, false);
    const mark = original ? whole : fitMarks(cacheableParts(body), whole);
    if (mark) body["cache_control"] ??= mark;
  }
  if (profile.templateVariables === true && isThinkingOff(request))
    body["chat_template_kwargs"] = { ...thinkingOff, ...(body["chat_template_kwargs"] as RequestBody | undefined) };
  if (!original) {
    removeReasoningOptions(body, profile, note);
    withoutExtensions(body, chatParameters, profile, note);
  }
  if (original && legacy !== (prompt.legacyFunctions ?? false)) {
    body["messages"] = writeChatMessages(prompt.messages, { legacy, states: true });
    writeToolMembers(body, request, legacy);
  }
  return finishRequestBody(adaptBody(body, chatAdaptations, { profile, request, note }), request, profile, note);
}

/**
 * Returns the prompt without the signatures of an unknown maker, which clients of another API have sent: a server that is not known to take
 * any may refuse them.
 */
function withKnownMakers(prompt: ChatPrompt): ChatPrompt {
  const isUnknown = (part: AssistantPart): boolean =>
    part.type === "reasoning" && part.state !== undefined && part.state.source === undefined;
  const messages = prompt.messages.map((message): Message => {
    if (message.role !== "assistant" || !assistantParts(message).some(isUnknown)) return message;
    const content = assistantParts(message).flatMap((part): readonly AssistantPart[] => {
      if (part.type !== "reasoning" || !isUnknown(part)) return [part];
      const { state: _, ...reasoning } = part;
      return reasoning.text === "" && !reasoning.summary?.length ? [] : [reasoning];
    });
    return { ...message, content };
  });
  return { ...prompt, messages };
}

/** Returns the client's own JSON, whose messages have the states that those of `prompt` have. */
function clientBody(request: GenerationRequest, { messages }: ChatPrompt): RequestBody {
  const { body = {}, sealed, hasOtherStates = false } = request.passthrough ?? {};
  const sent = body["messages"];
  if (!Array.isArray(sent) || (!sealed && !hasOtherStates)) return { ...body };
  // Each message of the prompt is one of the client's.
  if (sent.length !== messages.length)
    return { ...body, messages: writeChatMessages(messages, { states: true, marks: hasMarks(request) }) };
  return { ...body, messages: sent.map((raw: unknown, at) => withStates(raw, messages[at])) };
}

/** Returns a client's message with the states of `message`, and without all others. Lost reasoning comes back, too. */
function withStates(raw: unknown, message: Message | undefined): unknown {
  if (!isObject(raw) || message?.role !== "assistant") return raw;
  const { reasoning_details: _, thinking_blocks: __, tool_calls: calls, ...others } = raw;
  const hasText = typeof raw["reasoning_content"] === "string" || typeof raw["reasoning"] === "string";
  const reasoning = hasText ? undefined : reasoningOf(message);
  return {
    ...others,
    ...(reasoning !== undefined && reasoning !== "" && { reasoning_content: reasoning }),
    ...reasoningStates(message),
    ...(calls !== undefined && {
      tool_calls: Array.isArray(calls) ? withCallStates(calls.filter(isObject), message) : calls,
    }),
  };
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

/** Variables of chat templates: a template reads one of them. */
const thinkingOff = { enable_thinking: false, thinking: false };

function isThinkingOff({ reasoning: { mode, effort } = {} }: GenerationRequest): boolean {
  return mode === "off" || (mode === undefined && effort === "none");
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
 * `legacy`: with `functions` instead of `tools`. `marks`: with the marks of the prompt cache.
 */
export function chatMembers(
  request: GenerationRequest,
  prompt: ChatPrompt,
  legacy = false,
  marks = false,
): RequestBody {
  const { template } = prompt;
  const body: RequestBody = {
    ...request.extra,
    messages: writeChatMessages(prompt.messages, { legacy, states: true, marks }),
    ...writeSampling(request),
    ...withoutUndefined({
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
  writeToolMembers(body, request, legacy, marks);
  return body;
}

/** All that may have a mark of the prompt cache, in the order of the prompt. */
function cacheableParts({ tools, messages }: RequestBody): RequestBody[] {
  const parts = ((messages ?? []) as readonly RequestBody[]).flatMap(({ content }) =>
    Array.isArray(content) ? (content as RequestBody[]) : [],
  );
  return [...((tools ?? []) as RequestBody[]), ...parts];
}

/** Writes the tools in one of the two forms, and removes the other. */
function writeToolMembers(body: RequestBody, request: GenerationRequest, legacy: boolean, marks = false): void {
  const { tools, toolChoice, parallelToolCalls } = request;
  for (const name of ["tools", "tool_choice", "functions", "function_call", "parallel_tool_calls"]) delete body[name];
  // A client of functions has a place for one call only.
  if (!legacy && parallelToolCalls !== undefined) body["parallel_tool_calls"] = parallelToolCalls;
  if (tools && tools.length > 0) {
    if (legacy) body["functions"] = tools.map(writeFunction);
    else body["tools"] = writeChatTools(tools, marks);
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
