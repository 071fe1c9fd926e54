import { invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { ChatPrompt, GenerationRequest, OutputConstraint, TextPrompt } from "../../core/request.ts";
import type { EmbeddingRequest } from "../../core/engine.ts";
import { adaptBody } from "../adapt/adaptations.ts";
import { withPlainText } from "../adapt/place-system-messages.ts";
import {
  changedBody,
  type NoteAdaptation,
  type RequestBody,
  type ServerProfile,
  withoutUndefined,
} from "../adapt/server-profile.ts";
import { bearer } from "../api-error-format.ts";
import { chatAdaptations, writeOutput } from "../chat/send.ts";
import { writeChatMessages, writeChatTools, writeToolChoice } from "../chat/write-messages.ts";
import { parsedInput } from "../messages/write.ts";
import { unsupportedParameter } from "../request/refusals.ts";
import type { SourcePort } from "../source-port.ts";
import { contextSize, type OllamaModelState } from "./context.ts";
import { OllamaReader } from "./read.ts";

const shared = {
  modelsPath: "/api/tags",
  singleChoice: true,
  headers: bearer,
  // `num_predict` is an option: Ollama lowers a limit that is too high.
  answerLimit: { members: ["num_predict"], none: "absent" },
} as const;

/** Ollama's own API for conversations. */
export const ollamaSource: SourcePort = {
  ...shared,
  name: "ollama",
  path: "/api/chat",
  profile: { imageUrls: false, files: false },
  writeRequest: writeOllamaChat,
  embeddings: { path: "/api/embed", writeRequest: writeOllamaEmbed, toOpenAi: openaiEmbeddings },
  reader: (options) => new OllamaReader(options),
};

/** Ollama's own API for texts: without a template. */
export const ollamaTextSource: SourcePort = {
  ...shared,
  name: "ollama-generate",
  path: "/api/generate",
  writeRequest: writeOllamaGenerate,
  reader: (options) => new OllamaReader(options),
};

/** For models of which nothing is known. */
const unknownModel: OllamaModelState = { minContext: 0 };

/**
 * Writes the body of a request to `/api/chat`. A request that came in this API is forwarded as it came. `note` is called for each adaptation.
 * Throws `FailureError` if the model's server cannot do what is requested, or the prompt is longer than the model's context.
 *
 * `truncate` and `shift` are off: Ollama would leave out the oldest messages of a long prompt, and the oldest tokens of a long answer's
 * context, without a word. Source: ollama 0.33.0 server/prompt.go, llm/llama_server.go.
 */
function writeOllamaChat(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, passthrough, output } = request;
  if (prompt.kind !== "chat") throw new TypeError("A chat request needs a conversation.");
  const original = passthrough?.dialect === "ollama" ? passthrough.body : undefined;
  if (Array.isArray(original?.["messages"])) return finished({ ...original }, request, profile, note);
  noteOmissions(request, note);
  const state = profile.ollama ?? unknownModel;
  const accepted = { ...ollamaDefaults, ...(state.sees !== undefined && { images: state.sees }), ...profile };
  const members = adaptedMembers(request, prompt, accepted, note);
  return finished(
    withoutUndefined({
      model: request.model,
      messages: ollamaMessages(listOf(members["messages"]), note),
      tools: ollamaTools(listOf(members["tools"]), note),
      format: output && ollamaFormat(output, members["response_format"]),
      think: ollamaThink(request, profile, note),
      ...writeLogprobs(request),
    }),
    request,
    profile,
    note,
  );
}

/** What Ollama accepts, in the terms of a chat request. It has no choice among tools. */
const ollamaDefaults: ServerProfile = { toolChoices: ["auto"], parallelCalls: false };

