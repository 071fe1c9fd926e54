import type { GenerationFailure } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import { isInstruction } from "./place-system-messages.ts";
import {
  outputFormats,
  type RequestBody,
  type SchemaCompiler,
  type ServerProfile,
  toolChoiceForms,
} from "./server-profile.ts";

/** The members of a failure that show what a server refused. */
export type UpstreamRefusal = Pick<GenerationFailure, "status" | "message" | "param" | "code">;

/** llama.cpp refuses with 500 what a chat template refuses, OpenRouter with 404 what no provider accepts. */
const statuses: ReadonlySet<number> = new Set([400, 404, 415, 422, 500, 501]);

/**
 * What a refusal shows about its server: the members of the profile that it changes, and the names that it adds to their lists (see
 * `mergedProfile`). null: nothing, or nothing that the profile does not say already. `body`: the refused request, as it was sent. A lesson
 * is about something that the body has: an error that quotes the client's words teaches nothing else. What the server's words claim is
 * only confirmed when it accepts the adapted request.
 */
export function learnRefusal(
  refusal: UpstreamRefusal,
  body: RequestBody,
  profile: ServerProfile,
): ServerProfile | null {
  for (const { words, lesson } of featureRefusals) {
    const learned = words.test(refusal.message) ? lesson(body, profile) : null;
    if (learned) return learned;
  }
  let learned: ServerProfile | null = null;
  for (const path of refusedMembers(refusal).slice(0, maxMembers)) {
    const more = lessonOfMember(path, body, mergedProfile(profile, learned ?? {}));
    if (more) learned = mergedProfile(learned ?? {}, more);
  }
  return learned;
}

/** Whether a refusal has words that `learnRefusal` knows, for a cheap check before the request is read. */
export function mayTeach(refusal: UpstreamRefusal): boolean {
  const { status, message } = refusal;
  if (!statuses.has(status)) return false;
  return featureRefusals.some(({ words }) => words.test(message)) || refusedMembers(refusal).length > 0;
}

/** The maximum number of members that one refusal teaches. */
const maxMembers = 16;
/** The maximum number of refused members in a profile: clients choose the names. */
const maxNames = 64;

interface FeatureRefusal {
  readonly words: RegExp;
  /** Returns null if the request has nothing of this kind, or the profile knows it. */
  readonly lesson: (body: RequestBody, profile: ServerProfile) => ServerProfile | null;
}

