import type { GenerationFailure } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { ClientWords } from "./client-words.ts";
import type { RequestBody, ServerProfile } from "./server-profile.ts";
import {
  messagesOf,
  noEncryption,
  noLogprobs,
  noTools,
  oneChoice,
  otherFormat,
  otherToolChoice,
} from "./feature-refusals.ts";
import { droppedMember, essential, isName, maxNames } from "./dropped-member.ts";

/* What refusals say about single members: the place that they name, and what it teaches. */

/** The members of a failure that show what a server refused. */
export type UpstreamRefusal = Pick<GenerationFailure, "status" | "message" | "param" | "code">;

/** Wordings of refusals of a member; `path`: its place, `at`: the place of the object that has it. */
const memberRefusals: readonly RegExp[] = [
  // pydantic through FastAPI (`detail`), as `readFailure` joins place and message: Mistral (BerriAI/litellm#30835), vLLM, SGLang.
  // Anthropic (Wei-Shaw/claude-relay-service#660).
  /(?<path>[\w$.[\]]{1,200}): Extra inputs are not permitted/g,
  // pydantic's own text: vLLM before 0.7 (1Panel-dev/MaxKB#2912).
  /'loc': \((?<path>[\w$', ]{1,800})\), 'msg': 'Extra inputs are not permitted'/g,
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
export function refusedMembers(
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

export function lessonOfMember(
  path: readonly string[],
  body: RequestBody,
  profile: ServerProfile,
): ServerProfile | null {
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
