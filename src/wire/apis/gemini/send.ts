import { invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { assistantParts } from "../../core/message.ts";
import type { AssistantMessage, Content, ContentPart, Message, ToolChoice, ToolMessage } from "../../core/message.ts";
import type { ChatPrompt, GenerationRequest, OutputConstraint, ReasoningOptions } from "../../core/request.ts";
import type { EmbeddingRequest } from "../../core/engine.ts";
import { asFunction } from "../adapt/custom-tools.ts";
import { joinSystemMessages, systemMessagesAsUser } from "../adapt/place-system-messages.ts";
import { simplifySchema } from "../adapt/simplify-schema.ts";
import {
  changedBody,
  isOn,
  type NoteAdaptation,
  type RequestBody,
  type ServerProfile,
  withoutUndefined,
} from "../adapt/server-profile.ts";
import { parsedInput } from "../messages/write.ts";
import type { SourcePort } from "../source-port.ts";
import { withKnownStates } from "./forwarded.ts";
import { GeminiReader } from "./read.ts";
import { anySignature, signatureIn } from "./signatures.ts";

/** The path of a method of a model. */
const methodPath = (model: string, method: string): string =>
  `/models/${encodeURIComponent(model.replace(/^models\//, "")).replaceAll("%2F", "/")}:${method}`;

/**
 * Tokens of OAuth, and signed ones of service accounts, which Vertex AI takes; API keys begin otherwise. Source:
 * https://cloud.google.com/docs/authentication/token-types.
 */
const isAccessToken = /^(?:ya29\.|eyJ)/;

/** Gemini's own API of an upstream. */
export const geminiSource: SourcePort = {
  name: "gemini",
  path: (model, stream) => methodPath(model, stream ? "streamGenerateContent?alt=sse" : "generateContent"),
  modelsPath: "/models?pageSize=1000",
  headers: (key): Readonly<Record<string, string>> => {
    if (key === undefined) return {};
    return isAccessToken.test(key) ? { authorization: `Bearer ${key}` } : { "x-goog-api-key": key };
  },
  // Members of `generationConfig`.
  answerLimit: { members: ["maxOutputTokens"], none: "absent" },
  profile: { schemaCompiler: "gemini", imageUrls: false },
  writeRequest: writeGeminiRequest,
  tokenCount: {
    path: (model) => methodPath(model, "countTokens"),
    writeRequest: (request, profile) => ({
      generateContentRequest: {
        model: `models/${profile.model ?? request.model}`,
        ...writeGeminiRequest(request, profile),
      },
    }),
    read: (answer) => {
      const tokens = isObject(answer) ? answer["totalTokens"] : undefined;
      return typeof tokens === "number" ? tokens : undefined;
    },
  },
  embeddings: {
    path: (model) => methodPath(model, "batchEmbedContents"),
    writeRequest: writeGeminiEmbed,
    toOpenAi: (answer) => {
      const { embeddings } = isObject(answer) ? answer : {};
      if (!Array.isArray(embeddings)) return answer;
      return { data: embeddings.filter(isObject).map(({ values }) => ({ embedding: values })) };
    },
  },
  reader: (options) => new GeminiReader(options),
};

/**
 * Writes the body of a request. One that came in this API is forwarded as it came, with the signatures that its server has made. `note` is
 * called for each adaptation. Throws `FailureError` for what the API cannot express.
 */
export function writeGeminiRequest(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, passthrough } = request;
  if (prompt.kind !== "chat") throw new TypeError("A Gemini request needs a conversation.");
  const body =
    passthrough?.dialect === "gemini"
      ? { ...passthrough.body, contents: withKnownStates(passthrough, prompt.messages, profile, note) }
      : requestMembers(request, prompt, profile, note);
  return changedBody(body, profile, note);
}

