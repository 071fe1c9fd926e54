import { assistantParts, WordIds } from "../../core/message.ts";
import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { MessageStates } from "../adapt/message-states.ts";
import type {
  AssistantPart,
  CacheablePart,
  Content,
  ContentPart,
  FilePart,
  Message,
  ReasoningPart,
  RefusalPart,
  Tool,
  ToolCall,
  ToolChoice,
} from "../../core/message.ts";
import type {
  ChatPrompt,
  GenerationRequest,
  OutputConstraint,
  Passthrough,
  ReasoningOptions,
} from "../../core/request.ts";
import { cacheControl, fitMarks, hasMarks, requestMark } from "../adapt/cache-marks.ts";
import { asFunction } from "../adapt/custom-tools.ts";
import { membersOf } from "../members.ts";
import { joinSystemMessages, systemMessagesAsUser } from "../adapt/place-system-messages.ts";
import { changedBody, dropMembers, withoutUndefined } from "../adapt/server-profile.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../adapt/server-profile.ts";
import type { SourcePort } from "../source-port.ts";
import { MessageReader } from "./read.ts";
import { claudeVersion, fittingEffort, thinkingBudget } from "./claude-versions.ts";
import type { ClaudeVersion } from "./claude-versions.ts";
import { countTokensRequest } from "./request-schema.ts";
import {
  demandsThinking,
  unsignedThinking,
  withDemandedThinking,
  withFittingThinking,
  withVersionThinking,
  withoutTurnThinking,
} from "./thinking-turn.ts";
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
  const model = profile.model ?? request.model;
  const version = claudeVersion(model);
  let body: RequestBody;
  // The server of the model that a client has named judges its members itself.
  let isForVersion = false;
  if (passthrough?.dialect === "messages") {
    isForVersion = claudeVersion(passthrough.body["model"]) === version;
    body = { ...passthrough.body, model, messages: withStates(passthrough, prompt.messages, profile) };
    if (version && !isForVersion) body = withVersionThinking(body, version, profile, note);
    body = withFittingThinking(body, profile, note);
  } else body = { model, ...messageMembers(request, prompt, profile, note) };
  if (version?.refusesSampling && !isForVersion) dropMembers(body, ["temperature", "top_p", "top_k"], profile, note);
  const samplesTwice = body["temperature"] !== undefined && body["top_p"] !== undefined;
  if (version?.samplesOneWay && samplesTwice && !isForVersion) dropMembers(body, ["top_p"], profile, note);
  body["max_tokens"] ??= defaultMaxTokens;
  if (demandsThinking(profile)) body["messages"] = withDemandedThinking(body["messages"], note);
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

/**
 * Returns the client's messages with the states that `messages` has of them: Anthropic refuses signatures that it has not made. Sealed values
 * are replaced by what they contain.
 */
function withStates(
  { body, sealed, hasOtherStates }: Passthrough,
  messages: readonly Message[],
  profile: ServerProfile,
): unknown {
  const sent = body["messages"];
  if (!Array.isArray(sent) || (!sealed && hasOtherStates !== true)) return sent;
  const states = new MessageStates(messages);
  return sent.flatMap((message: unknown): readonly unknown[] => {
    if (!isObject(message) || message["role"] !== "assistant" || !Array.isArray(message["content"])) return [message];
    const blocks: readonly JsonObject[] = message["content"].filter(isObject);
    const kept = blocks.flatMap((block): readonly JsonObject[] => {
      const { type } = block;
      if (type !== "thinking" && type !== "redacted_thinking") return [block];
      const name = type === "thinking" ? "signature" : "data";
      const sentValue = block[name];
      const value = states.kept(sentValue, sealed);
      if (value !== undefined) return [{ ...block, [name]: value }];
      const hidden = typeof sentValue === "string" ? sealed?.get(sentValue)?.text : undefined;
      const text = block["thinking"] === "" || type !== "thinking" ? hidden : block["thinking"];
      return typeof text === "string" ? unsignedThinking(text, profile) : [];
    });
    const content = withMissingStates(kept, states, profile);
    // Anthropic refuses a message that was nothing but thinking of another source.
    return content.length === 0 && blocks.length > 0 ? [] : [{ ...message, content }];
  });
}

