import { assistantParts } from "../../core/message.ts";
import { isObject } from "../../core/json.ts";
import type { AssistantPart, Content, ContentPart, Message, Tool, ToolCall, ToolChoice } from "../../core/message.ts";
import { nameWithin } from "../../core/custom-tool.ts";
import type { ChatPrompt, GenerationRequest, OutputConstraint, Passthrough } from "../../core/request.ts";
import { writeOutput } from "../chat/send.ts";
import { adaptBody } from "../adapt/adaptations.ts";
import { bearer } from "../api-error-format.ts";
import { changedBody, isOn, withoutExtensions, withoutUndefined, writeSampling } from "../adapt/server-profile.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../adapt/server-profile.ts";
import type { SourcePort } from "../source-port.ts";
import { customToolsOfResponses } from "./fit-custom-tools.ts";
import { fitItems, fitOwnItems, type ItemContext, writeReasoning } from "./fit-items.ts";
import { responsesParameters } from "./parameters.ts";
import { ResponseReader } from "./read.ts";

/** The `/responses` of another server. */
export const responsesSource: SourcePort = {
  name: "responses",
  singleChoice: true,
  prewarms: true,
  path: "/responses",
  answerLimit: { members: ["max_output_tokens"], none: "absent" },
  headers: bearer,
  writeRequest: writeResponsesRequest,
  tokenCount: {
    path: "/responses/input_tokens",
    writeRequest: writeCountRequest,
    read: (answer) => {
      const tokens = isObject(answer) ? answer["input_tokens"] : undefined;
      return typeof tokens === "number" ? tokens : undefined;
    },
  },
  compactPath: "/responses/compact",
  reader: (options) => new ResponseReader(options),
};

/** Members that mean the same in the requests of other APIs. */
const sharedNames = [
  "max_tool_calls",
  "metadata",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "user",
];

/**
 * Returns the body of a Responses request to another server. A request that came as a Responses request is passed on unchanged, except
 * what the server would refuse of earlier turns. The prompt must be a conversation.
 */
export function writeResponsesRequest(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, passthrough, stream } = request;
  if (prompt.kind !== "chat") throw new TypeError("A Responses request needs a conversation.");
  const body =
    passthrough?.dialect === "responses"
      ? ownMembers(passthrough, prompt.messages, profile, note)
      : withoutExtensions(responsesMembers(request, prompt, profile, note), responsesParameters, profile, note);
  body["model"] = profile.model ?? request.model;
  if (stream) body["stream"] = true;
  else {
    delete body["stream"];
    delete body["stream_options"];
  }
  const role = profile.instructionRole;
  if (role && role !== "any" && isOn(profile, "instruction-role") && Array.isArray(body["input"]))
    body["input"] = body["input"].map((item: unknown, at) => {
      const adapted = withRole(item, role);
      if (adapted !== item) note("instruction-role", `input[${at}].role`);
      return adapted;
    });
  return changedBody(adaptBody(body, [customToolsOfResponses], { profile, request, note }), profile, note);
}

/** The members of a request whose tokens are counted. Source: OpenAI's specification, `TokenCountsBody`. */
const countedMembers = [
  "conversation",
  "input",
  "instructions",
  "model",
  "parallel_tool_calls",
  "personality",
  "previous_response_id",
  "reasoning",
  "text",
  "tool_choice",
  "tools",
  "truncation",
];

function writeCountRequest(request: GenerationRequest, profile: ServerProfile): RequestBody {
  const body = writeResponsesRequest({ ...request, stream: false }, profile);
  return Object.fromEntries(countedMembers.flatMap((name) => (name in body ? [[name, body[name]]] : [])));
}

/** Returns the client's own members. The server stores the response unless the client says that it must not. */
function ownMembers(
  passthrough: Passthrough,
  messages: readonly Message[],
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  const { input, store } = passthrough.body;
  const body = { ...withoutEncryption(passthrough.body, profile, note) };
  if (Array.isArray(input))
    body["input"] = fitOwnItems(input, passthrough, messages, { profile, note, stores: store !== false });
  return body;
}