/** Writes the conversation, the tools and the form of the answer as in a chat request, adapted to the server. */
function adaptedMembers(
  request: GenerationRequest,
  { messages }: ChatPrompt,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  const { tools, toolChoice, output, parallelToolCalls } = request;
  const body = withoutUndefined({
    messages: writeChatMessages(messages),
    ...(tools && { tools: writeChatTools(tools) }),
    ...(toolChoice && { tool_choice: writeToolChoice(toolChoice, tools ?? []) }),
    ...(output && writeOutput(output)),
    // Calls are parallel by default.
    parallel_tool_calls: parallelToolCalls === false ? false : undefined,
  });
  return adaptBody(body, chatAdaptations, { profile, request, note });
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Writes the body of a request to `/api/generate` for one text, which the model continues. See `writeOllamaChat`. */
function writeOllamaGenerate(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, output, passthrough } = request;
  if (prompt.kind !== "text") throw new TypeError("A completions request needs a text.");
  if (passthrough?.dialect === "ollama-generate") return finished({ ...passthrough.body }, request, profile, note);
  const { suffix, echo, bestOf } = prompt;
  if (echo === true) throw unsupportedParameter("echo");
  if (bestOf !== undefined && bestOf > 1) throw unsupportedParameter("best_of");
  noteOmissions(request, note);
  return finished(
    withoutUndefined({
      model: request.model,
      prompt: textOf(prompt),
      suffix,
      // The template is what puts a suffix in its place.
      raw: suffix === undefined || suffix === "" ? true : undefined,
      format: output && ollamaFormat(output, writeOutput(output)["response_format"]),
      // Reasoning stays in the text.
      think: profile.ollama?.reasons === true ? false : undefined,
      ...writeLogprobs(request),
    }),
    request,
    profile,
    note,
  );
}

function textOf({ prompts }: TextPrompt): string {
  const [text] = prompts;
  if (typeof text === "string") return text;
  throw invalidRequest("The model's server takes texts only, no tokens.", "prompt", "unsupported_value");
}

/** Completes a body: the model, the stream, the options with the size of the context, then the changes of the profile. */
function finished(
  body: RequestBody,
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  const state = profile.ollama ?? unknownModel;
  const { limits, stream } = request;
  body["model"] = profile.model ?? request.model;
  body["stream"] = stream;
  // A client of this API has its own.
  const own = isObject(body["options"]) ? body["options"] : writeOptions(request);
  body["truncate"] ??= false;
  body["shift"] ??= false;
  if (state.keepAlive !== undefined) body["keep_alive"] ??= state.keepAlive;
  const changed = changedBody(body, profile, note);
  const context = contextSize(changed, limits.maxTokens, state, own["num_ctx"]);
  const added = profile.add?.["options"];
  changed["options"] = {
    ...own,
    ...(context !== undefined && { num_ctx: context }),
    ...(isObject(added) && added),
  };
  return changed;
}

/** Source: api/types.go, `Options`. */
function writeOptions({ sampling, limits }: GenerationRequest): JsonObject {
  return withoutUndefined({
    seed: sampling.seed,
    num_predict: limits.maxTokens,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    repeat_last_n: sampling.repeatLastN,
    temperature: sampling.temperature,
    repeat_penalty: sampling.repeatPenalty,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    stop: limits.stop,
  });
}

/** Notes the members that this API does not have. */
function noteOmissions(request: GenerationRequest, note: NoteAdaptation): void {
  const { sampling, limits, prompt, prediction, verbosity, extra } = request;
  const { variables, documents, responsePrefix } = prompt.kind === "chat" ? prompt.template : {};
  const omitted = {
    logit_bias: sampling.logitBias ?? sampling.textBias,
    xtc_probability: sampling.xtc,
    dry_multiplier: sampling.dry,
    lora: sampling.adapters,
    min_tokens: limits.minTokens,
    ignore_eos: limits.ignoreEos,
    stop_token_ids: limits.stopTokenIds,
    // Whether the model reasons is sent as `think`.
    chat_template_kwargs: Object.keys(variables ?? {}).every(
      (name) => name === "enable_thinking" || name === "thinking",
    )
      ? undefined
      : variables,
    documents,
    response_prefix: responsePrefix,
    prediction,
    verbosity,
    ...extra,
  };
  for (const [name, value] of Object.entries(omitted)) if (value !== undefined) note("foreign-member", name);
}

function writeLogprobs({ logprobs }: GenerationRequest): RequestBody {
  return logprobs ? { logprobs: true, top_logprobs: logprobs.top } : {};
}

