import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { Tool, ToolChoice } from "../../core/message.ts";
import type { ChatPrompt, GenerationRequest, OutputConstraint, ReasoningOptions } from "../../core/request.ts";
import { asFunction } from "../custom-tool.ts";
import { changedBody, withoutUndefined } from "../server-profile.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../server-profile.ts";
import { placeSystemMessages } from "../place-system-messages.ts";
import { openThought } from "./sealed-thought.ts";
import { writeConversation } from "./write-conversation.ts";

/** The API wants a limit. What a client sets that does not say one; `requests.add` in the configuration sets another. */
const defaultMaxTokens = 8192;

/**
 * The body of a Messages request to another server, from the request's neutral members. One that came as a Messages request goes on as
 * it came, but for thoughts that a server of ours has signed. The prompt must be a conversation. `note` is called for each system message
 * that moves.
 */
export function writeMessageRequest(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, passthrough, stream } = request;
  if (prompt.kind !== "chat") throw new TypeError("A Messages request needs a conversation.");
  const body =
    passthrough?.dialect === "messages"
      ? { ...passthrough.body, messages: withoutOwnThoughts(passthrough.body["messages"]) }
      : messageMembers(request, prompt, note);
  body["model"] = profile.model ?? request.model;
  if (stream) body["stream"] = true;
  else delete body["stream"];
  return changedBody(body, profile);
}

function messageMembers(request: GenerationRequest, prompt: ChatPrompt, note: NoteAdaptation): RequestBody {
  const { sampling, limits, extra, output, reasoning } = request;
  const choice = writeChoice(request);
  const thinking = isForced(choice) && reasoning?.mode === undefined ? undefined : writeThinking(reasoning);
  const thinks = thinking !== undefined && thinking["type"] !== "disabled";
  const effort = writeEffort(reasoning);
  const format = output && writeFormat(output);
  const user = extra["user"];
  return withoutUndefined({
    ...writeConversation(placeSystemMessages(prompt.messages, note)),
    max_tokens: limits.maxTokens ?? defaultMaxTokens,
    stop_sequences: limits.stop?.filter((text) => text.trim() !== ""),
    // Other APIs go to 2. A model that thinks has a temperature of its own.
    temperature: thinks || sampling.temperature === undefined ? undefined : Math.min(sampling.temperature, 1),
    top_p: sampling.topP,
    top_k: thinks ? undefined : sampling.topK,
    tools: request.tools?.length ? request.tools.map(writeTool) : undefined,
    tool_choice: choice,
    thinking,
    output_config: effort || format ? { ...(effort && { effort }), ...(format && { format }) } : undefined,
    metadata: typeof user === "string" ? { user_id: user } : undefined,
  });
}

function writeTool(tool: Tool): RequestBody {
  const { name, description, parameters, strict } = asFunction(tool);
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: { type: "object", ...(isObject(parameters) && parameters) },
    ...(strict !== undefined && { strict }),
  };
}

function writeChoice({ tools, toolChoice, parallelToolCalls }: GenerationRequest): RequestBody | undefined {
  if (!tools?.length) return undefined;
  const choice = toolChoice && choiceOf(toolChoice);
  if (parallelToolCalls !== false || choice?.["type"] === "none") return choice;
  return { type: "auto", ...choice, disable_parallel_tool_use: true };
}

function choiceOf(choice: ToolChoice): RequestBody {
  switch (choice.type) {
    case "none":
    case "auto":
      return { type: choice.type };
    case "required":
      return { type: "any" };
    case "named":
      return { type: "tool", name: choice.name };
    case "allowed":
      // There is no choice among some; one is by name.
      return choice.mode === "required" && choice.names.length === 1
        ? { type: "tool", name: choice.names[0] }
        : { type: choice.mode === "required" ? "any" : "auto" };
  }
}

function isForced(choice: RequestBody | undefined): boolean {
  return choice?.["type"] === "any" || choice?.["type"] === "tool";
}

/** An effort without more asks for as much thought as the model sees fit. */
function writeThinking(reasoning: ReasoningOptions = {}): RequestBody | undefined {
  const { effort, mode, budgetTokens, show } = reasoning;
  const display = show === "omitted" ? "omitted" : show === undefined ? undefined : "summarized";
  if (mode === "off" || (mode === undefined && effort === "none")) return { type: "disabled" };
  if (mode === undefined && effort === undefined && budgetTokens === undefined) return undefined;
  if (budgetTokens === undefined) return withoutUndefined({ type: "adaptive", display });
  return withoutUndefined({ type: "enabled", budget_tokens: Math.max(budgetTokens, 1024), display });
}

function writeEffort({ effort }: ReasoningOptions = {}): string | undefined {
  return effort === "none" ? undefined : effort === "minimal" ? "low" : effort;
}

function writeFormat(output: OutputConstraint): RequestBody | undefined {
  switch (output.type) {
    case "json-schema":
      return { type: "json_schema", schema: output.schema };
    case "text":
    case "json-object":
      return undefined;
    case "grammar":
    case "regex":
    case "choice":
      throw invalidRequest("The model's server holds answers to JSON schemas only.", output.path, "unsupported_value");
  }
}

/** Anthropic refuses signatures that it did not make. */
function withoutOwnThoughts(messages: unknown): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message: unknown): unknown => {
    if (!isObject(message) || !Array.isArray(message["content"])) return message;
    const content: readonly unknown[] = message["content"];
    const others = content.filter((block) => !isOwnThought(block));
    return others.length === content.length ? message : { ...message, content: others };
  });
}

function isOwnThought(block: unknown): boolean {
  if (!isObject(block)) return false;
  const seal =
    block["type"] === "thinking" ? block["signature"] : block["type"] === "redacted_thinking" ? block["data"] : "";
  return typeof seal === "string" && openThought(seal) !== undefined;
}