/** Returns the members for a request of another API, except model and stream. The response is not stored: no client could retrieve it. */
function responsesMembers(
  request: GenerationRequest,
  prompt: ChatPrompt,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  const context: ItemContext = { profile, note, stores: false };
  const { tools = [], toolChoice, output, reasoning, limits, logprobs, extra } = request;
  // The limit has another name here, and each choice is a request of its own.
  const { n: _, max_tokens: limit, ...sampling } = writeSampling(request);
  const effort = reasoning?.effort ?? (reasoning?.mode === "off" ? "none" : undefined);
  const summary = reasoning?.show === "summary" ? "auto" : undefined;
  const format = output && formatOf(output);
  const text = withoutUndefined({ format, verbosity: request.verbosity });
  return withoutUndefined({
    ...Object.fromEntries(sharedNames.map((name) => [name, extra[name]])),
    input: fitItems(writeInput(prompt.messages, context), context),
    ...sampling,
    max_output_tokens: limit === 0 ? undefined : limit,
    prompt_cache_options: limit === 0 ? { prewarm: true } : undefined,
    tools: tools.length > 0 ? writeTools(tools) : undefined,
    tool_choice: toolChoice && writeChoice(toolChoice, tools),
    parallel_tool_calls: request.parallelToolCalls,
    reasoning: (effort ?? summary) ? withoutUndefined({ effort, summary }) : undefined,
    text: Object.keys(text).length > 0 ? text : undefined,
    ...(output && !format && writeOutput(output)),
    include: includedMembers(profile, logprobs !== undefined),
    top_logprobs: logprobs?.top,
    truncation: limits.overflow === "drop-oldest" ? "auto" : undefined,
    store: false,
  });
}

/** Tools of a namespace are inside it. */
function writeTools(tools: readonly Tool[]): RequestBody[] {
  const written: RequestBody[] = [];
  const groups = new Map<string, RequestBody[]>();
  for (const tool of tools) {
    const { namespace } = tool;
    if (namespace === undefined) {
      written.push(writeTool(tool, tool.name));
      continue;
    }
    let group = groups.get(namespace);
    if (!group) {
      groups.set(namespace, (group = []));
      written.push({ type: "namespace", name: namespace, tools: group });
    }
    group.push(writeTool(tool, nameWithin(namespace, tool.name)));
  }
  return written;
}

function writeTool({ kind, description, parameters, strict, inputGrammar, deferred }: Tool, name: string): RequestBody {
  const described = withoutUndefined({ name, description, defer_loading: deferred });
  if (kind === "custom") {
    return { type: "custom", ...described, ...(inputGrammar && { format: { type: "grammar", ...inputGrammar } }) };
  }
  // The API makes a function strict unless the request says that it is not.
  return { type: "function", ...described, parameters: parameters ?? null, strict: strict ?? false };
}

function writeChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  const named = (name: string): RequestBody => {
    const { kind = "function", namespace } = tools.find((tool) => tool.name === name) ?? {};
    const group = namespace !== undefined && { namespace };
    return { type: kind, name: namespace === undefined ? name : nameWithin(namespace, name), ...group };
  };
  switch (choice.type) {
    case "none":
    case "auto":
    case "required":
      return choice.type;
    case "named":
      return named(choice.name);
    case "allowed":
      return { type: "allowed_tools", mode: choice.mode, tools: choice.names.map(named) };
  }
}

/** Returns `text.format`, or `undefined` if the API has no such format. */
function formatOf(output: OutputConstraint): RequestBody | undefined {
  switch (output.type) {
    case "text":
      return { type: "text" };
    case "json-object":
      return { type: "json_object" };
    case "json-schema": {
      const { name, description, schema, strict } = output;
      return withoutUndefined({ type: "json_schema", name, description, schema, strict });
    }
    case "grammar":
    case "regex":
    case "choice":
      return undefined;
  }
}