/** Wordings of refusals of a role, an order of messages or a kind of content, each with its source. */
const featureRefusals: readonly FeatureRefusal[] = [
  // The chat templates of Qwen 3.5 and others, as vLLM, llama.cpp and LM Studio pass on their errors (ggml-org/llama.cpp#20733).
  { words: /system message must be at the (?:beginning|start)/i, lesson: systemFirst },
  // mistral_common/protocol/instruct/validator.py of mistralai/mistral-common.
  { words: /unexpected role '(?:system|developer)' after role/i, lesson: systemFirst },
  { words: /unexpected role 'user' after role 'tool'/i, lesson: learnOnce("userAfterTool", false) },
  { words: /tool call id was .{0,200} but must be a-z, A-Z, 0-9, with a length of 9/i, lesson: shortIds },
  // The chat template of Gemma 2.
  { words: /system role not supported/i, lesson: systemNowhere },
  // OpenAI's o1-mini: "Unsupported value: 'messages[0].role' does not support 'system' with this model."
  { words: /'messages\[\d+\]\.role' does not support 'system'/i, lesson: systemNowhere },
  // DeepSeek (earendil-works/pi#1048); pydantic's tagged unions, in Mistral's API; OpenAI's enumeration of roles; Qwen's template.
  { words: /unknown variant `developer`|input tag 'developer'|invalid value: 'developer'/i, lesson: systemRole },
  { words: /(?:unexpected|unsupported|unknown|invalid)(?: message)? role/i, lesson: systemRole },
  // The chat templates of Gemma and of older models of Mistral: microsoft/autogen#1037 (vLLM), idiap/sdialog#122 (llama.cpp).
  { words: /roles must alternate/i, lesson: alternate },
  // Ollama, server/images.go: "NAME does not support tools". OpenRouter (evalstate/fast-agent#122). vLLM, serving_chat.py
  // (vllm-project/vllm#9986). DeepSeek's reasoner. llama.cpp, tools/server: without --jinja.
  {
    words:
      /does not support (?:tools\b|function calling)|no endpoints found that support tool use|requires --enable-auto-tool-choice|tools param requires --jinja/i,
    lesson: noTools,
  },
  // OpenRouter (zed-industries/zed#36094). DeepSeek (can1357/oh-my-pi#7315). LM Studio (lmstudio-ai/lmstudio-bug-tracker#670).
  // llama.cpp, common/chat.cpp. vLLM, protocol.py (check_tool_usage).
  {
    words:
      /support the provided 'tool_choice' value|does not support this tool_choice|invalid tool_choice(?: type)?:|invalid value for `tool_choice`|`?tool_choice`?[^.]{0,60}(?:not supported|unsupported)/i,
    lesson: otherToolChoice,
  },
  // DeepSeek (ItzCrazyKns/Vane#969, browser-use/browser-use#215). LM Studio (lmstudio-ai/lmstudio-bug-tracker#189). Groq's documentation,
  // "Structured Outputs": "This model does not support response format `json_schema`".
  {
    words:
      /response_format(?:\.type)?[^.]{0,40} (?:is )?unavailable|'response_format\.type' must be|does not support response format|response_format[^.]{0,60}(?:not supported|unsupported)/i,
    lesson: otherFormat,
  },
  // llama.cpp, tools/server (ggml-org/llama.cpp#13566, #15377, #12947). vLLM, multimodal processing (vllm-project/vllm#23402). OpenRouter.
  // Ollama, x/mlxrunner/pipeline.go and server/images.go. DeepSeek (zhukunpenglinyutong/jetbrains-cc-gui#591). OpenAI.
  {
    words:
      /image input is not (?:supported|enabled)|is not a multimodal model|at most 0 image|no endpoints found that support image input|does not support (?:image input|vision|image)|unsupported content part type: "?image_url|unknown variant `image_url`|image_url is only supported by certain models/i,
    lesson: noImages,
  },
  // llama.cpp, common/json-schema-to-grammar.cpp and tools/server (its issues 21943, 25746, 25895), also as LM Studio and Ollama pass it on.
  { words: /json schema conversion failed|failed to parse grammar/i, lesson: compiledBy("llama.cpp") },
  // vLLM, v1/structured_output/backend_xgrammar.py; SGLang's xgrammar backend.
  {
    words: /not supported by xgrammar|failed to transform json schema into a grammar/i,
    lesson: compiledBy("xgrammar"),
  },
  // OpenAI's and Azure's strict schemas (openai/openai-python#1659).
  {
    words: /^invalid schema for .{0,200}'(?:required|additionalProperties)' is required/i,
    lesson: compiledBy("openai-strict"),
  },
  // vLLM, entrypoints/chat_utils.py: "Unknown part type: file". llama.cpp, common/chat.cpp. Ollama, openai/openai.go.
  { words: /unknown part type: file|unsupported content part type|invalid message format/i, lesson: noFiles },
  // Ollama, server/routes.go.
  { words: /does not support thinking/i, lesson: noEffort },
  // Groq (groq/groq-python#25). Gemini (langchain-ai/langchain-google#1266, GoogleCloudPlatform/generative-ai#1536).
  { words: /`?logprobs`? (?:is|are) not (?:supported|enabled|available)/i, lesson: noLogprobs },
  // Groq (stanfordnlp/dspy#1155). llama.cpp before 2025, examples/server/utils.hpp.
  { words: /'?\bn'?(?: :)? (?:number )?must be at most 1\b|only one completion choice is allowed/i, lesson: oneChoice },
];

/** The messages of a chat request. */
function messagesOf({ messages }: RequestBody): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(messages) ? messages.filter(isObject) : [];
}

