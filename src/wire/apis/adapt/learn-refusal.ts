import type { GenerationFailure } from "../../core/events.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { ClientWords } from "./client-words.ts";
import { isInstruction, withPlainText } from "./place-system-messages.ts";
import { isShortToolName, toolNamesIn } from "./tool-names.ts";
import {
  outputFormats,
  type RequestBody,
  type SchemaCompiler,
  type ServerProfile,
  toolChoiceForms,
} from "./server-profile.ts";

/** The members of a failure that show what a server refused. */
export type UpstreamRefusal = Pick<GenerationFailure, "status" | "message" | "param" | "code">;

/** llama.cpp refuses with 500 what a chat template refuses, OpenRouter with 404 what no provider accepts, Bedrock with 403 marks of its cache. */
const statuses: ReadonlySet<number> = new Set([400, 403, 404, 415, 422, 500, 501]);

/**
 * What a refusal shows about its server: one change of the profile (see `mergedProfile`). null: nothing, or nothing that the profile does not
 * say already. `body`: the refused request, as it was sent.
 *
 * A lesson is about something that the body has, at the place that the refusal names, and from the server's own words: a refusal may quote
 * the request, and what is in a client's value is not read. One refusal teaches one thing, so that the next attempt confirms it alone.
 */
export function learnRefusal(
  refusal: UpstreamRefusal,
  body: RequestBody,
  profile: ServerProfile,
): ServerProfile | null {
  const client = new ClientWords(body);
  // Bedrock's Converse has the members of the model apart.
  const { additionalModelRequestFields: apart } = body;
  const members = isObject(apart) ? { ...apart, ...body } : body;
  const message = client.masked(wordsOf(refusal));
  const own = { ...refusal, message };
  const at = namedMessage(own);
  for (const { words, lesson } of featureRefusals)
    for (const { 0: found, groups } of message.matchAll(words)) {
      const place = groups?.["place"];
      if (place !== undefined && !place.includes("content")) continue;
      const learned = client.has(found) ? null : lesson(body, profile, at);
      if (learned) return learned;
    }
  for (const path of refusedMembers(own, client).slice(0, maxMembers)) {
    const learned = lessonOfMember(path, members, profile);
    if (learned) return learned;
  }
  return null;
}

/** Whether a refusal has words that `learnRefusal` knows, for a cheap check before the request is read. */
export function mayTeach(refusal: UpstreamRefusal): boolean {
  if (!statuses.has(refusal.status)) return false;
  const message = wordsOf(refusal);
  return (
    featureRefusals.some(({ words }) => message.search(words) !== -1) || refusedMembers(refusal, undefined).length > 0
  );
}

/** Xiaomi has its words in `param` (chatboxai/chatbox#3715). */
function wordsOf({ message, param }: UpstreamRefusal): string {
  return typeof param === "string" && param.includes(" ") ? `${message}\n${param}` : message;
}