function requestMembers(
  request: GenerationRequest,
  { messages: given }: ChatPrompt,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  noteOmissions(request, note);
  const joined = joinSystemMessages(given, (at) => note("system-joined", `messages[${at}]`));
  const messages = systemMessagesAsUser(joined, (at) => note("system-as-user", `messages[${at}]`));
  const instructions = messages.filter(({ role }) => role === "system" || role === "developer");
  const others = messages.filter(({ role }) => role !== "system" && role !== "developer");
  const declarations = (request.tools ?? []).map((tool, at) => {
    const { name, description, parameters, strict } = asFunction(tool);
    const schema = fittedSchema(parameters, strict === true, `tools[${at}].function.parameters`, profile, note);
    return withoutUndefined({ name, description, parametersJsonSchema: schema });
  });
  const config = generationConfig(request, profile, note);
  return withoutUndefined({
    systemInstruction:
      instructions.length > 0
        ? { parts: instructions.flatMap(({ content }) => contentParts(content as Content, note)) }
        : undefined,
    contents: writeContents(others, profile, note),
    tools: declarations.length > 0 ? [{ functionDeclarations: declarations }] : undefined,
    toolConfig:
      declarations.length > 0 && request.toolChoice
        ? { functionCallingConfig: callingConfig(request.toolChoice) }
        : undefined,
    generationConfig: Object.keys(config).length > 0 ? config : undefined,
  });
}

function fittedSchema(
  schema: unknown,
  isStrict: boolean,
  place: string,
  profile: ServerProfile,
  note: NoteAdaptation,
): unknown {
  if (schema === undefined || !isOn(profile, "simple-schema")) return schema;
  const simple = simplifySchema(schema, isStrict, profile).schema;
  if (simple !== schema) note("simple-schema", place);
  return simple;
}

/** Notes the members that this API does not have. */
function noteOmissions(
  { sampling, limits, prediction, verbosity, extra }: GenerationRequest,
  note: NoteAdaptation,
): void {
  const omitted = {
    logit_bias: sampling.logitBias ?? sampling.textBias,
    min_p: sampling.minP,
    repeat_penalty: sampling.repeatPenalty,
    xtc_probability: sampling.xtc,
    dry_multiplier: sampling.dry,
    min_tokens: limits.minTokens,
    stop_token_ids: limits.stopTokenIds,
    prediction,
    verbosity,
    ...extra,
  };
  for (const [name, value] of Object.entries(omitted)) if (value !== undefined) note("foreign-member", name);
}

/** Source: https://ai.google.dev/api/caching#FunctionCallingConfig. */
function callingConfig(choice: ToolChoice): JsonObject {
  switch (choice.type) {
    case "none":
      return { mode: "NONE" };
    case "auto":
      return { mode: "AUTO" };
    case "required":
      return { mode: "ANY" };
    case "named":
      return { mode: "ANY", allowedFunctionNames: [choice.name] };
    case "allowed":
      return { mode: choice.mode === "required" ? "ANY" : "VALIDATED", allowedFunctionNames: choice.names };
  }
}

function generationConfig(request: GenerationRequest, profile: ServerProfile, note: NoteAdaptation): RequestBody {
  const { sampling, limits, n, output, logprobs, reasoning } = request;
  return withoutUndefined({
    stopSequences: limits.stop,
    ...(output && outputMembers(output, profile, note)),
    candidateCount: n,
    maxOutputTokens: limits.maxTokens,
    temperature: sampling.temperature,
    topP: sampling.topP,
    // 0: all tokens, which is the default.
    topK: sampling.topK === 0 ? undefined : sampling.topK,
    seed: sampling.seed,
    presencePenalty: sampling.presencePenalty,
    frequencyPenalty: sampling.frequencyPenalty,
    responseLogprobs: logprobs ? true : undefined,
    logprobs: logprobs && logprobs.top > 0 ? logprobs.top : undefined,
    thinkingConfig: reasoning && thinkingConfig(reasoning, profile.model ?? request.model),
  });
}

