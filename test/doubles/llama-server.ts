import { llamaRefusal } from "./llama-grammar.ts";
import { llamaSchemaRefusal } from "./llama-schema.ts";
import { listOf, objectOf } from "./chat-server.ts";
import type { Json, Refusal, ChatServer } from "./chat-server.ts";

/*
 * Sources, in ggml-org/llama.cpp: common/chat.cpp, common_chat_msgs_parse_oaicompat ("unsupported content part type"); the grammar of all
 * tools (tools/server, oaicompat_chat_params_parse); tools/mtmd/mtmd-helper.cpp (stb_image reads no WebP). What it refuses of other members:
 * `npm run interop -- doubles llama-server` with build 11549, which has one slot.
 */

const numbers = ["temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty"];

interface Build {
  /** The model sees; default: true. */
  readonly sees?: boolean;
  /** Of 2026-07 or before, which refuses other schemas. */
  readonly isOlder?: boolean;
}

/** llama.cpp's server, without a look at its model's template. */
export function llamaServer({ sees = true, isOlder = false }: Build = {}): ChatServer {
  return {
    name: isOlder ? "llama.cpp, up to 2026-07" : "llama.cpp",
    owner: "llamacpp",
    refusal: (body) => refusal(body, sees) ?? (isOlder ? olderRefusal(body) : schemaRefusal(body)),
  };
}

function refusal(body: Json, sees: boolean): Refusal | undefined {
  const { messages, n, tool_choice: choice, response_format: format } = body;
  if (messages === undefined) return refused("'messages' is required");
  if (!Array.isArray(messages)) return refused("Expected 'messages' to be an array");
  for (const name of numbers)
    if (typeof body[name] === "string")
      return refused(`Field '${name}': [json.exception.type_error.302] type must be number, but is string`);
  if (typeof n === "number" && n !== 1)
    return refused(`Field 'n': Value must be between 1 <= value <= 1, but got ${n}`);
  if (body["top_logprobs"] !== undefined && body["logprobs"] !== true)
    return refused("top_logprobs requires logprobs to be set to true");
  if (typeof choice === "string" && !["none", "auto", "required"].includes(choice))
    return refused(`Invalid tool_choice: ${choice}`);
  const { type = "text" } = objectOf(format);
  if (!["text", "json_object", "json_schema"].includes(String(type)))
    return refused(`response_format type must be one of "text" or "json_object", but got: ${String(type)}`);
  for (const tool of listOf(body["tools"])) {
    if (tool["type"] !== "function")
      return refused(`Failed to parse tools: Unsupported tool type: ${JSON.stringify(tool)}`, 500);
    if (typeof objectOf(tool["function"])["name"] !== "string")
      return refused("Failed to parse tools: [json.exception.out_of_range.403] key 'name' not found", 500);
  }
  for (const message of listOf(messages)) {
    const why = refusedMessage(message);
    if (why) return why;
  }
  for (const message of listOf(body["messages"]))
    for (const { type, image_url: image } of Array.isArray(message["content"]) ? (message["content"] as Json[]) : []) {
      if (type !== "text" && type !== "image_url" && type !== "input_audio")
        return refused(`unsupported content[].type`);
      if (type === "image_url" && !sees)
        return refused(
          "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
          500,
        );
      if (type === "image_url" && String(objectOf(image)["url"]).startsWith("data:image/webp"))
        return refused("Failed to load image or audio file");
    }
  return undefined;
}

const answerSchema = ({ response_format: format }: Json): unknown =>
  objectOf(objectOf(format)["json_schema"])["schema"];
const toolSchemas = ({ tools }: Json): unknown[] =>
  listOf(tools).map((tool) => objectOf(tool["function"])["parameters"] ?? {});

/** A schema of an answer that is no object counts as none. */
function schemaRefusal(body: Json): Refusal | undefined {
  const schema = answerSchema(body);
  const isSchema = typeof schema === "object" && schema !== null && !Array.isArray(schema);
  const why = llamaSchemaRefusal([...toolSchemas(body), ...(isSchema ? [schema] : [])]);
  return why === undefined ? undefined : refused(why);
}

function olderRefusal(body: Json): Refusal | undefined {
  const schema = answerSchema(body);
  for (const one of [...toolSchemas(body), ...(schema === undefined ? [] : [schema])]) {
    const why = llamaRefusal(one);
    if (why !== undefined) return refused(why);
  }
  return undefined;
}

function refusedMessage({ role, content, tool_calls: calls }: Json): Refusal | undefined {
  if (content === undefined && role !== "assistant")
    return refused("All non-assistant messages must contain 'content'");
  if (content !== undefined && content !== null && typeof content !== "string" && !Array.isArray(content))
    return refused("Expected 'content' to be a string or an array");
  if (listOf(content).some(({ type, text }) => type === "text" && typeof text !== "string"))
    return refused("Failed to parse messages: [json.exception.out_of_range.403] key 'text' not found", 500);
  for (const call of listOf(calls)) {
    if (call["type"] === undefined)
      return refused(`Failed to parse messages: Missing tool call type: ${JSON.stringify(call)}`, 500);
    const { arguments: text } = objectOf(call["function"]);
    try {
      if (typeof text === "string") JSON.parse(text);
    } catch {
      return refused("Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error", 500);
    }
  }
  return undefined;
}

function refused(message: string, status = 400): Refusal {
  return { status, body: { error: { code: status, message, type: "invalid_request_error" } } };
}
