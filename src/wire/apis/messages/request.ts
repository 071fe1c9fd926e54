import type { ChatPrompt, GenerationRequest, OutputConstraint, ReasoningOptions } from "../../core/request.ts";
import { estimateTokens } from "../../core/estimate-tokens.ts";
import type { FailureError } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { runSync, StepCounter, type Steps } from "../../core/steps.ts";
import type { ReadOptions } from "../port.ts";
import { openSeal } from "../turn-seal.ts";
import { lean, type Profile } from "../profile.ts";
import { schemasIn } from "../request/check-schema.ts";
import { lengthProblem, tooManyUnknown } from "../request/refusals.ts";
import { maxMessages, maxParts, maxUnknownMembers } from "../request/shapes.ts";
import { checkedForServer, unknownValue } from "../request/parameter.ts";
import { applyRules, refuseOrWarn } from "../request/vendor-rules.ts";
import type { HeaderReader } from "../api-error-format.ts";
import { checkConversation } from "./check-conversation.ts";
import { readMessageParams } from "./conversation.ts";
import { requestMembers } from "./exact-request.ts";
import { messageForms } from "./form.ts";
import { codedRefusal, messageIssueFailure, refusal } from "./request-issue.ts";
import { messagesRules } from "./request-rules.ts";
import {
  type ApiFeatures,
  apiVersions,
  type ContextEdit,
  knownBlocks,
  messageParameters,
  type MessageRequest,
  requiredBetas,
} from "./request-schema.ts";
import { readMessageTools } from "./request-tools.ts";
import { onlySearchesTheWeb } from "./web-search.ts";
import type { MessageOptions, ReasoningDisplay } from "./write.ts";

export interface ReadMessageRequest {
  readonly request: GenerationRequest;
  readonly options: MessageOptions;
  readonly warnings: readonly string[];
  /** The request is only for a search of the web, which this server cannot do. */
  readonly searchesOnly?: true;
  /** The edits that `context_management` asks this server for. */
  readonly edits?: readonly ContextEdit[];
}

export interface MessageReadOptions extends ReadOptions {
  /** The request only counts tokens and has no `max_tokens`. */
  readonly countsTokens?: boolean;
}

/** Reads the body of `POST /v1/messages`, or of its `count_tokens`. Throws `FailureError` in Anthropic's words. */
export function readMessageRequest(body: unknown, requestId: string, options?: MessageReadOptions): ReadMessageRequest {
  return runSync(messageRequestInSteps(body, requestId, options));
}

/** Reads a body as `readMessageRequest` does, in steps, because a long one would block the event loop. */
export function* messageRequestInSteps(
  given: unknown,
  requestId: string,
  options: MessageReadOptions = {},
): Steps<ReadMessageRequest> {
  const {
    profile = lean,
    forwards = false,
    header,
    countsTokens = false,
    turnSeal = openSeal,
    standsFor,
    runs,
  } = options;
  const warnings: string[] = [];
  const features = apiFeatures(header, options, warnings);
  if (!isObject(given)) throw refusal("body", "Input should be a valid dictionary");
  // llama.cpp and LM Studio read it so.
  const hasNoLimit = given["max_tokens"] === -1 && !profile.judgesAsVendor;
  const { max_tokens: _, ...unlimited } = given;
  const body: JsonObject = hasNoLimit ? unlimited : given;
  const needsLimit = !countsTokens && !hasNoLimit;
  const checked = yield* checkedRequest(body, { profile, forwards, needsLimit, features }, warnings);
  yield* checkConversation(checked, { profile, features }, warnings);
  yield* applyRules(
    messagesRules,
    { request: checked, sent: body as unknown as MessageRequest, standsFor },
    "Anthropic",
    { profile, forwards, warnings },
  );
  const output = outputOf(checked);
  if (output && profile.judgesAsVendor) checkOutput(output);
  const tools = yield* readMessageTools(checked, { profile, forwards, features, warnings, runs });
  const { messages, isPrefilled, sealed } = yield* readMessageParams(checked, warnings, turnSeal);
  const prompt: ChatPrompt = {
    kind: "chat",
    messages,
    template: isPrefilled ? { addGenerationPrompt: false, continueFinalMessage: true } : {},
  };
  const { model, stream = false, temperature, top_p: topP, top_k: topK, max_tokens: maxTokens } = checked;
  const stop = stopSequences(checked);
  const reasoning = reasoningOf(checked);
  const request: GenerationRequest = {
    id: requestId,
    model,
    prompt,
    sampling: {
      ...(temperature !== undefined && { temperature }),
      ...(topP !== undefined && { topP }),
      ...(topK !== undefined && { topK }),
    },
    limits: { ...(maxTokens !== undefined && { maxTokens }), ...(stop.length > 0 && { stop }) },
    wantsUsage: true,
    stream,
    extra: {},
    passthrough: {
      dialect: "messages",
      body: profile.judgesAsVendor || !forwards ? body : yield* withResultsFirst(body),
      headers: versionHeaders(header),
      ...(sealed.size > 0 && { sealed }),
    },
    ...tools,
    ...(reasoning && { reasoning }),
    ...(output && { output }),
  };
  const answer: MessageOptions = {
    requestId,
    reasoning: reasoningDisplay(reasoning, profile),
    estimatePrompt: () => estimateTokens(request),
  };
  const edits = forwards ? undefined : checked.context_management?.edits;
  // An upstream of this API searches by itself.
  const searchesOnly = !forwards && onlySearchesTheWeb(request, runs);
  return { request, options: answer, warnings, ...(edits && { edits }), ...(searchesOnly && { searchesOnly }) };
}

