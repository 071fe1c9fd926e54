import { assistantParts } from "../../core/message.ts";
import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type {
  AssistantPart,
  Content,
  ContentPart,
  FilePart,
  Message,
  Tool,
  ToolCall,
  ToolChoice,
} from "../../core/message.ts";
import type { ChatPrompt, GenerationRequest, OutputConstraint, ReasoningOptions } from "../../core/request.ts";
import { asFunction } from "../adapt/custom-tools.ts";
import { membersOf } from "../members.ts";
import { joinSystemMessages, systemMessagesAsUser } from "../adapt/place-system-messages.ts";
import { changedBody, withoutUndefined } from "../adapt/server-profile.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../adapt/server-profile.ts";
import type { SourcePort } from "../source-port.ts";
import { MessageReader } from "./read.ts";
import { countTokensRequest } from "./request-schema.ts";
import { decodeSignature } from "./signature.ts";
import { callInput } from "./write.ts";

/** The Messages API of an upstream. */
export const messagesSource: SourcePort = {
  name: "messages",
  singleChoice: true,
  prewarms: true,
  path: "/messages",
  answerLimit: { members: ["max_tokens"], none: "required" },
  modelsPath: "/models?limit=1000",
  headers: (key) => ({ ...(key !== undefined && { "x-api-key": key }), "anthropic-version": "2023-06-01" }),
  writeRequest: writeMessageRequest,
  tokenCount: {
    path: "/messages/count_tokens",
    writeRequest: writeCountRequest,
    read: (answer) => {
      const tokens = isObject(answer) ? answer["input_tokens"] : undefined;
      return typeof tokens === "number" ? tokens : undefined;
    },
  },
  reader: (options) => new MessageReader(options),
};

/** The API requires a limit. This one is for clients that set none; `requests.add` in the configuration sets another. */
const defaultMaxTokens = 8192;

/**
 * Writes the body of a request to an upstream. A request of this API is sent as it came, without reasoning that this server has signed.
 * Any other is written from its neutral members; its prompt must be a conversation. `note` is called for each system message that moves.
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
      ? { ...passthrough.body, messages: withoutOwnReasoning(passthrough.body["messages"]) }
      : messageMembers(request, prompt, note);
  body["model"] = profile.model ?? request.model;
  if (stream) body["stream"] = true;
  else delete body["stream"];
  return changedBody(body, profile, note);
}

function writeCountRequest(request: GenerationRequest, profile: ServerProfile): RequestBody {
  const { max_tokens: _, ...body } = writeMessageRequest({ ...request, stream: false }, profile);
  // A client of this API has requested a count, and its body has only what it wants counted.
  if (request.passthrough?.dialect === "messages") return body;
  // Anthropic refuses any other member.
  return Object.fromEntries(
    membersOf(countTokensRequest).flatMap(({ name }) => (name in body ? [[name, body[name]]] : [])),
  );
}

/** Anthropic refuses signatures that it has not made. */
function withoutOwnReasoning(messages: unknown): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message: unknown): unknown => {
    if (!isObject(message) || !Array.isArray(message["content"])) return message;
    const content: readonly unknown[] = message["content"];
    const others = content.filter((block) => !isOwnReasoning(block));
    return others.length === content.length ? message : { ...message, content: others };
  });
}

function isOwnReasoning(block: unknown): boolean {
  if (!isObject(block)) return false;
  const { type, signature, data } = block;
  const signed = type === "thinking" ? signature : type === "redacted_thinking" ? data : undefined;
  return typeof signed === "string" && decodeSignature(signed) !== undefined;
}