/** Adds the reasoning that the client has left out, where it was: Anthropic refuses it after a text that it came before. */
function withMissingStates(
  blocks: readonly JsonObject[],
  states: MessageStates,
  profile: ServerProfile,
): readonly JsonObject[] {
  const written: JsonObject[] = [];
  /** Where the blocks after the last call begin. */
  let begin = 0;
  for (const block of blocks) {
    if (block["type"] === "tool_use") {
      for (const { part, texts } of states.missingBefore(block["id"]).toReversed()) {
        const isText = (one: JsonObject) => one["type"] === "text" && one["text"] !== "";
        let at = begin;
        for (let passed = 0; at < written.length; at++) {
          const one = written[at];
          if (one && isText(one) && passed++ === texts) break;
        }
        written.splice(at, 0, ...reasoningBlocks(part, profile));
      }
    }
    written.push(block);
    if (block["type"] === "tool_use") begin = written.length;
  }
  return written;
}

/** Reasoning with the state that Anthropic demands back. It refuses any other. */
function reasoningBlocks({ text, state }: ReasoningPart, profile: ServerProfile): RequestBody[] {
  if (state?.kind === "signature") return [{ type: "thinking", thinking: text, signature: state.value }];
  if (state?.kind === "redacted") return [{ type: "redacted_thinking", data: state.value }];
  return unsignedThinking(text, profile);
}

/**
 * Writes the members of a request of another API. The conversation is the last member, after what all requests of a session have in common.
 */
function messageMembers(
  request: GenerationRequest,
  prompt: ChatPrompt,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  const { sampling, limits, extra, output, reasoning } = request;
  const choice = writeChoice(request);
  const isForced = choice?.["type"] === "any" || choice?.["type"] === "tool";
  const model = profile.model ?? request.model;
  const version = claudeVersion(model);
  const effort = writeEffort(reasoning, version);
  const setLimit = profile.add?.["max_tokens"] ?? limits.maxTokens;
  const maxTokens = typeof setLimit === "number" ? setLimit : undefined;
  const format = output && writeFormat(output);
  const { user } = extra;
  const joined = joinSystemMessages(prompt.messages, (at) => note("system-joined", `messages[${at}]`));
  const messages = systemMessagesAsUser(joined, (at) => note("system-as-user", `messages[${at}]`));
  const conversation = writeConversation(messages, hasMarks(request), profile);
  const tools = (request.tools ?? []).map(writeTool);
  const { thinking, messages: written } = withFittingThinking(
    {
      model,
      messages: conversation.messages,
      // Anthropic refuses a forced call together with thinking.
      thinking: isForced && !isOff(reasoning) ? undefined : writeThinking(reasoning, version, maxTokens),
    },
    profile,
    note,
  );
  const isThinking = isObject(thinking) && thinking["type"] !== "disabled";
  const isWithout = isThinking ? false : isObject(thinking) || version?.thinksByDefault === false;
  const budget = isThinking ? Number(thinking["budget_tokens"] ?? 0) : 0;
  return withoutUndefined({
    max_tokens: maxTokens ?? defaultMaxTokens + budget,
    stop_sequences: limits.stop?.filter((text) => text.trim() !== ""),
    // Other APIs allow up to 2. With thinking, Anthropic accepts no temperature and no top_k, and a top_p from 0.95.
    temperature: isThinking || sampling.temperature === undefined ? undefined : Math.min(sampling.temperature, 1),
    top_p: isThinking && (sampling.topP ?? 1) < 0.95 ? undefined : sampling.topP,
    top_k: isThinking ? undefined : sampling.topK,
    thinking,
    output_config: effort || format ? { ...(effort && { effort }), ...(format && { format }) } : undefined,
    metadata: typeof user === "string" ? { user_id: user } : undefined,
    cache_control: fitMarks(cacheableBlocks(conversation, tools), requestMark(request, profile, true)),
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: choice,
    system: conversation.system,
    messages: isWithout ? withoutTurnThinking(written) : written,
  });
}

