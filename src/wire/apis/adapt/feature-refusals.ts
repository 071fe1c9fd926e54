import { isObject, type JsonObject } from "../../core/json.ts";
import { droppedMember } from "./dropped-member.ts";
import { isInstruction, withPlainText } from "./place-system-messages.ts";
import { isShortToolName, toolNamesIn } from "./tool-names.ts";
import {
  outputFormats,
  type RequestBody,
  type SchemaCompiler,
  type ServerProfile,
  toolChoiceForms,
} from "./server-profile.ts";

/*
 * What refusals say about roles, the order of messages and kinds of content: words of servers, each with its source, and what they teach.
 */

interface FeatureRefusal {
  /** Its group `place`, if there is one and it matches, must name a content. */
  readonly words: RegExp;
  /**
   * Returns null if the request has nothing of this kind, or the profile knows it. `at`: the index of the message that the refusal names;
   * undefined: it names none, or several.
   */
  readonly lesson: (body: RequestBody, profile: ServerProfile, at: number | undefined) => ServerProfile | null;
}

/** Wordings of refusals of a role, an order of messages or a kind of content, each with its source. */
export const featureRefusals: readonly FeatureRefusal[] = [
  // The chat templates of Qwen 3.5 and others, as vLLM, llama.cpp and LM Studio pass on their errors (ggml-org/llama.cpp#20733).
  { words: /system message must be at the (?:beginning|start)/gi, lesson: systemFirst },
  // mistral_common/protocol/instruct/validator.py of mistralai/mistral-common.
  { words: /unexpected role '(?:system|developer)' after role/gi, lesson: systemFirst },
  { words: /unexpected role 'user' after role 'tool'/gi, lesson: noUserAfterTool },
  { words: /tool call id was .{0,200} but must be a-z, A-Z, 0-9, with a length of 9/gi, lesson: shortIds },
  // The chat template of Gemma 2.
  { words: /system role not supported/gi, lesson: systemNowhere },
  // OpenAI's o1-mini: "Unsupported value: 'messages[0].role' does not support 'system' with this model."
  { words: /'messages\[\d+\]\.role' does not support 'system'/gi, lesson: systemNowhere },
  // DeepSeek (earendil-works/pi#1048); pydantic's tagged unions, in Mistral's API; OpenAI's enumeration of roles; Qwen's template.
  { words: /unknown variant `developer`|input tag 'developer'|invalid value: 'developer'/gi, lesson: systemRole },
  { words: /(?:unexpected|unsupported|unknown|invalid)(?: message)? role/gi, lesson: systemRole },
  // The chat templates of Gemma and of older models of Mistral: microsoft/autogen#1037 (vLLM), idiap/sdialog#122 (llama.cpp).
  { words: /roles must alternate/gi, lesson: alternate },
  // Ollama, server/images.go: "NAME does not support tools". OpenRouter (evalstate/fast-agent#122). vLLM, serving_chat.py
  // (vllm-project/vllm#9986). DeepSeek's reasoner. llama.cpp, tools/server: without --jinja.
  {
    words:
      /does not support (?:tools\b|function calling)|no endpoints found that support tool use|requires --enable-auto-tool-choice|tools param requires --jinja/gi,
    lesson: noTools,
  },
  // OpenRouter (zed-industries/zed#36094). DeepSeek (can1357/oh-my-pi#7315). LM Studio (lmstudio-ai/lmstudio-bug-tracker#670).
  // llama.cpp, common/chat.cpp. vLLM, protocol.py (check_tool_usage).
  {
    words:
      /support the provided 'tool_choice' value|does not support this tool_choice|invalid tool_choice(?: type)?:|invalid value for `tool_choice`|`?tool_choice`?[^.]{0,60}(?:not supported|unsupported)/gi,
    lesson: otherToolChoice,
  },
  // DeepSeek (ItzCrazyKns/Vane#969, browser-use/browser-use#215). LM Studio (lmstudio-ai/lmstudio-bug-tracker#189). Groq's documentation,
  // "Structured Outputs": "This model does not support response format `json_schema`".
  {
    words:
      /response_format(?:\.type)?[^.]{0,40} (?:is )?unavailable|'response_format\.type' must be|does not support response format|response_format[^.]{0,60}(?:not supported|unsupported)/gi,
    lesson: otherFormat,
  },
  // llama.cpp, tools/server (ggml-org/llama.cpp#13566, #15377, #12947). vLLM, multimodal processing (vllm-project/vllm#23402). OpenRouter.
  // Ollama, x/mlxrunner/pipeline.go and server/images.go. DeepSeek (zhukunpenglinyutong/jetbrains-cc-gui#591). OpenAI.
  {
    words:
      /image input is not (?:supported|enabled)|is not a multimodal model|at most 0 image|no endpoints found that support image input|does not support (?:image input|vision|image)|unsupported content part type: "?image_url|unknown variant `image_url`|image_url is only supported by certain models/gi,
    lesson: noImages,
  },
  // llama.cpp, common/json-schema-to-grammar.cpp and tools/server (its issues 21943, 25746, 25895), also as LM Studio and Ollama pass it on;
  // b11549: "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/a: …".
  {
    words: /json schema conversion failed|failed to parse grammar|parser generation failed: json schema error/gi,
    lesson: compiledBy("llama.cpp"),
  },
  // vLLM, v1/structured_output/backend_xgrammar.py; SGLang's xgrammar backend.
  {
    words: /not supported by xgrammar|failed to transform json schema into a grammar/gi,
    lesson: compiledBy("xgrammar"),
  },
  // vLLM 0.32, which compiles with llguidance what xgrammar does not take: "Grammar error: Unimplemented keys: [\"uniqueItems\"]".
  {
    words: /grammar error: (?:unimplemented keys|unknown format|min\/maxproperties|regex parse error|lookarounds)/gi,
    lesson: compiledBy("llguidance"),
  },
  // OpenAI's and Azure's strict schemas (openai/openai-python#1659).
  {
    words: /^invalid schema for .{0,200}'(?:required|additionalProperties)' is required/gi,
    lesson: compiledBy("openai-strict"),
  },
  // vLLM, entrypoints/chat_utils.py: "Unknown part type: file"; 0.32: "Unsupported chat content part type: 'file'". llama.cpp, common/chat.cpp:
  // "unsupported content[].type". Ollama, openai/openai.go.
  {
    words:
      /unknown part type: file|unsupported content part type|unsupported content\[\]\.type|unsupported chat content part type: 'file'|invalid message format/gi,
    lesson: noFiles,
  },
  // Ollama, server/routes.go.
  { words: /does not support thinking/gi, lesson: noEffort },
  // Ollama 0.17, the same file: a level of thinking, which only gpt-oss has there.
  { words: /think value [^\n]{0,40}? is not supported for this model/gi, lesson: noLevels },
  // mellea 0.8, cli/serve: pydantic's enumeration of roles, and of `tool_choice`, whose place it does not name.
  { words: /input should be 'system', 'user', 'assistant'(?![^\n]{0,60}developer)/gi, lesson: systemRole },
  { words: /input should be 'none' or 'auto'/gi, lesson: otherToolChoice },
  // DeepSeek (awesome-deepseek-integration#57: "messages[2]: invalid type: sequence, expected a string"); OpenCode's gateway (tbphp/gpt-load
  // #743) and servers with pydantic 2: "Input should be a valid string"; pydantic 1: "str type expected" (jeffdapaz/VisualChatGPTStudio#66).
  // vLLM 0.32 says so of `stop` with five texts ('loc': 'body.stop') and of a content that is null, too.
  {
    words:
      /invalid type: sequence, expected a string|(?:'loc': (?<place>[^\n:]{1,200}?), 'msg': ['"])?input should be a valid string(?!['"], 'input': '?(?:none|[\d{-]|<dict))|str type expected/gi,
    lesson: onlyStrings,
  },
  // Azure ("Invalid type for 'messages[0].content': expected a string, but got an array instead", danny-avila/LibreChat#3111); Groq
  // ("'messages.0.content' : value must be a string"); Go's encoding/json.
  {
    words:
      /\bcontents?\b[^\n]{0,80}?\b(?:expected|must be|should be|takes?|wants?|needs?|requires?|only) (?:an? )?(?:valid |plain )?string|cannot unmarshal array into Go struct field [\w.]{0,80}content of type string/gi,
    lesson: onlyStrings,
  },
  // Gemini: "Function call is missing a thought_signature in functionCall parts." (manthanabc/paws#103). Vertex: "function call `xxx` in the 5.
  // content block is missing a `thought_signature`" (GewoonJaap/gemini-cli-openai#156). OpenRouter and LiteLLM quote them
  // (UKGovernmentBEIS/inspect_ai#2838), and demand other members.
  { words: /require OpenRouter reasoning details/gi, lesson: stateDemanded("reasoning_details") },
  {
    words: /litellm\.[^\n]{0,300}?missing a `?thought_?signature/gi,
    lesson: stateDemanded("provider_specific_fields"),
  },
  { words: /missing a `?thought_?signature/gi, lesson: stateDemanded("extra_content") },
  // DeepSeek: "The `reasoning_content` in the thinking mode must be passed back to the API." (anomalyco/opencode#25356). Kimi: "thinking is
  // enabled but reasoning_content is missing in assistant tool call message at index 2".
  {
    words:
      /\breasoning[_ ](?:content|details)\b[^\n]{0,120}?\b(?:must(?! not)|missing|absent|required|expected|needs?|ha(?:s|ve) to|lacks?|back)\b|\b(?:missing|requires?|must(?! not)|expected|lacks?|needs?|without|no)\b[^\n]{0,120}?\breasoning[_ ](?:content|details)\b/gi,
    lesson: reasoningDemanded,
  },
  // OpenAI, of models that do not reason (openclaw/openclaw#52023): "Encrypted content is not supported with this model."
  { words: /encrypted content is not supported|\binclude(?:\[\d{1,4}\]|\.\d{1,4}\b)/gi, lesson: noEncryption },
  // OpenAI: "Item 'fc_…' of type 'function_call' was provided without its required 'reasoning' item: 'rs_…'." (VRSEN/agency-swarm#367)
  { words: /was provided without its required [`'"]?reasoning[`'"]? item/gi, lesson: noItemIds },
  // DeepSeek, for Responses: "The `reasoning_text` in the thinking mode must be passed back to the API." (rikkahub/rikkahub#1690). llama.cpp,
  // tools/server/server-chat.cpp, of a reasoning item: "item['content'] is not an array", "item['content'] is empty".
  {
    words: /\breasoning_text\b[^\n]{0,120}?\bmust be passed back|item\['content'\] is (?:not an array|empty)/gi,
    lesson: reasoningTextDemanded,
  },
  // DeepSeek, for Messages: "The `content[].thinking` in the thinking mode must be passed back to the API." (anomalyco/opencode#24791)
  { words: /\bcontent\[\]\.thinking\b[^\n]{0,120}?\bpassed back\b/gi, lesson: thinkingDemanded },
  // OpenAI: "Invalid 'tools[5].function.name': string too long. Expected a string with maximum length 64" (microsoft/foundry-dev-tools#201),
  // "… Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'". Anthropic before 2025-09, pydantic: "tools.13.custom.name: String
  // should have at most 64 characters". Bedrock: "toolSpec.name … Member must have length less than or equal to 64".
  {
    words: /\bname\b[^\n]{0,200}?(?:\b64\b|\[a-zA-Z0-9_-\]|\bpattern\b|invalid characters?)/gi,
    lesson: onlyShortNames,
  },
  // Servers with Responses: llama.cpp ("'type' of tool must be 'function'"), vLLM and others with pydantic's unions.
  {
    words:
      /(?:unknown|unsupported|invalid) tool type|\btools?(?:\[\d+\]|\.\d+)\.type\b|'type' of tool must be|tool type[^\n]{0,60}?(?:not supported|unsupported|unknown)|custom tools? (?:is|are) not supported|input should be 'function'/gi,
    lesson: onlyFunctions,
  },
  // Groq (groq/groq-python#25). Gemini (langchain-ai/langchain-google#1266, GoogleCloudPlatform/generative-ai#1536).
  { words: /`?logprobs`? (?:is|are) not (?:supported|enabled|available)/gi, lesson: noLogprobs },
  // Bedrock's Converse, of models without a cache (BerriAI/litellm#39210).
  { words: /your request did not allow prompt caching/gi, lesson: noCache },
  // Groq (stanfordnlp/dspy#1155). llama.cpp before 2025, examples/server/utils.hpp; since: "Field 'n': Value must be between 1 <= value <= 1",
  // of a server with one slot. vLLM 0.32, with a temperature of 0: "n must be 1 when using greedy sampling, got 2." mellea 0.8: "Multiple
  // completions (n=2) are not supported."
  {
    words:
      /'?\bn'?(?: :)? (?:number )?must be (?:at most )?1\b|only one completion choice is allowed|field 'n': value must be between 1 <= value <= 1\b|multiple completions \(n=\d{1,4}\) are not supported/gi,
    lesson: oneChoice,
  },
];

/** The messages of a request, or the one that a refusal names. */
export function messagesOf({ messages }: RequestBody, at?: number): readonly JsonObject[] {
  const list: readonly JsonObject[] = Array.isArray(messages) ? messages.filter(isObject) : [];
  const named = at === undefined ? undefined : list[at];
  return named ? [named] : list;
}

/** The parts of the messages' contents. */
function partsOf(body: RequestBody, at?: number): readonly JsonObject[] {
  return messagesOf(body, at).flatMap(({ content }) => (Array.isArray(content) ? content.filter(isObject) : []));
}

function systemFirst(body: RequestBody, { systemMessages }: ServerProfile): ServerProfile | null {
  const isStray = messagesOf(body).some((message, at) => at > 0 && isInstruction(message));
  return systemMessages === "anywhere" && isStray ? { systemMessages: "first" } : null;
}

function systemNowhere(
  body: RequestBody,
  { systemMessages }: ServerProfile,
  at: number | undefined,
): ServerProfile | null {
  return systemMessages !== "none" && messagesOf(body, at).some(isInstruction) ? { systemMessages: "none" } : null;
}

function noUserAfterTool(body: RequestBody, { userAfterTool }: ServerProfile): ServerProfile | null {
  const messages = messagesOf(body);
  const isSent = messages.some(({ role }, at) => role === "user" && messages[at - 1]?.["role"] === "tool");
  return userAfterTool !== false && isSent ? { userAfterTool: false } : null;
}

function systemRole(
  body: RequestBody,
  { instructionRole }: ServerProfile,
  at: number | undefined,
): ServerProfile | null {
  const isSent = messagesOf(body, at).some(({ role }) => role === "developer");
  return instructionRole !== "system" && isSent ? { instructionRole: "system" } : null;
}

function alternate(body: RequestBody, profile: ServerProfile): ServerProfile | null {
  const messages = messagesOf(body);
  const repeats = messages.some(({ role }, at) => at > 0 && role !== "tool" && role === messages[at - 1]?.["role"]);
  if (profile.repeatedRoles !== false && repeats) return { repeatedRoles: false };
  // Templates of this kind may count a system message as one of the two.
  return systemFirst(body, profile) ?? systemNowhere(body, profile, undefined);
}

function shortIds(body: RequestBody, { callIds }: ServerProfile): ServerProfile | null {
  const ids = messagesOf(body).flatMap(({ tool_calls: calls, tool_call_id: id }) => [
    id,
    ...(Array.isArray(calls) ? calls.filter(isObject).map((call) => call["id"]) : []),
  ]);
  const isLong = ids.some((id) => typeof id === "string" && !/^[a-z0-9]{9}$/i.test(id));
  return callIds !== "nine" && isLong ? { callIds: "nine" } : null;
}

export function noTools(body: RequestBody, { tools }: ServerProfile): ServerProfile | null {
  return tools !== false && Array.isArray(body["tools"]) && body["tools"].length > 0 ? { tools: false } : null;
}

export function otherToolChoice(
  { tool_choice: choice, tools }: RequestBody,
  { toolChoices = toolChoiceForms }: ServerProfile,
): ServerProfile | null {
  const form = isObject(choice) ? "named" : choice;
  // A choice of a tool that the request does not have is the client's mistake.
  if (isObject(choice) && tools !== undefined && !toolNamesIn({ tools }).has(chosenName(choice))) return null;
  return toolChoices.some((one) => one === form) ? { toolChoices: toolChoices.filter((one) => one !== form) } : null;
}

export function otherFormat(
  { response_format: format }: RequestBody,
  { outputFormats: known = outputFormats }: ServerProfile,
): ServerProfile | null {
  const type = isObject(format) ? format["type"] : undefined;
  return known.some((one) => one === type) ? { outputFormats: known.filter((one) => one !== type) } : null;
}

function chosenName(choice: JsonObject): string {
  const { function: declared, custom, name } = choice;
  const named = isObject(declared) ? declared["name"] : isObject(custom) ? custom["name"] : name;
  return typeof named === "string" ? named : "";
}

function noImages(body: RequestBody, { images }: ServerProfile, at: number | undefined): ServerProfile | null {
  const hasImage = partsOf(body, at).some(({ type }) => type === "image_url");
  return images !== false && hasImage ? { images: false } : null;
}

/** A server that takes strings only takes no images either. */
function onlyStrings(body: RequestBody, profile: ServerProfile, at: number | undefined): ServerProfile | null {
  const isSent = messagesOf(body, at).some(
    ({ content }) => Array.isArray(content) && typeof withPlainText(content) === "string",
  );
  return profile.contentParts !== false && isSent ? { contentParts: false } : noImages(body, profile, at);
}

/** First with every message that has calls, then with every message of the assistant. */
function reasoningDemanded(
  body: RequestBody,
  { reasoningDemand, reasoningMember = "reasoning_content" }: ServerProfile,
  at: number | undefined,
): ServerProfile | null {
  if (reasoningMember === "content") return null;
  const lacking = messagesOf(body, at).filter(
    (message) => message["role"] === "assistant" && typeof message[reasoningMember] !== "string",
  );
  const isOfCalls = lacking.some(({ tool_calls: calls }) => Array.isArray(calls) && calls.length > 0);
  if (isOfCalls && reasoningDemand === undefined) return { reasoningDemand: "calls" };
  return lacking.length > 0 && reasoningDemand !== "all" ? { reasoningDemand: "all" } : null;
}

/** A server that a value in this member does not satisfy demands it in no other one that is known. */
function stateDemanded(stateDemand: NonNullable<ServerProfile["stateDemand"]>): FeatureRefusal["lesson"] {
  return (body, profile) => {
    const hasCall = messagesOf(body).some(({ tool_calls: calls }) => Array.isArray(calls) && calls.length > 0);
    return profile.stateDemand === undefined && hasCall ? { stateDemand } : null;
  };
}

/** The items of a Responses request. */
function itemsOf({ input }: RequestBody): readonly JsonObject[] {
  return Array.isArray(input) ? input.filter(isObject) : [];
}

export function noEncryption(body: RequestBody, { encryptedReasoning }: ServerProfile): ServerProfile | null {
  const { include } = body;
  const isSent =
    (Array.isArray(include) && include.includes("reasoning.encrypted_content")) ||
    itemsOf(body).some(({ encrypted_content: encrypted }) => typeof encrypted === "string");
  return encryptedReasoning !== false && isSent ? { encryptedReasoning: false } : null;
}

function noItemIds(body: RequestBody, { itemIds }: ServerProfile): ServerProfile | null {
  const isSent = itemsOf(body).some(
    ({ type, role, id }) => id !== undefined && type !== "reasoning" && role !== "user",
  );
  return itemIds !== false && isSent ? { itemIds: false } : null;
}

/** First the text of reasoning, then some with every call. */
function reasoningTextDemanded(
  body: RequestBody,
  { reasoningHistory, reasoningDemand }: ServerProfile,
): ServerProfile | null {
  const isOfTurn = ({ type }: JsonObject): boolean =>
    type === "reasoning" || type === "function_call" || type === "custom_tool_call";
  if (!itemsOf(body).some(isOfTurn)) return null;
  if (reasoningHistory !== true) return { reasoningHistory: true };
  return reasoningDemand === undefined ? { reasoningDemand: "calls" } : null;
}

/** A message with calls and without thinking may have had some that was left out, or none: then an empty one is sent. */
function thinkingDemanded(
  body: RequestBody,
  { reasoningHistory, reasoningDemand }: ServerProfile,
): ServerProfile | null {
  const ofAssistant = messagesOf(body).filter(({ role }) => role === "assistant");
  const lacksThinking = ofAssistant.some(({ content }) => {
    const types = Array.isArray(content) ? content.filter(isObject).map(({ type }) => type) : [];
    return types.includes("tool_use") && !types.includes("thinking");
  });
  if (ofAssistant.length === 0 || (reasoningHistory === true && (reasoningDemand !== undefined || !lacksThinking)))
    return null;
  return { reasoningHistory: true, ...(lacksThinking && { reasoningDemand: "calls" }) };
}

function onlyShortNames(body: RequestBody, { toolNames }: ServerProfile): ServerProfile | null {
  const isLong = [...toolNamesIn(body)].some((name) => !isShortToolName(name));
  return toolNames !== "short" && isLong ? { toolNames: "short" } : null;
}

function onlyFunctions({ tools }: RequestBody, { customTools }: ServerProfile): ServerProfile | null {
  const isSent = Array.isArray(tools) && tools.some((tool) => isObject(tool) && tool["type"] === "custom");
  return customTools !== false && isSent ? { customTools: false } : null;
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

function noFiles(body: RequestBody, { files }: ServerProfile, at: number | undefined): ServerProfile | null {
  const hasFile = partsOf(body, at).some(({ type }) => type === "file");
  return files !== false && hasFile ? { files: false } : null;
}

function noEffort(body: RequestBody, profile: ServerProfile): ServerProfile | null {
  return droppedMember("reasoning_effort", body, profile) ?? droppedMember("reasoning", body, profile);
}

function noLevels(body: RequestBody, profile: ServerProfile): ServerProfile | null {
  if (typeof body["think"] !== "string") return noEffort(body, profile);
  return profile.reasoningEffort === false ? null : { reasoningEffort: false };
}

export function noLogprobs(body: RequestBody, { logprobs }: ServerProfile): ServerProfile | null {
  const isRequested = [body["logprobs"], body["top_logprobs"]].some((value) => value !== undefined && value !== null);
  return logprobs !== false && isRequested ? { logprobs: false } : null;
}

function noCache(_: RequestBody, { automaticCache, cacheMarks }: ServerProfile): ServerProfile | null {
  return automaticCache === false && cacheMarks === false ? null : { automaticCache: false, cacheMarks: false };
}

export function oneChoice({ n }: RequestBody, { severalChoices }: ServerProfile): ServerProfile | null {
  return severalChoices !== false && typeof n === "number" && n > 1 ? { severalChoices: false } : null;
}