/** Converts the tools of a chat request; undefined without any. */
function ollamaTools(tools: readonly JsonObject[], note: NoteAdaptation): RequestBody[] | undefined {
  if (tools.length === 0) return undefined;
  return tools.map(({ function: declared }, at) => {
    const { name, description, parameters } = declared as JsonObject;
    let isChanged = false;
    const schema = readableSchema(parameters, () => (isChanged = true));
    if (isChanged) note("tool-schema-types", `tools[${at}].function.parameters`);
    // A template gets `null` for absent properties, and some fail on it.
    const object = { ...schema, type: "object", properties: schema["properties"] ?? {} };
    return { type: "function", function: withoutUndefined({ name, description, parameters: object }) };
  });
}

/**
 * Returns a schema without the members that Ollama cannot read: it has a type in Go for each member that it knows, and refuses the whole
 * request for one of another type. Others are ignored there. Source: api/types.go, `ToolFunctionParameters`, `ToolProperty`.
 */
function readableSchema(schema: unknown, changed: () => void, depth = 0): JsonObject {
  if (!isObject(schema) || depth > maxDepth) {
    if (schema !== undefined && schema !== true) changed();
    return {};
  }
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]): [string, unknown][] => {
      if (name === "properties" && isObject(value)) {
        const properties = Object.entries(value).map(([key, property]) => [
          key,
          isObject(property) ? readableSchema(property, changed, depth + 1) : readableSchema(property, changed),
        ]);
        return [[name, Object.fromEntries(properties)]];
      }
      if (name === "anyOf" && Array.isArray(value))
        return [[name, value.map((one) => readableSchema(one, changed, depth + 1))]];
      const isReadable = Object.hasOwn(readable, name) ? readable[name]?.(value, depth) : true;
      if (isReadable === false) changed();
      return isReadable === false ? [] : [[name, value]];
    }),
  );
}

/** The depth of schemas, so that a hostile one does not overflow the stack. */
const maxDepth = 200;

const isText = (value: unknown): boolean => value === null || typeof value === "string";
const areTexts = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.every((item) => typeof item === "string"));

/** Whether Ollama can read a member of a schema, by the member's name. */
const readable: Readonly<Record<string, (value: unknown, depth: number) => boolean>> = {
  type: (value, depth) => isText(value) || (depth > 0 && areTexts(value)),
  description: isText,
  required: areTexts,
  enum: (value) => value === null || Array.isArray(value),
  properties: (value) => value === null,
  anyOf: (value) => value === null,
};

/** The value of `think`: absent for the model's default, which is on for a model that reasons. */
function ollamaThink({ reasoning }: GenerationRequest, profile: ServerProfile, note: NoteAdaptation): unknown {
  const state = profile.ollama ?? unknownModel;
  const { effort, mode, budgetTokens } = reasoning ?? {};
  if (mode === "off" || (mode === undefined && effort === "none")) return state.reasons === false ? undefined : false;
  if (mode === undefined && effort === undefined && budgetTokens === undefined) return undefined;
  if (budgetTokens !== undefined) note("reasoning-effort", "thinking_token_budget");
  // Ollama refuses `think` for a model that does not reason.
  if (state.reasons !== true) {
    if (effort !== undefined) note("reasoning-effort", "reasoning_effort");
    return undefined;
  }
  const level = effortLevels(state).get(effort ?? "");
  if (level === undefined || profile.reasoningEffort !== false) return level ?? true;
  note("reasoning-effort", "reasoning_effort");
  return true;
}

function effortLevels({ thinksMax }: OllamaModelState): ReadonlyMap<string, string> {
  const max = thinksMax === true ? "max" : "high";
  return new Map([
    ["minimal", "low"],
    ["low", "low"],
    ["medium", "medium"],
    ["high", "high"],
    ["xhigh", max],
    ["max", max],
    ["ultra", max],
  ]);
}

/** Converts the `response_format` of a chat request. */
function ollamaFormat(output: OutputConstraint, format: unknown): unknown {
  if (output.type === "grammar" || output.type === "regex" || output.type === "choice")
    throw invalidRequest("The model's server holds answers to JSON schemas only.", output.path, "unsupported_value");
  const { type, json_schema: described } = isObject(format) ? format : {};
  const schema = isObject(described) ? described["schema"] : undefined;
  if (type === "json_schema" && isObject(schema)) return schema;
  return type === "json_object" || type === "json_schema" ? "json" : undefined;
}