/** A lesson that holds for every request. */
function learnOnce<Name extends keyof ServerProfile>(name: Name, value: ServerProfile[Name]): FeatureRefusal["lesson"] {
  return (_body, profile) => (profile[name] === value ? null : { [name]: value });
}

function systemFirst(body: RequestBody, { systemMessages }: ServerProfile): ServerProfile | null {
  const isStray = messagesOf(body).some((message, at) => at > 0 && isInstruction(message));
  return systemMessages === "anywhere" && isStray ? { systemMessages: "first" } : null;
}

function systemNowhere(body: RequestBody, { systemMessages }: ServerProfile): ServerProfile | null {
  return systemMessages !== "none" && messagesOf(body).some(isInstruction) ? { systemMessages: "none" } : null;
}

function systemRole(body: RequestBody, { instructionRole }: ServerProfile): ServerProfile | null {
  const isSent = messagesOf(body).some(({ role }) => role === "developer");
  return instructionRole !== "system" && isSent ? { instructionRole: "system" } : null;
}

function alternate(body: RequestBody, profile: ServerProfile): ServerProfile | null {
  const messages = messagesOf(body);
  const repeats = messages.some(({ role }, at) => at > 0 && role !== "tool" && role === messages[at - 1]?.["role"]);
  if (profile.repeatedRoles !== false && repeats) return { repeatedRoles: false };
  // Templates of this kind may count a system message as one of the two.
  return systemFirst(body, profile) ?? systemNowhere(body, profile);
}

function shortIds(_body: RequestBody, { callIds }: ServerProfile): ServerProfile | null {
  return callIds === "nine" ? null : { callIds: "nine" };
}

function noTools(body: RequestBody, { tools }: ServerProfile): ServerProfile | null {
  return tools !== false && Array.isArray(body["tools"]) && body["tools"].length > 0 ? { tools: false } : null;
}

function otherToolChoice(
  { tool_choice: choice }: RequestBody,
  { toolChoices = toolChoiceForms }: ServerProfile,
): ServerProfile | null {
  const form = isObject(choice) ? "named" : choice;
  return toolChoices.some((one) => one === form) ? { toolChoices: toolChoices.filter((one) => one !== form) } : null;
}

function otherFormat(
  { response_format: format }: RequestBody,
  { outputFormats: known = outputFormats }: ServerProfile,
): ServerProfile | null {
  const type = isObject(format) ? format["type"] : undefined;
  return known.some((one) => one === type) ? { outputFormats: known.filter((one) => one !== type) } : null;
}

function noImages(body: RequestBody, { images }: ServerProfile): ServerProfile | null {
  const hasImage = messagesOf(body).some(
    ({ content }) => Array.isArray(content) && content.some((part) => isObject(part) && part["type"] === "image_url"),
  );
  return images !== false && hasImage ? { images: false } : null;
}

/** A compiler that refuses what is left knows only the plain keywords. */
function compiledBy(compiler: SchemaCompiler): FeatureRefusal["lesson"] {
  return ({ tools, functions, response_format: format }, { schemaCompiler }) => {
    const hasSchema = [tools, functions, isObject(format) ? format["json_schema"] : undefined].some(
      (value) => value !== undefined && value !== null,
    );
    if (!hasSchema || schemaCompiler === "plain") return null;
    return { schemaCompiler: schemaCompiler === compiler ? "plain" : compiler };
  };
}

function noFiles(body: RequestBody, { files }: ServerProfile): ServerProfile | null {
  const hasFile = messagesOf(body).some(
    ({ content }) => Array.isArray(content) && content.some((part) => isObject(part) && part["type"] === "file"),
  );
  return files !== false && hasFile ? { files: false } : null;
}

function noEffort(body: RequestBody, profile: ServerProfile): ServerProfile | null {
  return droppedMember("reasoning_effort", body, profile) ?? droppedMember("reasoning", body, profile);
}

function noLogprobs(body: RequestBody, { logprobs }: ServerProfile): ServerProfile | null {
  const isRequested = [body["logprobs"], body["top_logprobs"]].some((value) => value !== undefined && value !== null);
  return logprobs !== false && isRequested ? { logprobs: false } : null;
}

