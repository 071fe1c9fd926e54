import { estimateTokens } from "../../core/estimate-tokens.ts";
import { invalidRequest } from "../../core/failure.ts";
import { notRun } from "../../core/hosted-tool.ts";
import type { HostedTool } from "../../core/hosted-tool.ts";
import { isObject } from "../../core/json.ts";
import { isLong } from "../../core/json-chunks.ts";
import type { Tool } from "../../core/message.ts";
import type { GenerationRequest, ReasoningOptions } from "../../core/request.ts";
import { runSync, type Steps } from "../../core/steps.ts";
import { conversationNotFound } from "../conversations/stored-conversation.ts";
import type { PreparesOnly, ReadOptions } from "../port.ts";
import { completeRequest, completeRequestedAnswer, emptyDraft } from "../request/draft.ts";
import { readParameters } from "../request/parameter.ts";
import { missingParameter } from "../request/refusals.ts";
import { maxRepeatedLength } from "../request/shapes.ts";
import { applyRules } from "../request/vendor-rules.ts";
import type { ConfigurationUpdate, InputOptions } from "./input-reader.ts";
import { readInput } from "./read-input.ts";
import { type DeclaredTools, readResponseTools, readToolChoice } from "./read-tools.ts";
import { openaiModel } from "../openai-models.ts";
import { defaultEcho, type ResponseEcho, type ResponseOptions } from "./request-schema.ts";
import { applyUpdate, type ResponsesDraft, responsesParameters } from "./parameters.ts";
import { movedParameter, responsesRules, unknownNested } from "./request-rules.ts";
import { withoutCompactions } from "./state/input-items.ts";
import { nothingRecalled, previousNotFound, type Recalled } from "./state/recall.ts";

export interface ReadResponsesRequest {
  readonly request: GenerationRequest;
  readonly responseOptions: ResponseOptions;
  readonly warnings: readonly string[];
  readonly preparesOnly?: PreparesOnly;
  /** The input ends with a `compaction_trigger`: the response is one compaction of the conversation. */
  readonly compacts?: true;
}

/** Reads the body of `POST /v1/responses`. `recalled`: the stored items that it refers to. Throws `FailureError` in OpenAI's words. */
export function readResponsesRequest(
  body: unknown,
  requestId: string,
  options?: ReadOptions,
  recalled?: Recalled,
): ReadResponsesRequest {
  return runSync(responsesRequestInSteps(body, requestId, options, recalled));
}

/** The same as `readResponsesRequest`, in steps: for a long body, or many items that it refers to. */
export function* responsesRequestInSteps(
  body: unknown,
  requestId: string,
  options: ReadOptions = {},
  recalled: Recalled = nothingRecalled,
): Steps<ReadResponsesRequest> {
  const draft: ResponsesDraft = { ...emptyDraft("responses", options), include: [], repeated: {} };
  const { profile, forwards, turnSeal: seal } = draft;
  const members = yield* readParameters(body, responsesParameters, draft, {
    refusalOf: movedParameter,
    checkNames: unknownNested,
  });
  const { prepares } = draft;
  if (prepares !== undefined) draft.maxTokens = 0;
  const strict = profile.judgesAsVendor;
  const { warnings, repeated } = draft;
  const previousId = repeated["previous_response_id"];
  if (typeof previousId === "string" && !recalled.previous && !forwards) throw previousNotFound(previousId);
  const named = repeated["conversation"] as { readonly id: string } | undefined;
  if (named && !recalled.conversation && !forwards) throw conversationNotFound(named.id);
  const found: Tool[] = [];
  const { cacheTtl } = draft;
  const updates: ConfigurationUpdate[] = [];
  const opened: InputOptions["opened"] = {};
  // The server that the request is forwarded to may have its calls.
  const anyResult =
    (typeof previousId === "string" && !recalled.previous) || (named !== undefined && !recalled.conversation);
  const reading = { strict, forwards, warnings, found, updates, recalled, cacheTtl, seal, opened, anyResult };
  const { messages, openCall, isListed } = yield* readInput(inputOf(draft), reading);
  yield* applyRules(responsesRules, { body: members, draft, messages, openCall }, "OpenAI", draft);
  for (const update of updates) applyUpdate(update, draft);
  if (draft.instructions !== undefined) {
    messages.unshift({ role: "system", content: draft.instructions, path: "instructions" });
  }
  const declared = yield* readResponseTools(draft.toolList ?? [], { strict, forwards, runs: options.runs }, found);
  const { tools, hosted, runnable, asyncTools, grouped, searches, clientTools } = declared;
  for (const tool of forwards ? [] : hosted) if (!runnable.includes(tool)) warnings.push(notRun(tool));
  const choice = draft.choice === undefined ? undefined : readToolChoice(draft.choice, declared, forwards);
  const { includeObfuscation } = completeRequestedAnswer(draft);
  const echo = echoOf(draft, declared);
  const summarizes = echo.reasoning.summary !== null;
  const logprobs = draft.include.includes("message.output_text.logprobs");

  const request = Object.assign(completeRequest(draft, requestId, yield* selfContained(members, recalled, forwards)), {
    prompt: { kind: "chat", messages, template: draft.template } as const,
    wantsUsage: true,
  });
  if (opened.values && request.passthrough) request.passthrough = { ...request.passthrough, sealed: opened.values };
  const reasoning: ReasoningOptions = { ...request.reasoning, ...(summarizes && { show: "summary" }) };
  if (Object.keys(reasoning).length > 0) request.reasoning = reasoning;
  if (logprobs) request.logprobs = { top: draft.topLogprobs ?? 0 };
  if (tools.length > 0) request.tools = tools;
  if (tools.length + runnable.length > 0) {
    if (choice) request.toolChoice = choice;
    if (draft.parallelToolCalls !== undefined) request.parallelToolCalls = draft.parallelToolCalls;
  }
  if (hosted.length > 0) request.hostedTools = hosted.map((tool) => (isListed(tool.name) ? listed(tool) : tool));
  const { max_tool_calls: maxToolCalls } = draft.extra;
  if (typeof maxToolCalls === "number") request.limits = { ...request.limits, maxToolCalls };
  const responseOptions: ResponseOptions = {
    echo,
    summarizes,
    encryptsReasoning: draft.include.includes("reasoning.encrypted_content"),
    logprobs,
    include: draft.include,
    countsTokens: prepares !== "state",
    ...(prepares === undefined && { estimatePrompt: () => estimateTokens(request) }),
    ...(includeObfuscation !== undefined && { includeObfuscation }),
    asyncTools,
    grouped,
    searches,
    clientTools,
  };
  return {
    request,
    responseOptions,
    warnings,
    ...(prepares !== undefined && { preparesOnly: prepares }),
    // A server of the same API compacts by itself.
    ...(!forwards && endsWithTrigger(draft.input) && { compacts: true }),
  };
}