/** Converts messages of a chat request. Images and sounds become base64 next to the text, and arguments of calls become objects. */
function ollamaMessages(messages: readonly JsonObject[], note: NoteAdaptation): RequestBody[] {
  const names = new Map<unknown, unknown>();
  return messages.map((message, at) => {
    const { role, content, reasoning_content: thinking, refusal, tool_calls: calls, tool_call_id: answered } = message;
    const images: string[] = [];
    const texts = contentTexts(content, images, `messages[${at}].content`);
    if (typeof refusal === "string") texts.push(refusal);
    const toolName = answered === undefined ? undefined : (names.get(answered) ?? message["name"]);
    return withoutUndefined({
      role,
      content: texts.join("\n"),
      thinking: typeof thinking === "string" && thinking !== "" ? thinking : undefined,
      images: images.length > 0 ? images : undefined,
      tool_calls: Array.isArray(calls)
        ? listOf(calls).map((call, index) => {
            const { id, function: called } = call;
            names.set(id, (called as JsonObject)["name"]);
            return { id, function: ollamaCall(called as JsonObject, `messages[${at}].tool_calls[${index}]`, note) };
          })
        : undefined,
      tool_name: toolName,
      tool_call_id: answered,
    });
  });
}

function ollamaCall({ name, arguments: text }: JsonObject, path: string, note: NoteAdaptation): RequestBody {
  const input = text === "" ? {} : parsedInput(String(text));
  if ("INVALID_JSON" in input) note("earlier-arguments", `${path}.function.arguments`);
  return { name, arguments: input };
}

/** Returns the texts of a content, and adds its images and sounds to `images`. */
function contentTexts(content: unknown, images: string[], path: string): string[] {
  const plain = withPlainText(content);
  if (typeof plain === "string") return [plain];
  if (!Array.isArray(plain)) return [];
  return plain.filter(isObject).flatMap((part, at) => {
    const { type, text, refusal, image_url: image, input_audio: audio } = part;
    if (type === "text" && typeof text === "string") return [text];
    if (type === "refusal" && typeof refusal === "string") return [refusal];
    if (type === "image_url" && isObject(image)) images.push(base64Of(image["url"], `${path}[${at}].image_url.url`));
    else if (type === "input_audio" && isObject(audio)) images.push(String(audio["data"]));
    else
      throw invalidRequest(
        "The model's server takes texts, images and sounds only, no files.",
        `${path}[${at}]`,
        "unsupported_value",
      );
    return [];
  });
}

/** Ollama takes the bytes of images only. */
function base64Of(url: unknown, path: string): string {
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(String(url)) ?? [];
  if (data !== undefined) return data.replace(/[^A-Za-z0-9+/=]/g, "");
  throw invalidRequest(
    "The model's server takes images as data URLs in base64 only (data:image/png;base64,...). Send the image's bytes.",
    path,
    "unsupported_value",
  );
}

/** Writes the body of a request to `/api/embed`. Texts that are too long are refused: Ollama would cut them without a word. */
function writeOllamaEmbed(
  { model, inputs, dimensions }: EmbeddingRequest,
  { ollama: state = unknownModel }: ServerProfile,
): RequestBody {
  const texts = inputs.map((input, at) => {
    if (typeof input === "string") return input;
    throw invalidRequest("The model's server embeds texts only, no tokens.", `input[${at}]`, "unsupported_value");
  });
  const longest = texts.reduce((a, b) => (b.length > a.length ? b : a), "");
  const context = contextSize({ prompt: longest }, 0, state);
  return withoutUndefined({
    model,
    input: texts,
    truncate: false,
    dimensions,
    keep_alive: state.keepAlive,
    options: context === undefined ? undefined : { num_ctx: context },
  });
}

/** Converts the answer of `/api/embed` to the form of OpenAI's API. Any other answer is returned unchanged. */
function openaiEmbeddings(answer: unknown): unknown {
  const { embeddings, prompt_eval_count: tokens, model } = isObject(answer) ? answer : {};
  if (!Array.isArray(embeddings)) return answer;
  return { data: embeddings.map((embedding: unknown) => ({ embedding })), model, usage: { prompt_tokens: tokens } };
}