function outputMembers(output: OutputConstraint, profile: ServerProfile, note: NoteAdaptation): RequestBody {
  switch (output.type) {
    case "text":
      return {};
    case "json-object":
      return { responseMimeType: "application/json" };
    case "json-schema":
      return {
        responseMimeType: "application/json",
        responseJsonSchema: fittedSchema(output.schema, output.strict, "response_format", profile, note),
      };
    case "choice":
      return { responseMimeType: "text/x.enum", responseSchema: { type: "STRING", enum: output.options } };
    case "grammar":
    case "regex":
      throw invalidRequest("The model's server holds answers to JSON schemas only.", output.path, "unsupported_value");
  }
}

/** Budgets of the efforts that Google documents for its chat API. Source: https://ai.google.dev/gemini-api/docs/openai, "Thinking". */
const budgets: Readonly<Record<string, number>> = { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576 };

/**
 * Gemini 3 takes levels, earlier versions budgets. The thoughts are asked for, as clients of other APIs show reasoning. Source:
 * https://ai.google.dev/gemini-api/docs/thinking.
 */
function thinkingConfig({ effort, mode, budgetTokens, show }: ReasoningOptions, model: string): JsonObject | undefined {
  const isOff = mode === "off" || (mode === undefined && effort === "none");
  const version = Number(/gemini-(\d{1,3})/i.exec(model)?.[1] ?? 3);
  const includeThoughts = isOff || show === "omitted" ? {} : { includeThoughts: true };
  if (version < 3) {
    const budget = isOff ? 0 : (budgetTokens ?? budgets[effort ?? ""] ?? (effort === undefined ? -1 : budgets["high"]));
    return { ...includeThoughts, thinkingBudget: budget };
  }
  if (isOff) return { thinkingLevel: "minimal" };
  const level = effort === undefined ? undefined : effort in budgets ? effort : "high";
  const byBudget = budgetTokens === undefined ? undefined : budgetTokens <= 4096 ? "low" : "high";
  const thinkingLevel = level ?? byBudget;
  return { ...includeThoughts, ...(thinkingLevel !== undefined && { thinkingLevel }) };
}

/** Writes the conversation: results of calls as the user's, consecutive messages of one role as one content. */
function writeContents(
  messages: readonly Message[],
  profile: ServerProfile,
  note: NoteAdaptation,
): { role: string; parts: JsonObject[] }[] {
  const names = new Map<string, string>();
  const contents: { role: string; parts: JsonObject[]; images: JsonObject[] }[] = [];
  for (const [at, message] of messages.entries()) {
    const role = message.role === "assistant" ? "model" : "user";
    let content = contents.at(-1);
    if (content?.role !== role) contents.push((content = { role, parts: [], images: [] }));
    if (message.role === "assistant") {
      for (const part of assistantParts(message)) if (part.type === "tool-call") names.set(part.id, part.name);
      for (const part of modelParts(message, at, profile, note)) content.parts.push(part);
    } else if (message.role === "tool") {
      const { response, others } = toolResult(message, names.get(message.toolCallId), note);
      content.parts.push(response);
      if (others.length > 0) note("tool-image", `messages[${at}].content`);
      for (const other of others) content.images.push(other);
    } else {
      for (const part of [...content.images.splice(0), ...contentParts(message.content as Content, note)])
        content.parts.push(part);
    }
  }
  return contents.flatMap(({ role, parts, images }) =>
    parts.length + images.length === 0 ? [] : [{ role, parts: [...parts, ...images] }],
  );
}

/**
 * The parts of one message of the model. Reasoning without Google's signature is left out: Gemini reads none. The first call of a step needs
 * a signature, of a server that demands it.
 */