function writeTool(tool: Tool): RequestBody {
  const { name, description, parameters, strict } = asFunction(tool);
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: { type: "object", ...(isObject(parameters) && parameters) },
    ...(strict !== undefined && { strict }),
    ...mark(tool),
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

/**
 * An effort without a mode leaves it to the model how much it thinks. Versions of Claude that are known by name get what they take; `maxTokens`:
 * the limit that the request has.
 */
function writeThinking(
  reasoning: ReasoningOptions = {},
  version: ClaudeVersion | undefined,
  maxTokens: number | undefined,
): RequestBody | undefined {
  const { effort, mode, budgetTokens, show } = reasoning;
  const takes = (type: ClaudeVersion["thinking"][number]) => version === undefined || version.thinking.includes(type);
  const display = show === "omitted" ? "omitted" : show === undefined ? undefined : "summarized";
  if (isOff(reasoning)) {
    const off = (["disabled", "between_tools"] as const).find(takes);
    return off && { type: off };
  }
  if (mode === undefined && effort === undefined && budgetTokens === undefined) return undefined;
  if (takes("adaptive") && (budgetTokens === undefined || !takes("enabled")))
    return withoutUndefined({ type: "adaptive", display });
  const budget = takes("enabled") ? thinkingBudget(reasoning, maxTokens) : undefined;
  return budget === undefined ? undefined : withoutUndefined({ type: "enabled", budget_tokens: budget, display });
}

function isOff({ mode, effort }: ReasoningOptions = {}): boolean {
  return mode === "off" || (mode === undefined && effort === "none");
}

function writeEffort({ effort }: ReasoningOptions = {}, version: ClaudeVersion | undefined): string | undefined {
  if (effort === undefined || effort === "none") return undefined;
  if (version) return fittingEffort(effort, version.efforts);
  return effort === "minimal" ? "low" : effort;
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
 * names. `marked`: the request has marks of the prompt cache, which clients move. Each text is then a block, so that a text without its mark
 * has the same form in the next request.
 */
function writeConversation(messages: readonly Message[], marked: boolean, profile: ServerProfile): WrittenConversation {
  const ids = new WordIds();
  const system: RequestBody[] = [];
  const written: { role: "user" | "assistant"; content: RequestBody[] }[] = [];
  for (const message of messages) {
    const content = blocksOf(message, ids, profile);
    if (message.role === "system" || message.role === "developer") {
      system.push(...content);
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = written.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) written.push({ role, content });
  }
  const contentOf = marked ? (blocks: RequestBody[]) => blocks : shortContent;
  const instructions = contentOf(system);
  return {
    ...(instructions.length > 0 && { system: instructions }),
    messages: written.flatMap(({ role, content }) => {
      const kept = role === "assistant" ? withoutFinalThinking(content) : content;
      return kept.length === 0 ? [] : [{ role, content: contentOf(kept) }];
    }),
  };
}

/** Anthropic refuses thinking at the end of a message. It is there if the client has left out the call or the text that followed. */
function withoutFinalThinking(blocks: RequestBody[]): RequestBody[] {
  const end = blocks.findLastIndex(({ type }) => type !== "thinking" && type !== "redacted_thinking");
  return blocks.slice(0, end + 1);
}

/** All that may have a mark of the prompt cache, in the order of the prompt. */
function cacheableBlocks({ system, messages }: WrittenConversation, tools: RequestBody[]): RequestBody[] {
  const inside = (content: unknown): RequestBody[] =>
    Array.isArray(content) ? (content as RequestBody[]).flatMap((block) => [...inside(block["content"]), block]) : [];
  return [...tools, ...inside(system), ...messages.flatMap(({ content }) => inside(content))];
}

/** A single text is written as a string. */
function shortContent(blocks: RequestBody[]): string | RequestBody[] {
  const [first] = blocks;
  return blocks.length === 1 && first?.["type"] === "text" ? String(first["text"]) : blocks;
}

function blocksOf(message: Message, ids: WordIds, profile: ServerProfile): RequestBody[] {
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return contentBlocks(message.content);
    case "assistant":
      return assistantParts(message).flatMap((part): RequestBody[] => {
        const block = assistantBlock(part, ids, profile);
        return block ? [block] : [];
      });
    case "tool": {
      const { content, toolCallId, isError } = message;
      return [
        {
          type: "tool_result",
          tool_use_id: ids.of(toolCallId),
          content: typeof content === "string" ? content : contentBlocks(content),
          ...(isError === true && { is_error: true }),
          ...mark(message),
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
    return [{ ...contentBlock(part), ...mark(part) }];
  });
}

/** Anthropic's mark for the part of a prompt, if it has one. */
function mark(part: CacheablePart | RefusalPart): RequestBody {
  const minutes = "cacheMinutes" in part ? part.cacheMinutes : undefined;
  return minutes === undefined ? {} : { cache_control: cacheControl(minutes) };
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

function assistantBlock(part: AssistantPart, ids: WordIds, profile: ServerProfile): RequestBody | undefined {
  switch (part.type) {
    case "text":
      return part.text === "" ? undefined : { type: "text", text: part.text, ...mark(part) };
    case "refusal":
      return { type: "text", text: part.refusal };
    case "image":
      return undefined;
    case "reasoning":
      return reasoningBlocks(part, profile)[0];
    case "tool-call":
      return { type: "tool_use", id: ids.ofCall(part.id), name: part.name, input: inputOf(part), ...mark(part) };
  }
}

function inputOf({ arguments: text, kind }: ToolCall): unknown {
  return kind === "custom" ? { input: text } : callInput(text);
}
