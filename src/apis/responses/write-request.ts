import { isObject } from "../../core/json.ts";
import type { Tool, ToolChoice } from "../../core/message.ts";
import { nameWithin } from "../../core/qualified-name.ts";
import type { ChatPrompt, GenerationRequest, OutputConstraint } from "../../core/request.ts";
import { changedBody, withoutUndefined, writeSampling } from "../server-profile.ts";
import type { RequestBody, ServerProfile } from "../server-profile.ts";
import { writeOutput } from "../chat/write-request.ts";
import { openThought } from "./sealed-thought.ts";
import { writeInput } from "./write-input.ts";

/** Members of other APIs' requests that mean the same here. */
const alike = [
  "max_tool_calls",
  "metadata",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "user",
];

/**
 * The body of a Responses request to another server, from the request's neutral members. One that came as a Responses request goes on as
 * it came, but for thoughts that a server of ours has sealed. The prompt must be a conversation.
 */
export function writeResponsesRequest(request: GenerationRequest, profile: ServerProfile): RequestBody {
  const { prompt, passthrough, stream } = request;
  if (prompt.kind !== "chat") throw new TypeError("A Responses request needs a conversation.");
  const body =
    passthrough?.dialect === "responses"
      ? { ...passthrough.body, input: withoutOwnThoughts(passthrough.body["input"]) }
      : responsesMembers(request, prompt);
  body["model"] = profile.model ?? request.model;
  if (stream) body["stream"] = true;
  else {
    delete body["stream"];
    delete body["stream_options"];
  }
  const role = profile.instructionRole;
  if (role && role !== "any" && Array.isArray(body["input"]))
    body["input"] = body["input"].map((item: unknown) => withRole(item, role));
  return changedBody(body, profile);
}

/** Everything that a request of another API asks for but model and stream. Nothing is stored: nobody could ask for it. */
function responsesMembers(request: GenerationRequest, prompt: ChatPrompt): RequestBody {
  const { tools = [], toolChoice, output, reasoning, limits, logprobs, extra } = request;
  // The limit has another name here, and several choices are several requests.
  const { n: _, max_tokens: limit, ...sampling } = writeSampling(request);
  const effort = reasoning?.effort ?? (reasoning?.mode === "off" ? "none" : undefined);
  const summary = reasoning?.show === "summary" ? "auto" : undefined;
  const format = output && formatOf(output);
  const text = withoutUndefined({ format, verbosity: request.verbosity });
  return withoutUndefined({
    ...Object.fromEntries(alike.map((name) => [name, extra[name]])),
    input: writeInput(prompt.messages),
    ...sampling,
    max_output_tokens: limit,
    tools: tools.length > 0 ? writeTools(tools) : undefined,
    tool_choice: toolChoice && writeChoice(toolChoice, tools),
    parallel_tool_calls: request.parallelToolCalls,
    reasoning: (effort ?? summary) ? withoutUndefined({ effort, summary }) : undefined,
    text: Object.keys(text).length > 0 ? text : undefined,
    ...(output && !format && writeOutput(output)),
    ...(logprobs && { include: ["message.output_text.logprobs"], top_logprobs: logprobs.top }),
    truncation: limits.overflow === "drop-oldest" ? "auto" : undefined,
    store: false,
  });
}

/** Tools of a group stand in it. */
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
  // A function is strict here unless its request says that it is not.
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

/** `text.format`; undefined: there is none for it. */
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

/** Another server cannot open what ours has sealed. */
function withoutOwnThoughts(input: unknown): unknown {
  return Array.isArray(input) ? input.filter((item: unknown) => !isOwnThought(item)) : input;
}

function isOwnThought(item: unknown): boolean {
  if (!isObject(item) || item["type"] !== "reasoning") return false;
  const sealed = item["encrypted_content"];
  return typeof sealed === "string" && openThought(sealed) !== null;
}

function withRole(item: unknown, role: "system" | "developer"): unknown {
  if (!isObject(item)) return item;
  return item["role"] === "system" || item["role"] === "developer" ? { ...item, role } : item;
}