function messageMembers(request: GenerationRequest, prompt: ChatPrompt, note: NoteAdaptation): RequestBody {
  const { sampling, limits, extra, output, reasoning } = request;
  const choice = writeChoice(request);
  const isForced = choice?.["type"] === "any" || choice?.["type"] === "tool";
  const thinking = isForced && reasoning?.mode === undefined ? undefined : writeThinking(reasoning);
  const isThinking = thinking !== undefined && thinking["type"] !== "disabled";
  const effort = writeEffort(reasoning);
  const format = output && writeFormat(output);
  const { user, prompt_cache_options: cacheOptions } = extra;
  const joined = joinSystemMessages(prompt.messages, (at) => note("system-joined", `messages[${at}]`));
  const conversation = writeConversation(
    systemMessagesAsUser(joined, (at) => note("system-as-user", `messages[${at}]`)),
  );
  fitBreakpoints(conversation);
  const cacheMinutes = isObject(cacheOptions) && cacheOptions["ttl"] === "12h" ? 720 : 30;
  return withoutUndefined({
    ...conversation,
    // A prompt that is only processed is worth its price only if it is cached.
    cache_control:
      limits.maxTokens === 0 && cachedBlocks(conversation).length === 0 ? cacheControl(cacheMinutes) : undefined,
    max_tokens: limits.maxTokens ?? defaultMaxTokens,
    stop_sequences: limits.stop?.filter((text) => text.trim() !== ""),
    // Other APIs allow up to 2. With thinking, Anthropic accepts no temperature.
    temperature: isThinking || sampling.temperature === undefined ? undefined : Math.min(sampling.temperature, 1),
    top_p: sampling.topP,
    top_k: isThinking ? undefined : sampling.topK,
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
      // Anthropic has no choice among several tools. A single one is chosen by its name.
      return choice.mode === "required" && choice.names.length === 1
        ? { type: "tool", name: choice.names[0] }
        : { type: choice.mode === "required" ? "any" : "auto" };
  }
}

/** An effort without a mode leaves it to the model how much it thinks. */
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

interface WrittenConversation {
  /** Absent without instructions. */
  readonly system?: string | RequestBody[];
  readonly messages: RequestBody[];
}

/**
 * Writes the messages of any API as this API has them: instructions before the conversation, results of calls as the user's, consecutive
 * messages of one role as one. Leaves out what the API has no place for: summaries of reasoning, reasoning without Anthropic's signature,
 * names.
 */
function writeConversation(messages: readonly Message[]): WrittenConversation {
  const system: RequestBody[] = [];
  const written: { role: "user" | "assistant"; content: RequestBody[] }[] = [];
  for (const message of messages) {
    const content = blocksOf(message);
    if (message.role === "system" || message.role === "developer") {
      system.push(...content);
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = written.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) written.push({ role, content });
  }
  const instructions = contentOf(system);
  return {
    ...(instructions.length > 0 && { system: instructions }),
    messages: written.map(({ role, content }) => ({ role, content: contentOf(content) })),
  };
}

/** Anthropic has two times; those of OpenAI are longer. */
function cacheControl(minutes: number): RequestBody {
  return { type: "ephemeral", ttl: minutes > 30 ? "1h" : "5m" };
}

/** Anthropic refuses more breakpoints. */
const maxBreakpoints = 4;

/**
 * Removes all but the last breakpoints. Anthropic refuses a longer time after a shorter one, so earlier ones get the longest that follows.
 */
function fitBreakpoints(conversation: WrittenConversation): void {
  const blocks = cachedBlocks(conversation);
  for (const block of blocks.slice(0, -maxBreakpoints)) delete block["cache_control"];
  let longest: unknown;
  for (const block of blocks.slice(-maxBreakpoints).toReversed()) {
    const control = block["cache_control"] as RequestBody;
    if (control["ttl"] === "1h") longest = control;
    else if (longest !== undefined) block["cache_control"] = longest;
  }
}

/** Returns the blocks with a breakpoint, in the order of the prompt. */
function cachedBlocks({ system, messages }: WrittenConversation): RequestBody[] {
  const inside = (content: unknown): RequestBody[] =>
    Array.isArray(content) ? (content as RequestBody[]).flatMap((block) => [...inside(block["content"]), block]) : [];
  const all = [...inside(system), ...messages.flatMap(({ content }) => inside(content))];
  return all.filter((block) => "cache_control" in block);
}

/** A single text is written as a string. */
function contentOf(blocks: RequestBody[]): string | RequestBody[] {
  const [first] = blocks;
  const isText = first?.["type"] === "text" && !("cache_control" in first);
  return blocks.length === 1 && isText ? String(first["text"]) : blocks;
}

function blocksOf(message: Message): RequestBody[] {
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return contentBlocks(message.content);
    case "assistant":
      return assistantParts(message).flatMap((part): RequestBody[] => {
        const block = assistantBlock(part);
        return block ? [block] : [];
      });
    case "tool": {
      const { content, toolCallId, isError } = message;
      return [
        {
          type: "tool_result",
          tool_use_id: writtenId(toolCallId),
          content: typeof content === "string" ? content : contentBlocks(content),
          ...(isError === true && { is_error: true }),
        },
      ];
    }
  }
}

/** Anthropic refuses empty texts. */
function contentBlocks(content: Content): RequestBody[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content.flatMap((part) => {
    if (part.type === "text" && part.text === "") return [];
    const minutes = part.type === "refusal" ? undefined : part.cacheMinutes;
    return [{ ...contentBlock(part), ...(minutes !== undefined && { cache_control: cacheControl(minutes) }) }];
  });
}

function contentBlock(part: ContentPart): RequestBody {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "refusal":
      return { type: "text", text: part.refusal };
    case "image":
      return { type: "image", source: sourceOf(part.url) };
    case "file":
      return { type: "document", source: documentSource(part), ...(part.name !== undefined && { title: part.name }) };
    case "audio":
      throw invalidRequest("The model's server takes no audio.", null, "unsupported_value");
  }
}

function documentSource({ text, data, url, id }: FilePart): RequestBody {
  if (text !== undefined) return { type: "text", media_type: "text/plain", data: text };
  if (data !== undefined) return sourceOf(data.startsWith("data:") ? data : `data:application/pdf;base64,${data}`);
  return url === undefined ? { type: "file", file_id: id ?? "" } : { type: "url", url };
}

function sourceOf(url: string): RequestBody {
  const [, type, data] = /^data:([^;,]*)(?:;[^,]*)?,(.*)$/s.exec(url) ?? [];
  return data === undefined ? { type: "url", url } : { type: "base64", media_type: type, data };
}

function assistantBlock(part: AssistantPart): RequestBody | undefined {
  switch (part.type) {
    case "text":
      return part.text === "" ? undefined : { type: "text", text: part.text };
    case "refusal":
      return { type: "text", text: part.refusal };
    case "image":
      return undefined;
    case "reasoning":
      if (part.signature !== undefined) return { type: "thinking", thinking: part.text, signature: part.signature };
      // Encrypted reasoning with an item's id belongs to another API.
      return part.encrypted !== undefined && part.id === undefined && part.text === ""
        ? { type: "redacted_thinking", data: part.encrypted }
        : undefined;
    case "tool-call":
      return { type: "tool_use", id: writtenId(part.id), name: part.name, input: inputOf(part) };
  }
}

/** Anthropic accepts only letters, digits, `_` and `-` in the id of a call. Other APIs have no such limit. */
function writtenId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, "_");
}

function inputOf({ arguments: text, kind }: ToolCall): unknown {
  return kind === "custom" ? { input: text } : callInput(text);
}