/** Asks for what later requests demand, if the server has it. `logprobs`: they are asked for, too. */
function includedMembers(
  { encryptedReasoning = true }: ServerProfile,
  logprobs: boolean,
): readonly string[] | undefined {
  const included = [
    ...(logprobs ? ["message.output_text.logprobs"] : []),
    ...(encryptedReasoning ? [encryptedContent] : []),
  ];
  return included.length > 0 ? included : undefined;
}

const encryptedContent = "reasoning.encrypted_content";

/** The client's own `include`, without what the server refuses. */
function withoutEncryption(
  body: RequestBody,
  { encryptedReasoning }: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  const { include, ...rest } = body;
  if (encryptedReasoning !== false || !Array.isArray(include) || !include.includes(encryptedContent)) return body;
  note("encrypted-reasoning", "include");
  const left = include.filter((value) => value !== encryptedContent);
  return left.length > 0 ? { ...rest, include: left } : rest;
}

function withRole(item: unknown, role: "system" | "developer"): unknown {
  if (!isObject(item)) return item;
  return item["role"] === "system" || item["role"] === "developer" ? { ...item, role } : item;
}

/**
 * Returns a conversation of any API as items. Left out is what items cannot express: names of speakers, whether a tool failed, and
 * reasoning that the server does not take.
 */
function writeInput(messages: readonly Message[], context: ItemContext): RequestBody[] {
  const items: RequestBody[] = [];
  const custom = new Set<string>();
  for (const message of messages) {
    switch (message.role) {
      case "system":
      case "developer":
      case "user":
        items.push({ role: message.role, content: writeContent(message.content) });
        break;
      case "assistant":
        for (const part of assistantParts(message)) {
          if (part.type === "tool-call" && part.kind === "custom") custom.add(part.id);
          const item = writeItem(part, context);
          if (item) items.push(item);
        }
        break;
      case "tool": {
        const type = custom.has(message.toolCallId) ? "custom_tool_call_output" : "function_call_output";
        items.push({ type, call_id: message.toolCallId, output: writeContent(message.content) });
      }
    }
  }
  return items;
}

function writeItem(part: AssistantPart, context: ItemContext): RequestBody | undefined {
  switch (part.type) {
    case "text": {
      const phase = part.phase !== undefined && { phase: part.phase };
      return { role: "assistant", content: part.text, ...phase };
    }
    case "refusal":
      return { type: "message", role: "assistant", content: [{ type: "refusal", refusal: part.refusal }] };
    case "image":
      return undefined;
    case "reasoning":
      return writeReasoning(part, context);
    case "tool-call":
      return writeCall(part);
  }
}

function writeCall({ id, name, arguments: text, kind, namespace }: ToolCall): RequestBody {
  const group = namespace !== undefined && { namespace };
  const called = { call_id: id, name: namespace === undefined ? name : nameWithin(namespace, name), ...group };
  return kind === "custom"
    ? { type: "custom_tool_call", ...called, input: text }
    : { type: "function_call", ...called, arguments: text };
}

function writeContent(content: Content): string | RequestBody[] {
  return typeof content === "string" ? content : content.map(writePart);
}

function writePart(part: ContentPart): RequestBody {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "refusal":
      return { type: "input_text", text: part.refusal };
    case "image":
      return { type: "input_image", image_url: part.url, detail: part.detail ?? "auto" };
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      if (part.text !== undefined) return { type: "input_text", text: part.text };
      return {
        type: "input_file",
        ...(part.name !== undefined && { filename: part.name }),
        ...(part.data !== undefined && { file_data: part.data }),
        ...(part.url !== undefined && { file_url: part.url }),
        ...(part.id !== undefined && { file_id: part.id }),
      };
  }
}
