import type * as z from "zod";
import { FailureError, invalidRequest } from "../../core/failure.ts";
import { notRun, type HostedTool, type HostedToolKind } from "../../core/hosted-tool.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { assistantParts, type Message, type Tool, type ToolChoice } from "../../core/message.ts";
import type {
  AnswerLimits,
  ChatPrompt,
  GenerationRequest,
  OutputConstraint,
  ReasoningOptions,
  Sampling,
} from "../../core/request.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import type { ReadOptions } from "../port.ts";
import { lean, type Profile } from "../profile.ts";
import { checkTotalLength } from "../request/refusals.ts";
import { refuseOrWarn } from "../request/vendor-rules.ts";
import { openSeal } from "../turn-seal.ts";
import { readContents } from "./contents.ts";
import { asJsonSchema } from "./json-schema.ts";
import { readProtoJson } from "./proto-json.ts";
import { turnRefusal } from "./turn-rules.ts";
import { geminiCountRequest, geminiRequest, type geminiTool } from "./request-schema.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type Body = z.infer<typeof geminiRequest>;
type Config = NonNullable<Body["generationConfig"]>;
type RequestTool = z.infer<typeof geminiTool>;

/** What a request says about the form of its answer. */
export interface GeminiAnswer {
  /** A stream is one of server-sent events (`alt=sse`); otherwise it is a JSON list. */
  readonly isSse: boolean;
  /** Parts with thoughts are shown. */
  readonly showsThoughts: boolean;
  /** Alternatives for each token; absent: no log probabilities. */
  readonly topLogprobs?: number;
  /** The prompt has texts only, so its tokens are all of modality `TEXT`. */
  readonly isTextPrompt: boolean;
}

export interface ReadGeminiRequest {
  readonly request: GenerationRequest;
  readonly answer: GeminiAnswer;
  readonly warnings: readonly string[];
}

interface Judging {
  readonly profile: Profile;
  readonly forwards: boolean;
  readonly warnings: string[];
}

/**
 * Reads the body of `:generateContent` and `:streamGenerateContent`, in steps. `body`: the client's JSON with the members of the path: `model`,
 * and `stream`. Throws `FailureError` in Google's words.
 */
export function* geminiRequestInSteps(
  body: unknown,
  requestId: string,
  options: ReadOptions = {},
): Steps<ReadGeminiRequest> {
  const { profile = lean, forwards = false, query } = options;
  const judging: Judging = { profile, forwards, warnings: [] };
  const { stream = false, ...sent } = isObject(body) ? body : {};
  const read = yield* readProtoJson(geminiRequest, isObject(body) ? sent : body, judging);
  return yield* readChecked(read, sent, stream === true, requestId, { ...options, profile, forwards }, judging, query);
}

/** Reads the body of `:countTokens`, in steps: contents, or a whole request. Throws `FailureError`. */
export function* geminiCountInSteps(
  body: unknown,
  requestId: string,
  options: ReadOptions = {},
): Steps<ReadGeminiRequest> {
  const { profile = lean, forwards = false } = options;
  const judging: Judging = { profile, forwards, warnings: [] };
  const { contents, generateContentRequest, model } = yield* readProtoJson(geminiCountRequest, body, judging);
  const read: Body = { ...(generateContentRequest ?? { contents }), model };
  const inner = isObject(body) ? (body["generateContentRequest"] ?? body["generate_content_request"] ?? body) : {};
  return yield* readChecked(read, { ...(inner as JsonObject), model }, false, requestId, options, judging, undefined);
}