function modelParts(message: AssistantMessage, at: number, profile: ServerProfile, note: NoteAdaptation): JsonObject[] {
  const parts: JsonObject[] = [];
  let calls = 0;
  for (const part of assistantParts(message)) {
    switch (part.type) {
      case "text":
        if (part.text !== "") parts.push({ text: part.text });
        break;
      case "refusal":
        parts.push({ text: part.refusal });
        break;
      case "image":
        parts.push(mediaPart(part.url));
        break;
      case "reasoning": {
        const signature = part.state?.kind === "part" ? part.state.value : undefined;
        if (signature === undefined) break;
        const last = parts.at(-1);
        if (part.text !== "") parts.push({ text: part.text, thought: true, thoughtSignature: signature });
        else if (last && typeof last["text"] === "string" && last["thoughtSignature"] === undefined)
          parts[parts.length - 1] = { ...last, thoughtSignature: signature };
        else parts.push({ text: "", thoughtSignature: signature });
        break;
      }
      case "tool-call": {
        const args = part.kind === "custom" ? { input: part.arguments } : argumentsOf(part.arguments, at, note);
        let signature = signatureIn(part.state);
        const isFirst = calls++ === 0;
        if (signature === undefined && isFirst && demandsSignatures(profile)) {
          note("state-stand-in", `messages[${at}].tool_calls[0]`);
          signature = anySignature;
        }
        parts.push({
          functionCall: { name: part.name, args, id: part.id },
          ...(signature !== undefined && { thoughtSignature: signature }),
        });
      }
    }
  }
  return parts;
}

/** The demand that the server's chat API has, too. */
export function demandsSignatures(profile: ServerProfile): boolean {
  return profile.stateDemand === "extra_content" && isOn(profile, "state-stand-in");
}

function argumentsOf(text: string, at: number, note: NoteAdaptation): JsonObject {
  const input = text.trim() === "" ? {} : parsedInput(text);
  if ("INVALID_JSON" in input) note("earlier-arguments", `messages[${at}].tool_calls`);
  return input;
}

/** The result of a call, and its images, which older models do not take inside of it. */
function toolResult(
  { content, toolCallId: id, name: given, isError }: ToolMessage,
  called: string | undefined,
  note: NoteAdaptation,
): { readonly response: JsonObject; readonly others: JsonObject[] } {
  const parts = contentParts(content, note);
  const text = parts.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
  const name = called ?? given ?? "unknown";
  return {
    response: { functionResponse: { id, name, response: isError === true ? { error: text } : { output: text } } },
    others: parts.filter((part) => typeof part["text"] !== "string"),
  };
}

function contentParts(content: Content, note: NoteAdaptation): JsonObject[] {
  if (typeof content === "string") return content === "" ? [] : [{ text: content }];
  return content.flatMap((part): JsonObject[] => {
    const written = contentPart(part, note);
    return written["text"] === "" ? [] : [written];
  });
}

function contentPart(part: ContentPart, note: NoteAdaptation): JsonObject {
  switch (part.type) {
    case "text":
      return { text: part.text };
    case "refusal":
      return { text: part.refusal };
    case "image":
      return mediaPart(part.url);
    case "audio":
      return { inlineData: { mimeType: `audio/${part.format}`, data: part.data } };
    case "file": {
      const { text, data, url, id } = part;
      if (text !== undefined) return { text };
      if (data !== undefined) return mediaPart(data.startsWith("data:") ? data : `data:application/pdf;base64,${data}`);
      if (url !== undefined) return { fileData: { fileUri: url } };
      note("foreign-member", `file ${id ?? ""}`.trim());
      return { text: "" };
    }
  }
}

function mediaPart(url: string): JsonObject {
  const [, mimeType, data] = /^data:([^;,]*)(?:;[^,]*)?,(.*)$/s.exec(url) ?? [];
  return data === undefined ? { fileData: { fileUri: url } } : { inlineData: { mimeType, data } };
}

function writeGeminiEmbed({ model, inputs, dimensions }: EmbeddingRequest): RequestBody {
  return {
    requests: inputs.map((input, at) => {
      if (typeof input !== "string")
        throw invalidRequest("The model's server embeds texts only, no tokens.", `input[${at}]`, "unsupported_value");
      return {
        model: `models/${model.replace(/^models\//, "")}`,
        content: { parts: [{ text: input }] },
        ...(dimensions !== undefined && { outputDimensionality: dimensions }),
      };
    }),
  };
}