/** The index of the message that a refusal names, if it names one only. */
function namedMessage({ message, param }: UpstreamRefusal): number | undefined {
  const named = [...`${message} ${param ?? ""}`.matchAll(/messages(?:\[|\.)(\d{1,6})\b/g)].map(([, at]) => Number(at));
  return new Set(named).size === 1 ? named[0] : undefined;
}

/** The maximum number of members that are read from one refusal. */
const maxMembers = 16;
/** The maximum number of refused members in a profile: clients choose the names. */
const maxNames = 64;

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
const featureRefusals: readonly FeatureRefusal[] = [
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
  { words: /your request did not allow prompt caching/gi, lesson: noAutomaticCache },
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
function messagesOf({ messages }: RequestBody, at?: number): readonly JsonObject[] {
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

function noTools(body: RequestBody, { tools }: ServerProfile): ServerProfile | null {
  return tools !== false && Array.isArray(body["tools"]) && body["tools"].length > 0 ? { tools: false } : null;
}

function otherToolChoice(
  { tool_choice: choice, tools }: RequestBody,
  { toolChoices = toolChoiceForms }: ServerProfile,
): ServerProfile | null {
  const form = isObject(choice) ? "named" : choice;
  // A choice of a tool that the request does not have is the client's mistake.
  if (isObject(choice) && tools !== undefined && !toolNamesIn({ tools }).has(chosenName(choice))) return null;
  return toolChoices.some((one) => one === form) ? { toolChoices: toolChoices.filter((one) => one !== form) } : null;
}

function otherFormat(
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

function noEncryption(body: RequestBody, { encryptedReasoning }: ServerProfile): ServerProfile | null {
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

function noLogprobs(body: RequestBody, { logprobs }: ServerProfile): ServerProfile | null {
  const isRequested = [body["logprobs"], body["top_logprobs"]].some((value) => value !== undefined && value !== null);
  return logprobs !== false && isRequested ? { logprobs: false } : null;
}

function noAutomaticCache(_: RequestBody, { automaticCache }: ServerProfile): ServerProfile | null {
  return automaticCache === false ? null : { automaticCache: false };
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
  // transformers 5, cli/serving: "Unexpected fields in the request: {'top_k', 'seed'}".
  /Unexpected fields in the request: \{(?<list>[\w', ]{1,300})\}/g,
  // Python's jsonschema, in OpenAI's errors of 2023.
  /Additional properties are not allowed \('(?<path>[^']{1,64})' was unexpected\)(?: - '(?<at>[^']{1,200})')?/g,
  // Rust's serde with `deny_unknown_fields`; Go's encoding/json with DisallowUnknownFields.
  /unknown field `(?<path>[^`]{1,64})`/g,
  /json: unknown field "(?<path>[^"]{1,64})"/g,
];

/** OpenAI, for schemas with `strict`: "Invalid schema for function 'f': In context=(), 'pattern' is not permitted." */
const schemaKeyword = /^Invalid schema for .{0,200}'(?<keyword>[\w$]{1,64})' is not permitted/;

/**
 * The places of the members that a refusal names, each as the names and indices on its path. `client`: whose words do not count; undefined:
 * all words count.
 */
function refusedMembers(
  { message, param, code }: UpstreamRefusal,
  client: ClientWords | undefined,
): readonly (readonly string[])[] {
  const paths: string[] = [];
  for (const pattern of memberRefusals)
    for (const { 0: found, groups } of message.matchAll(pattern)) {
      if (client?.has(found) === true) continue;
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
  // OpenAI, of a value that it does not know: param "include[0]".
  if (typeof param === "string" && /^include\b/.test(param)) paths.push("include");
  const keyword = schemaKeyword.exec(message)?.groups?.["keyword"];
  if (keyword !== undefined) paths.push(`tools.parameters.${keyword}`);
  return paths.map((path) =>
    path
      .split(/[^\w$-]+/)
      .filter((name) => name !== "")
      .filter((name, at) => !(at === 0 && name === "body")),
  );
}

/** Members without which a request means nothing, or something else. */
const essential: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "prompt",
  "input",
  "stream",
  "role",
  "content",
  "system",
  "instructions",
  "previous_response_id",
  "conversation",
]);

function lessonOfMember(path: readonly string[], body: RequestBody, profile: ServerProfile): ServerProfile | null {
  const [top = "", ...inner] = path;
  if (top === "messages") return lessonOfMessage(inner, body, profile);
  if ((top === "tools" || top === "response_format") && inner.length > 0) {
    const last = inner.at(-1) ?? "";
    if (inner.some((name) => name === "parameters" || name === "schema")) return refusedKeyword(last, body, profile);
    return last === "strict" && profile.strictSchemas !== false && hasStrict(body) ? { strictSchemas: false } : null;
  }
  // A place inside another member is no reason to drop all of that.
  if (inner.length > 0) return null;
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
    case "include":
      return noEncryption(body, profile) ?? droppedMember(top, body, profile);
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

/** What pydantic puts between the index of a message and its member: a role, or the name of a class. */
const messageTag = /^(?:system|developer|user|assistant|tool|function|[A-Z]\w*)$/;

/** `path`: within `messages`, such as `0.user.name`. */
function lessonOfMessage(path: readonly string[], body: RequestBody, profile: ServerProfile): ServerProfile | null {
  const [first = ""] = path;
  const at = /^\d+$/.test(first) ? Number(first) : undefined;
  const messages = messagesOf(body, at);
  const names = path.slice(at === undefined ? 0 : 1).filter((name) => !messageTag.test(name));
  const [name = ""] = names;
  const isSent = messages.some((message) => Object.hasOwn(message, name) && message[name] !== undefined);
  if (names.length !== 1 || !isSent) return null;
  if (name === "reasoning_content" || name === "reasoning")
    return profile.reasoningHistory === false ? null : { reasoningHistory: false };
  const { dropInMessages = [] } = profile;
  if (essential.has(name) || !isName(name) || dropInMessages.includes(name)) return null;
  // Calls and their ids are the conversation.
  if (name === "tool_calls" || name === "tool_call_id" || dropInMessages.length >= maxNames) return null;
  return { dropInMessages: [name] };
}

function hasStrict({ tools, response_format: format }: RequestBody): boolean {
  const declared = Array.isArray(tools) ? tools.map((tool: unknown) => isObject(tool) && tool["function"]) : [];
  const owners = [...declared, isObject(format) && format["json_schema"]];
  return owners.some((owner) => isObject(owner) && owner["strict"] !== undefined);
}

function droppedMember(name: string, body: RequestBody, { drop = [] }: ServerProfile): ServerProfile | null {
  if (essential.has(name) || !isName(name) || !Object.hasOwn(body, name)) return null;
  return drop.includes(name) || drop.length >= maxNames ? null : { drop: [name] };
}

/** Keywords without which a schema means nothing, or refers to nothing. */
const essentialKeywords: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "items",
  "required",
  "enum",
  "anyOf",
  "$ref",
  "$defs",
  "definitions",
]);

function refusedKeyword(
  name: string,
  body: RequestBody,
  { refusedKeywords = [] }: ServerProfile,
): ServerProfile | null {
  if (refusedKeywords.includes(name) || refusedKeywords.length >= maxNames || essentialKeywords.has(name)) return null;
  const { tools, functions, response_format: format } = body;
  return [tools, functions, format].some((value) => hasKeyword(value, name)) ? { refusedKeywords: [name] } : null;
}

/** Whether a value contains a member of this name, but for the names of properties and definitions, which are the client's. */
function hasKeyword(value: unknown, name: string, depth = 0): boolean {
  if (depth > maxSchemaDepth) return false;
  if (Array.isArray(value)) return value.some((one) => hasKeyword(one, name, depth + 1));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([key, inner]) => {
    if (key === name) return true;
    const isNamed = key === "properties" || key === "patternProperties" || key === "$defs" || key === "definitions";
    const values = isNamed && isObject(inner) ? Object.values(inner) : inner;
    return hasKeyword(values, name, depth + 1);
  });
}

/** Schemas that are deeper are not read. */
const maxSchemaDepth = 200;

/** Names of other forms are no member's, and could not be shown. */
function isName(name: string): boolean {
  return /^[a-z][\w-]{0,63}$/i.test(name);
}