function* readChecked(
  read: Body,
  sent: JsonObject,
  stream: boolean,
  id: string,
  { profile = lean, forwards = false, turnSeal = openSeal, runs }: ReadOptions,
  judging: Judging,
  query: ReadOptions["query"],
): Steps<ReadGeminiRequest> {
  const { warnings } = judging;
  const model = (read.model ?? "").replace(/^(?:models|tunedModels)\//, "");
  if (!forwards && read.cachedContent)
    throw notFound(
      `CachedContent not found: this server stores no contents. Send the contents without cachedContent ('${read.cachedContent.slice(0, 100)}'); prompts are cached without it.`,
      "cachedContent",
    );
  const { messages, sealed, isTextPrompt } = yield* readContents(read, turnSeal, judging);
  const refusal = profile.isVendor && turnRefusal(read.contents ?? [], model);
  if (refusal) throw refusal;
  const config = read.generationConfig ?? {};
  const { tools, hostedTools } = yield* toolsOf(read.tools ?? []);
  for (const tool of forwards ? [] : hostedTools) if (runs?.(tool) !== true) warnings.push(notRun(tool));
  const { sampling, limits, n } = optionsOf(config, judging);
  const toolChoice = choiceOf(read, judging);
  const output = outputOf(config, judging);
  const reasoning = reasoningOf(config);
  const topLogprobs = logprobsOf(config, judging);
  const { model: _, ...own } = sent;
  const request: GenerationRequest = {
    id,
    model,
    prompt: { kind: "chat", messages, template: prefillOf(messages) },
    ...(n > 1 && { n }),
    sampling,
    limits,
    wantsUsage: true,
    stream,
    extra: {},
    passthrough: { dialect: "gemini", body: own, ...(sealed.size > 0 && { sealed }) },
    ...(tools.length > 0 && { tools }),
    ...(hostedTools.length > 0 && { hostedTools }),
    ...(tools.length + hostedTools.length > 0 && toolChoice && { toolChoice }),
    ...(output && { output }),
    ...(reasoning && { reasoning }),
    ...(topLogprobs !== undefined && { logprobs: { top: topLogprobs } }),
  };
  const includes = config.thinkingConfig?.includeThoughts ?? undefined;
  const answer: GeminiAnswer = {
    isSse: query === undefined || [query("alt"), query("$alt")].includes("sse"),
    showsThoughts: includes ?? profile.name === "lean",
    isTextPrompt,
    ...(topLogprobs !== undefined && { topLogprobs }),
  };
  return { request, answer, warnings };
}

/** A text of the model at the end is continued, as Gemini does. */
function prefillOf(messages: readonly Message[]): ChatPrompt["template"] {
  const last = messages.at(-1);
  const isPrefill = last?.role === "assistant" && assistantParts(last).at(-1)?.type === "text";
  return isPrefill ? { addGenerationPrompt: false, continueFinalMessage: true } : {};
}

function notFound(message: string, param: string): FailureError {
  return new FailureError({ kind: "not-found", status: 404, message, param });
}

/** Google's tools that hosted tools can be, by their members. */
const hostedKinds: Readonly<Record<string, HostedToolKind>> = {
  googleSearch: "web_search",
  googleSearchRetrieval: "web_search",
  urlContext: "web_fetch",
  codeExecution: "code_interpreter",
  fileSearch: "other",
  googleMaps: "other",
  computerUse: "other",
  mcpServers: "other",
};

function* toolsOf(given: readonly RequestTool[]): Steps<{ tools: Tool[]; hostedTools: HostedTool[] }> {
  const tools: Tool[] = [];
  const hostedTools: HostedTool[] = [];
  const pace = new StepCounter();
  for (const [at, tool] of given.entries()) {
    for (const [index, declared] of (tool.functionDeclarations ?? []).entries()) {
      const { name, description, parameters, parametersJsonSchema } = declared;
      const path = `tools[${at}].functionDeclarations[${index}]`;
      const schema = isObject(parametersJsonSchema) ? parametersJsonSchema : parameters && asJsonSchema(parameters);
      tools.push({
        name,
        ...(description && { description }),
        ...(schema !== undefined && schema !== null && { parameters: schema }),
        path: `${path}.${isObject(parametersJsonSchema) ? "parametersJsonSchema" : "parameters"}`,
      });
      if (pace.endsStep()) yield;
    }
    for (const [name, kind] of Object.entries(hostedKinds)) {
      const declaration = tool[name as keyof RequestTool];
      if (!isObject(declaration)) continue;
      const type = name.replace(/Retrieval$/, "");
      hostedTools.push({ type, kind, name: type, options: {}, path: `tools[${at}].${name}`, declaration });
    }
    if (pace.endsStep()) yield;
  }
  return { tools, hostedTools };
}

/** Source: https://ai.google.dev/api/caching#FunctionCallingConfig. */
function choiceOf({ toolConfig }: Body, judging: Judging): ToolChoice | undefined {
  const { mode, allowedFunctionNames: names } = toolConfig?.functionCallingConfig ?? {};
  switch (mode?.toUpperCase()) {
    case undefined:
    case "MODE_UNSPECIFIED":
      return undefined;
    case "AUTO":
      return { type: "auto" };
    case "NONE":
      return { type: "none" };
    case "ANY":
      return names && names.length > 0 ? { type: "allowed", mode: "required", names } : { type: "required" };
    case "VALIDATED":
      return names && names.length > 0 ? { type: "allowed", mode: "auto", names } : { type: "auto" };
    default: {
      const place = "tool_config.function_calling_config.mode";
      const words = `Invalid value at '${place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), ${JSON.stringify(mode?.slice(0, 100))}`;
      if (!judging.forwards) throw invalidRequest(words, "toolConfig.functionCallingConfig.mode");
      return undefined;
    }
  }
}

/** The ranges that every source takes. Google's are the same, except for `topK` (from 1). */
const ranges = {
  temperature: [0, 2],
  topP: [0, 1],
  topK: [0, Number.MAX_SAFE_INTEGER],
  presencePenalty: [-2, 2],
  frequencyPenalty: [-2, 2],
} as const;

const maxCandidates = 8;

function optionsOf(
  config: Config,
  judging: Judging,
): { readonly sampling: Sampling; readonly limits: AnswerLimits; readonly n: number } {
  const sampling: Mutable<Sampling> = {};
  const limits: Mutable<AnswerLimits> = {};
  for (const [name, [least, most]] of Object.entries(ranges) as [keyof typeof ranges, readonly [number, number]][]) {
    const value = config[name];
    if (value === undefined || value === null) continue;
    const used = Math.min(most, Math.max(least, name === "topK" ? Math.trunc(value) : value));
    if (used !== value) outOfRange(name, value, `from ${least} to ${most}`, judging);
    sampling[name] = used;
  }
  const { seed, maxOutputTokens, stopSequences, candidateCount } = config;
  if (seed !== undefined && seed !== null) sampling.seed = whole("seed", seed);
  if (maxOutputTokens !== undefined && maxOutputTokens !== null) {
    const most = whole("maxOutputTokens", maxOutputTokens);
    if (most > 0) limits.maxTokens = most;
    else if (most < 0) throw invalidRequest(`max_output_tokens must be positive.`, "generationConfig.maxOutputTokens");
  }
  const stop = (stopSequences ?? []).filter((text) => text !== "");
  checkTotalLength("generationConfig.stopSequences", stop);
  if (stop.length > 5) outOfRange("stopSequences", stop.length, "up to 5 texts", judging);
  if (stop.length > 0) limits.stop = stop;
  const n = whole("candidateCount", candidateCount ?? 1);
  if (n > maxCandidates || n < 0)
    throw invalidRequest(
      `Unable to submit request because it has a candidateCount of ${n} but the supported range is from 1 (inclusive) to ${maxCandidates + 1} (exclusive). Update the value and try again.`,
      "generationConfig.candidateCount",
    );
  return { sampling, limits, n: Math.max(1, n) };
}

function whole(name: string, value: number): number {
  if (Number.isInteger(value)) return value;
  const place = `generation_config.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
  throw invalidRequest(`Invalid value at '${place}' (TYPE_INT32), ${value}`, `generationConfig.${name}`);
}

/** Profile `exact` refuses the value, as Google does; `lean` uses the nearest one. */
function outOfRange(name: string, value: number, range: string, judging: Judging): void {
  if (judging.forwards) return;
  const words = `Unable to submit request because it has a ${name} value of ${value} but the supported range is ${range}. Update the value and try again.`;
  refuseOrWarn(invalidRequest(words, `generationConfig.${name}`), "Google", judging);
}

function logprobsOf({ responseLogprobs, logprobs }: Config, { forwards }: Judging): number | undefined {
  if (responseLogprobs !== true) return undefined;
  const top = whole("logprobs", logprobs ?? 0);
  if (!forwards && (top < 0 || top > 20))
    throw invalidRequest("Logprobs must be between 0 and 20.", "generationConfig.logprobs");
  return Math.min(20, Math.max(0, top));
}

function outputOf(config: Config, { forwards }: Judging): OutputConstraint | undefined {
  const { responseMimeType: type, responseSchema, responseJsonSchema, responseModalities } = config;
  const other = (responseModalities ?? []).find((name) => name.toUpperCase() !== "TEXT");
  if (other !== undefined && !forwards)
    throw invalidRequest(
      `The requested combination of response modalities (${other.slice(0, 40)}) is not supported by the model: this server answers with texts.`,
      "generationConfig.responseModalities",
    );
  const [member, schema] = isObject(responseJsonSchema)
    ? (["responseJsonSchema", responseJsonSchema] as const)
    : (["responseSchema", responseSchema ? asJsonSchema(responseSchema) : undefined] as const);
  const path = `generationConfig.${member}`;
  switch (type ?? "") {
    case "":
    case "text/plain":
      return undefined;
    case "application/json":
      return schema === undefined
        ? { type: "json-object" }
        : { type: "json-schema", name: "response", schema, strict: true, path };
    case "text/x.enum": {
      const options = isObject(schema) && Array.isArray(schema["enum"]) ? (schema["enum"] as readonly unknown[]) : [];
      const texts = options.filter((one): one is string => typeof one === "string");
      if (texts.length === 0 && !forwards)
        throw invalidRequest("response_schema must have an enum for the response mime type text/x.enum.", path);
      return texts.length === 0 ? undefined : { type: "choice", options: texts, path };
    }
    default:
      if (forwards) return undefined;
      throw invalidRequest(
        `* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are \`text/plain\`, \`application/json\`, \`application/xml\`, \`application/yaml\` and \`text/x.enum\`.\n`,
        "generationConfig.responseMimeType",
      );
  }
}

/** Source: https://ai.google.dev/gemini-api/docs/thinking, "Thinking levels and budgets". */
function reasoningOf({ thinkingConfig }: Config): ReasoningOptions | undefined {
  if (!thinkingConfig) return undefined;
  const { includeThoughts, thinkingBudget: budget, thinkingLevel } = thinkingConfig;
  const level = thinkingLevel?.toLowerCase();
  const options: ReasoningOptions = {
    ...(level && level !== "thinking_level_unspecified" && { effort: level }),
    ...(typeof budget === "number" && budget === 0 && { mode: "off" }),
    ...(typeof budget === "number" && budget < 0 && { mode: "adaptive" }),
    ...(typeof budget === "number" && budget > 0 && { mode: "on", budgetTokens: Math.trunc(budget) }),
    ...(includeThoughts === true && { show: "summary" }),
  };
  return Object.keys(options).length === 0 ? undefined : options;
}