function oneChoice({ n }: RequestBody, { severalChoices }: ServerProfile): ServerProfile | null {
  return severalChoices !== false && typeof n === "number" && n > 1 ? { severalChoices: false } : null;
}

/** Wordings of refusals of a member; `path`: its place, `at`: the place of the object that has it. */
const memberRefusals: readonly RegExp[] = [
  // pydantic through FastAPI (`detail`), as `readFailure` joins place and message: Mistral (BerriAI/litellm#30835), vLLM, SGLang.
  // Anthropic (Wei-Shaw/claude-relay-service#660).
  /(?<path>[\w$.[\]]{1,200}): Extra inputs are not permitted/g,
  // pydantic's own text: vLLM before 0.7 (1Panel-dev/MaxKB#2912).
  /'loc': \((?<path>(?:'?[\w$]{1,64}'?,? ?){1,12})\), 'msg': 'Extra inputs are not permitted'/g,
  // Fireworks (FlowiseAI/Flowise#2866, web-infra-dev/midscene#1322).
  /Extra inputs are not permitted, field: '(?<path>[^']{1,200})'/g,
  // Groq (fanenr/chatbot#21, tashfeenahmed/freellmapi#1070), Cerebras.
  /(?:'(?<at>[\w.$[\]]{1,200})' : )?property '(?<path>[^']{1,200})' is unsupported/g,
  // Gemini (MinLL/SkyrimNet-GamePlugin#77, musistudio/claude-code-router#187).
  /Unknown name "(?<path>[^"]{1,64})"(?: at '(?<at>[^']{1,300})')?: Cannot find field/g,
  // Bedrock (BerriAI/litellm#7416, crmne/ruby_llm#586, lastmile-ai/mcp-agent#126).
  /#(?<at>\/[\w$/]{1,300})?: extraneous key \[(?<path>[^\]]{1,64})\] is not permitted/g,
  // OpenAI and Azure before 2024-09 (Azure/azure-sdk-for-net#45719), and since (microsoft/semantic-kernel#8189).
  /Unrecognized request arguments? supplied: (?<list>[\w, ]{1,300})/g,
  /Unknown parameter: '(?<path>[^']{1,200})'/g,
  /Unsupported parameter: '(?<path>[^']{1,200})' is not supported/g,
  // OpenAI's models that reason (agno-agi/agno#9951).
  /Unsupported value: '(?<path>\w{1,64})' does not support .{1,64} with this model\. Only the default/g,
  // LiteLLM, litellm/utils.py (BerriAI/litellm#38265).
  /does not support parameters: \[(?<list>[\w', ]{1,300})\]/g,
  // Python's jsonschema, in OpenAI's errors of 2023.
  /Additional properties are not allowed \('(?<path>[^']{1,64})' was unexpected\)(?: - '(?<at>[^']{1,200})')?/g,
  // Rust's serde with `deny_unknown_fields`; Go's encoding/json with DisallowUnknownFields.
  /unknown field `(?<path>[^`]{1,64})`/g,
  /json: unknown field "(?<path>[^"]{1,64})"/g,
];

/** OpenAI, for schemas with `strict`: "Invalid schema for function 'f': In context=(), 'pattern' is not permitted." */
const schemaKeyword = /^Invalid schema for .{0,200}'(?<keyword>[\w$]{1,64})' is not permitted/;

/** The places of the members that a refusal names, each as the names and indices on its path. */
function refusedMembers({ message, param, code }: UpstreamRefusal): readonly (readonly string[])[] {
  const paths: string[] = [];
  for (const pattern of memberRefusals)
    for (const { groups } of message.matchAll(pattern)) {
      const { path, at, list }: Readonly<Record<string, string | undefined>> = groups ?? {};
      if (list !== undefined) paths.push(...list.split(","));
      else if (path !== undefined) paths.push(at === undefined ? path : `${at}.${path}`);
    }
  if (
    paths.length === 0 &&
    typeof param === "string" &&
    (code === "unsupported_parameter" || code === "unknown_parameter")
  )
    paths.push(param);
  const keyword = schemaKeyword.exec(message)?.groups?.["keyword"];
  if (keyword !== undefined) paths.push(`tools.parameters.${keyword}`);
  return paths.map((path) =>
    path
      .split(/[^\w$-]+/)
      .filter((name) => name !== "")
      .filter((name, at) => !(at === 0 && name === "body")),
  );
}

/** Members without which a request means nothing. */
const essential: ReadonlySet<string> = new Set(["model", "messages", "prompt", "input", "stream", "role", "content"]);

function lessonOfMember(path: readonly string[], body: RequestBody, profile: ServerProfile): ServerProfile | null {
  const [top = "", ...inner] = path;
  const last = path.at(-1) ?? "";
  if (top === "messages") return inner.length === 0 ? null : lessonOfMessage(last, body, profile);
  const isInSchema = /(?:^|\.)(?:parameters|schema)\./.test(path.join("."));
  if ((top === "tools" || top === "response_format") && inner.length > 0) {
    if (isInSchema) return refusedKeyword(last, profile);
    return last === "strict" && profile.strictSchemas !== false ? { strictSchemas: false } : null;
  }
  if (body[top] === undefined || body[top] === null) return null;
  switch (top) {
    case "tools":
    case "functions":
      return noTools(body, profile);
    case "tool_choice":
      return otherToolChoice(body, profile);
    case "response_format":
      return otherFormat(body, profile);
    case "n":
      return oneChoice(body, profile);
    case "logprobs":
    case "top_logprobs":
      return noLogprobs(body, profile);
    case "stream_options":
      return profile.streamOptions === false ? null : { streamOptions: false };
    case "parallel_tool_calls":
      return profile.parallelCalls === false ? null : { parallelCalls: false };
    case "max_tokens":
    case "max_completion_tokens": {
      const maxTokensMember = top === "max_tokens" ? "max_completion_tokens" : "max_tokens";
      // A server that refuses both must not be asked by turns.
      return profile.maxTokensMember === undefined ? { maxTokensMember } : null;
    }
    default:
      return droppedMember(top, body, profile);
  }
}

function lessonOfMessage(name: string, body: RequestBody, profile: ServerProfile): ServerProfile | null {
  if (name === "reasoning_content" || name === "reasoning")
    return profile.reasoningHistory === false ? null : { reasoningHistory: false };
  const { dropInMessages = [] } = profile;
  const isSent = messagesOf(body).some((message) => Object.hasOwn(message, name) && message[name] !== undefined);
  if (essential.has(name) || !isSent || !isName(name) || dropInMessages.includes(name)) return null;
  // Calls and their ids are the conversation.
  if (name === "tool_calls" || name === "tool_call_id" || dropInMessages.length >= maxNames) return null;
  return { dropInMessages: [name] };
}

function droppedMember(name: string, body: RequestBody, { drop = [] }: ServerProfile): ServerProfile | null {
  if (essential.has(name) || !isName(name) || !Object.hasOwn(body, name)) return null;
  return drop.includes(name) || drop.length >= maxNames ? null : { drop: [name] };
}

function refusedKeyword(name: string, { refusedKeywords = [] }: ServerProfile): ServerProfile | null {
  if (refusedKeywords.includes(name) || refusedKeywords.length >= maxNames) return null;
  return { refusedKeywords: [name] };
}

/** Names of other forms are no member's, and could not be shown. */
function isName(name: string): boolean {
  return /^[a-z][\w-]{0,63}$/i.test(name);
}

/**
 * Merges profiles: later ones win, and what any of them lists as refused is refused. Results with the same members in the same order have the same
 * hidden class, so V8 keeps the code that it has optimized for a profile when a probe has taught nothing.
 */
export function mergedProfile(...profiles: readonly ServerProfile[]): ServerProfile {
  const merged: { -readonly [Name in keyof ServerProfile]: ServerProfile[Name] } = Object.assign({}, ...profiles);
  for (const name of ["drop", "dropInMessages", "refusedKeywords"] as const) {
    const all = new Set(profiles.flatMap((profile) => profile[name] ?? []));
    if (all.size > 0) merged[name] = [...all];
  }
  return merged;
}