/**
 * Returns the version and the betas that a request's headers name. An upstream of this API judges the version itself. Without one, and for
 * callers without headers, the version is the one that most clients send.
 */
function apiFeatures(
  header: HeaderReader = () => usualVersion,
  { profile = lean, forwards = false }: MessageReadOptions,
  warnings: string[],
): ApiFeatures {
  const version = header("anthropic-version");
  const betas = new Set((header("anthropic-beta") ?? "").split(",").map((beta) => beta.trim()));
  if (version === undefined && profile.judgesAsVendor) throw refusal("anthropic-version", "header is required");
  if (forwards) return { version: usualVersion, betas: new Set(Object.values(requiredBetas)) };
  if (version === undefined || apiVersions.has(version)) return { version: version ?? usualVersion, betas };
  const words = `"${version}" is not a valid version`;
  if (profile.judgesAsVendor) throw refusal("anthropic-version", words);
  warnings.push(`anthropic-version: ${words}`);
  return { version: usualVersion, betas };
}

const usualVersion = "2023-06-01";

/** The headers that name the client's version of the API and its betas. */
function versionHeaders(header: HeaderReader = () => undefined): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const name of ["anthropic-version", "anthropic-beta"]) {
    const value = header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

/** Validates each member of the body by its schema. */
function* checkedRequest(
  body: JsonObject,
  {
    profile,
    forwards,
    needsLimit,
    features,
  }: { profile: Profile; forwards: boolean; needsLimit: boolean; features: ApiFeatures },
  warnings: string[],
): Steps<MessageRequest> {
  const strict = profile.judgesAsVendor;
  const schemas = requestMembers(strict ? features : undefined);
  const request: Record<string, unknown> = {};
  const unknownBlocks = new Set<string>();
  for (const { name, required, treatment } of messageParameters) {
    const sent = Object.hasOwn(body, name) ? body[name] : undefined;
    const isRequired = required && (needsLimit || name !== "max_tokens");
    if (sent === undefined || (sent === null && !strict)) {
      if (isRequired) throw refusal(name, "Field required");
      continue;
    }
    const value = name === "messages" && !strict ? yield* withKnownBlocks(sent, unknownBlocks) : sent;
    // Only the server that began a thread can continue it, and a model may have several servers, so every turn needs all messages.
    if (treatment === "refused" && (!forwards || name === "thread")) throw serverState(name);
    const schema = schemas.get(name);
    if (!schema) continue;
    const { checked, unknown } = yield* checkedForServer(schema, value, forwards);
    if (!checked.success) throw messageIssueFailure(name, value, checked.error.issues);
    for (const path of unknown) warnings.push(unknownValue(name, path));
    // A null that the schema takes counts as absent.
    if (sent !== null) request[name] = checked.data;
  }
  for (const type of unknownBlocks)
    warnings.push(`messages: blocks of type "${type}" are not known here, and left out`);
  const names = Object.keys(body);
  if (names.length > maxUnknownMembers + messageParameters.length) throw tooManyUnknown();
  for (const name of names) {
    if (schemas.has(name)) continue;
    const unknown = refusal(name, "Extra inputs are not permitted");
    if (strict || !forwards) refuseOrWarn(unknown, "Anthropic", { profile, warnings });
    else warnings.push(`${name} is not known here; the upstream gets it`);
  }
  // The schemas have checked every member.
  return request as unknown as MessageRequest;
}

const emptyText = { type: "text", text: "" };

/**
 * Returns the messages with an empty text in place of each block of an unknown type, and adds these types to `unknown`. Profile `lean`
 * serves clients that are newer than this server. Accepts any value; the schemas refuse what is not a list of messages.
 */
function* withKnownBlocks(messages: unknown, unknown: Set<string>): Steps<unknown> {
  if (!Array.isArray(messages) || messages.length > maxMessages) return messages;
  const pace = new StepCounter();
  const known: unknown[] = [];
  for (const message of messages as unknown[]) {
    known.push(
      isObject(message) ? { ...message, content: yield* withKnownContent(message["content"], unknown, pace) } : message,
    );
    if (pace.endsStep()) yield;
  }
  return known;
}

function* withKnownContent(content: unknown, unknown: Set<string>, pace: StepCounter): Steps<unknown> {
  if (!Array.isArray(content) || content.length > maxParts) return content;
  const known: unknown[] = [];
  for (const block of content as unknown[]) {
    const type = isObject(block) ? block["type"] : undefined;
    if (typeof type === "string" && !knownBlocks.has(type)) {
      unknown.add(type);
      known.push(emptyText);
    } else if (isObject(block) && type === "tool_result")
      known.push({ ...block, content: yield* withKnownContent(block["content"], unknown, pace) });
    else known.push(block);
    if (pace.endsStep()) yield;
  }
  return known;
}

/**
 * Returns the client's body with the `tool_result` blocks of each message before its other blocks, because a Messages server refuses
 * another order. Returns the same object where every message has that order.
 */
function* withResultsFirst(body: JsonObject): Steps<JsonObject> {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  const pace = new StepCounter();
  const ordered: unknown[] = [];
  let changed = false;
  for (const message of messages as readonly unknown[]) {
    const inOrder = messageWithResultsFirst(message);
    changed ||= inOrder !== message;
    ordered.push(inOrder);
    if (pace.endsStep()) yield;
  }
  return changed ? { ...body, messages: ordered } : body;
}

function messageWithResultsFirst(message: unknown): unknown {
  if (!isObject(message) || message["role"] !== "user" || !Array.isArray(message["content"])) return message;
  const content: readonly unknown[] = message["content"];
  const isResult = (block: unknown) => isObject(block) && block["type"] === "tool_result";
  const firstOther = content.findIndex((block) => !isResult(block));
  if (firstOther === -1 || !content.slice(firstOther).some(isResult)) return message;
  return { ...message, content: [...content.filter(isResult), ...content.filter((block) => !isResult(block))] };
}

/** Refuses what Anthropic's servers keep between requests. Anthropic's clients know the code, and continue without it. */
function serverState(name: string): FailureError {
  const code = name === "thread" ? "thread_unsupported_request" : "compaction_unavailable";
  return codedRefusal(
    name,
    `This server keeps no conversations. Send the full conversation without \`${name}\`.`,
    code,
  );
}

function stopSequences({ stop_sequences: sequences = [] }: MessageRequest): readonly string[] {
  const stop = sequences.filter((text) => text !== "");
  const problem = lengthProblem(stop);
  if (problem !== undefined) throw refusal("stop_sequences", problem);
  return stop;
}

const modes = { enabled: "on", adaptive: "adaptive", between_tools: "adaptive", disabled: "off" } as const;

/** A `system` message may change the effort, as Claude Code 2.1.330 does. The last change counts. */
function reasoningOf({ thinking, output_config: config, messages }: MessageRequest): ReasoningOptions | undefined {
  const changed = messages.flatMap((message) => {
    const own = message.role === "system" ? message.output_config?.effort : undefined;
    return typeof own === "string" ? [own] : [];
  });
  const effort = changed.at(-1) ?? config?.effort ?? undefined;
  const display = thinking && "display" in thinking ? thinking.display : undefined;
  const options: ReasoningOptions = {
    ...(effort !== undefined && { effort }),
    ...(thinking && { mode: modes[thinking.type] }),
    ...(thinking?.type === "enabled" && { budgetTokens: thinking.budget_tokens }),
    ...(display && { show: display === "omitted" ? ("omitted" as const) : ("summary" as const) }),
  };
  return Object.keys(options).length === 0 ? undefined : options;
}

function reasoningDisplay(reasoning: ReasoningOptions | undefined, { name }: Profile): ReasoningDisplay {
  const { mode, show } = reasoning ?? {};
  if (mode === "off" || (mode === undefined && !messageForms[name].showsUnrequestedReasoning)) return "hidden";
  return show === "omitted" ? "omitted" : "shown";
}

type JsonSchemaConstraint = Extract<OutputConstraint, { type: "json-schema" }>;

function outputOf({ output_config: config, output_format: older }: MessageRequest): JsonSchemaConstraint | undefined {
  const format = config?.format ?? older;
  if (!format) return undefined;
  const path = config?.format ? "output_config.format.schema" : "output_format.schema";
  return { type: "json-schema", name: "output", schema: format.schema, strict: true, path };
}

/** Anthropic accepts only schemas whose objects are closed. Source: recordings of 2026. */
function checkOutput({ schema, path }: JsonSchemaConstraint): void {
  for (const { type, additionalProperties } of schemasIn(schema)) {
    if (type === "object" && additionalProperties !== false)
      throw refusal(path ?? "", "For 'object' type, 'additionalProperties' must be explicitly set to false");
  }
}