/** A tool whose server has been listed in the conversation. */
function listed(tool: HostedTool): HostedTool {
  const { server } = tool.options;
  return server ? { ...tool, options: { ...tool.options, server: { ...server, isListed: true } } } : tool;
}

function endsWithTrigger(input: ResponsesDraft["input"]): boolean {
  const last = Array.isArray(input) ? (input as readonly unknown[]).at(-1) : undefined;
  return isObject(last) && last["type"] === "compaction_trigger";
}

/**
 * Returns the body with stored items in place of what refers to them: for an upstream of the same API, which does not know them. If the
 * request is not known to be forwarded, the input is made when it is read.
 */
function* selfContained(
  body: Readonly<Record<string, unknown>>,
  recalled: Recalled,
  forwards: boolean,
): Steps<Readonly<Record<string, unknown>>> {
  const { background, previous_response_id: previousId, conversation: named, input, ...rest } = body;
  const { previous, conversation, history } = recalled;
  const others = {
    ...rest,
    ...(!previous && previousId !== undefined && { previous_response_id: previousId }),
    ...(!conversation && named !== undefined && { conversation: named }),
  };
  if (history.items.length === 0 || forwards) {
    const items = yield* selfContainedInput(input, recalled);
    const isUnchanged = items === undefined && background === undefined && !previous && !conversation;
    return isUnchanged ? body : { ...others, input: items ?? input };
  }
  return {
    ...others,
    get input() {
      return runSync(selfContainedInput(input, recalled)) ?? input;
    },
  };
}

/** Returns `undefined` if the input refers to nothing. */
function* selfContainedInput(input: unknown, { history, references }: Recalled): Steps<readonly unknown[] | undefined> {
  const given = input ?? [];
  const own: readonly unknown[] = Array.isArray(given) ? given : [{ role: "user", content: given }];
  const known = references.size === 0 ? own : own.map((item) => referenced(item, references));
  const placed = [...history.placed(), ...known.map((item) => ({ item, path: "" }))];
  const items = (yield* withoutCompactions(placed)).map(({ item }) => item);
  return items.length === own.length && items.every((item, at) => item === own[at]) ? undefined : items;
}

function referenced(item: unknown, references: Recalled["references"]): unknown {
  return references.get((item as { readonly id?: string } | null)?.id ?? "") ?? item;
}

function inputOf({ input, instructions, forwards, repeated }: ResponsesDraft): string | readonly unknown[] {
  if (input !== undefined && (input.length > 0 || instructions !== undefined || typeof input === "string"))
    return input;
  if (forwards || "previous_response_id" in repeated || "conversation" in repeated) return [];
  if (input === undefined) throw missingParameter("input");
  throw invalidRequest(
    "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided.",
    null,
    "missing_required_parameter",
  );
}

/** Returns what a response says by its model, in profile `exact`: with `standsFor`, that of OpenAI. */
function echoOfModel({ profile, standsFor = "", repeated, reasoningEffort }: ResponsesDraft): Partial<ResponseEcho> {
  const { defaults } = openaiModel(standsFor);
  if (!defaults || !profile.judgesAsVendor) return {};
  const { effort, context, topP, promptCacheRetention } = defaults;
  const reasoning = { ...defaultEcho.reasoning, ...(repeated["reasoning"] as object), context };
  return {
    reasoning: { ...reasoning, effort: reasoningEffort ?? effort },
    top_p: topP,
    prompt_cache_retention: repeated["prompt_cache_retention"] ?? promptCacheRetention,
  };
}

/** Returns the members that repeat the request. They are in each answer, and up to three times in a stream, so their size is limited. */
function echoOf(draft: ResponsesDraft, { echo: tools }: DeclaredTools): ResponseEcho {
  const { repeated, sampling } = draft;
  const echo: ResponseEcho = {
    ...defaultEcho,
    ...repeated,
    ...echoOfModel(draft),
    ...(sampling.frequencyPenalty !== undefined && { frequency_penalty: sampling.frequencyPenalty }),
    ...(sampling.presencePenalty !== undefined && { presence_penalty: sampling.presencePenalty }),
    ...(sampling.temperature !== undefined && { temperature: sampling.temperature }),
    ...(sampling.topP !== undefined && { top_p: sampling.topP }),
    tools,
  };
  if (!isLong(echo, maxRepeatedLength)) return echo;
  const message = `What a response repeats of its request (instructions, tools, formats) may have at most ${maxRepeatedLength} characters.`;
  throw invalidRequest(message, null, "request_too_large");
}
