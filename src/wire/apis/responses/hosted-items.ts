import type { GeneratedHostedCall } from "../../core/accumulate.ts";
import type {
  HostedApprovalEvent,
  HostedCallStartEvent,
  HostedFunctionsEvent,
  HostedResultEvent,
} from "../../core/events.ts";
import { hostedFailure, resultContent, resultText } from "../../core/hosted-result.ts";
import { modelName } from "../../core/hosted-tool.ts";
import type { HostedCallIdentity, HostedImage, HostedResult, HostedToolKind } from "../../core/hosted-tool.ts";
import { isObject, nonEmpty, objectIn, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Content, ToolCallPart } from "../../core/message.ts";
import type { JsonValue } from "../json-text.ts";
import { idPrefixes } from "./ids.ts";
import type { ResponseObject } from "./response-object.ts";
import type { ResponseEventWriter } from "./stream-items.ts";
import { OpenItem } from "./stream-items.ts";

/* The items of calls that run on the server: written from events, and read from answers and from conversations. */

type CallType = "web_search_call" | "file_search_call" | "code_interpreter_call" | "image_generation_call" | "mcp_call";

/** The item of each kind; a fetched page is a search's action at OpenAI. */
const callTypes: Readonly<Partial<Record<HostedToolKind, CallType>>> = {
  web_search: "web_search_call",
  web_fetch: "web_search_call",
  file_search: "file_search_call",
  code_interpreter: "code_interpreter_call",
  image_generation: "image_generation_call",
  mcp: "mcp_call",
};

const readTypes: ReadonlySet<unknown> = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "mcp_call",
  "mcp_list_tools",
  "mcp_approval_request",
]);

/** Whether an item is read into events of hosted tools. */
export function isHostedItem(type: unknown): boolean {
  return readTypes.has(type);
}

/** Whether OpenAI has a tool of a kind. */
export function isHostedKind(kind: HostedToolKind): boolean {
  return callTypes[kind] !== undefined;
}

/** The item of a call as it begins. */
function startItem(
  call: HostedCallIdentity & Pick<GeneratedHostedCall, "approvalId" | "native">,
  id: string,
): JsonValue {
  if (call.native?.dialect === "responses") return call.native.value as JsonValue;
  const type = callTypes[call.kind];
  switch (type) {
    case "web_search_call":
      return { id, type, status: "in_progress", action: { type: call.kind === "web_fetch" ? "open_page" : "search" } };
    case "file_search_call":
      return { id, type, status: "in_progress", queries: [], results: null };
    case "code_interpreter_call":
      return { id, type, status: "in_progress", code: "", container_id: "", outputs: null };
    case "image_generation_call":
      return { id, type, status: "in_progress", result: null };
    default:
      return mcpItem(call, id, { status: "in_progress", arguments: "", error: null, output: null });
  }
}

/** `status` is a member since the end of 2025; AI SDK demands it. */
function mcpItem(
  { name, tool, approvalId = undefined }: HostedCallIdentity & Pick<GeneratedHostedCall, "approvalId">,
  id: string,
  members: {
    readonly status: string;
    readonly arguments: string;
    readonly error: JsonValue;
    readonly output: string | null;
  },
): JsonValue {
  const { status, arguments: text, error, output } = members;
  const type = "mcp_call";
  return {
    id,
    type,
    status,
    approval_request_id: approvalId ?? null,
    arguments: text,
    error,
    name,
    output,
    server_label: tool,
  };
}

/** The item of a call that has ended. Without a result it is incomplete. */
function endItem(
  call: HostedCallIdentity & Pick<GeneratedHostedCall, "approvalId" | "arguments">,
  id: string,
  result: HostedResult | undefined,
  response: ResponseObject,
): JsonValue {
  const type = callTypes[call.kind];
  const status = result === undefined ? "incomplete" : result.kind === "failure" ? "failed" : "completed";
  const input = objectIn(call.arguments) ?? {};
  switch (type) {
    case "web_search_call":
      return { id, type, status, action: webAction(call.kind, input, result, response) };
    case "file_search_call":
      return { id, type, status, queries: [scalarText(input["query"])], results: fileResults(result, response) };
    case "code_interpreter_call": {
      const container = result?.kind === "code" ? result.container : undefined;
      const members = {
        code: scalarText(input["code"]),
        container_id: container ?? "",
        outputs: outputs(result, response),
      };
      return { id, type, status, ...members };
    }
    case "image_generation_call":
      return imageItem(result, { id, type, status });
    default: {
      const error = mcpError(result);
      const output = error === null && result ? resultText(resultContent(result)) : null;
      const ended = error === null ? status : "failed";
      return mcpItem(call, id, { status: ended, arguments: call.arguments, error, output });
    }
  }
}

function webAction(
  kind: HostedToolKind,
  { query: asked, url }: JsonObject,
  result: HostedResult | undefined,
  response: ResponseObject,
): JsonValue {
  if (kind === "web_fetch") return { type: "open_page", url: scalarText(url) };
  const query = scalarText(asked);
  const found = result?.kind === "search" ? result.results : [];
  const sources = response.includes("web_search_call.action.sources")
    ? found.map((one) => ({ type: "url", url: one.url }))
    : undefined;
  return { type: "search", queries: [query], query, sources };
}

/** Source of the members: OpenAI's guide to image generation (https://platform.openai.com/docs/guides/image-generation). */
function imageItem(
  result: HostedResult | undefined,
  { id, type, status }: { readonly id: string; readonly type: string; readonly status: string },
): JsonValue {
  if (result?.kind !== "image") return { id, type, status: status === "completed" ? "failed" : status, result: null };
  const { format, base64 } = imageData(result.url);
  return { id, type, status, output_format: format, result: base64, revised_prompt: result.revisedPrompt };
}

/** The format and the bytes of a data URL: `png`. */
function imageData(url: string): { readonly format: string; readonly base64: string } {
  const comma = url.indexOf(",");
  return { format: url.slice("data:image/".length, comma).split(";", 1)[0] ?? "", base64: url.slice(comma + 1) };
}

function fileResults(result: HostedResult | undefined, response: ResponseObject): JsonValue {
  if (result?.kind !== "files" || !response.includes("file_search_call.results")) return null;
  return result.results.map(({ fileId, filename, score, text, attributes = {} }) => ({
    attributes,
    file_id: fileId,
    filename,
    score,
    text,
  }));
}

function outputs(result: HostedResult | undefined, response: ResponseObject): JsonValue {
  if (!result || !response.includes("code_interpreter_call.outputs")) return null;
  const images = result.kind === "code" ? (result.images ?? []) : [];
  const logs = result.kind === "code" ? result.stdout + result.stderr : resultText(resultContent(result));
  return [...(logs === "" ? [] : [{ type: "logs", logs }]), ...images.map((url) => ({ type: "image", url }))];
}

/** Source: `McpToolCallError`, openai 7. */
function mcpError(result: HostedResult | undefined): JsonValue {
  if (result?.kind === "contents" && result.isError)
    return {
      type: "mcp_tool_execution_error",
      content: result.contents.map((part) => ({ type: "text", text: resultText([part]) })),
    };
  if (result?.kind !== "failure") return null;
  const { message, status } = result;
  return status === undefined
    ? { type: "mcp_protocol_error", code: -32_603, message }
    : { type: "http_error", code: status, message };
}

/** Returns the items of a call in a whole answer; none for a tool that OpenAI does not have. */
export function hostedCallItems(call: GeneratedHostedCall, response: ResponseObject): readonly JsonValue[] {
  const { result } = call;
  if (result?.native?.dialect === "responses") return [result.native.value as JsonValue];
  const type = callTypes[call.kind];
  if (type === undefined) return [];
  const id = response.itemId(idPrefixes[type], call.id);
  return [endItem(call, id, result?.result, response), ...(result ? keptItems(id, call, result.result, response) : [])];
}

/**
 * An item contains what an MCP server has answered, and an image. What the model has read of other tools is kept for the next turn: with the response, or by
 * the client in the encrypted content of a reasoning item. Clients that store nothing, such as Codex, return a search without its results.
 */
function keptItems(
  id: string,
  { id: callId, kind }: HostedCallIdentity,
  result: HostedResult,
  response: ResponseObject,
): readonly JsonValue[] {
  if (kind === "web_search") response.searches++;
  const isShown = kind === "mcp" || kind === "image_generation";
  const kept = response.keepCall(id, { callId, ...(!isShown && { text: resultText(resultContent(result)) }) });
  if (kept === undefined) return [];
  const ownId = response.itemId("rs_", undefined);
  const encrypted = response.encryptedContent(ownId, { result: kept });
  return [{ id: ownId, type: "reasoning", content: [], encrypted_content: encrypted, summary: [] }];
}

/** Returns the list of an MCP server's functions. */
export function functionsItem(
  { id, tool, functions, native }: HostedFunctionsEvent,
  response: ResponseObject,
): JsonValue {
  if (native?.dialect === "responses") return native.value as JsonValue;
  const isFailed = "kind" in functions;
  const tools = isFailed
    ? []
    : functions.map(({ name, description, parameters, readOnly, annotations }) => ({
        annotations: annotations ?? { read_only: readOnly === true },
        description: description ?? null,
        input_schema: parameters ?? { type: "object", properties: {} },
        name,
      }));
  return {
    id: response.itemId(idPrefixes.mcp_list_tools, id),
    type: "mcp_list_tools",
    error: isFailed ? functions.message : undefined,
    server_label: tool,
    tools: tools as JsonValue,
  };
}

export function approvalItem(event: HostedApprovalEvent, response: ResponseObject): JsonValue {
  const { id, tool, name, arguments: text, native } = event;
  if (native?.dialect === "responses") return native.value as JsonValue;
  const type = "mcp_approval_request";
  return { id: response.itemId(idPrefixes[type], id), type, arguments: text, name, server_label: tool };
}

/** A call that runs. It is complete when its result comes. */
export class OpenHostedItem extends OpenItem {
  readonly kind = "hosted";
  readonly #call: HostedCallStartEvent;
  readonly #type: CallType;
  #chunks: string[] = [];
  #runs = false;

  /** `call`: of a kind that `isHostedKind` knows. */
  constructor(events: ResponseEventWriter, call: HostedCallStartEvent) {
    const type = callTypes[call.kind] ?? "mcp_call";
    super(events, events.response.itemId(idPrefixes[type], call.id));
    this.#call = call;
    this.#type = type;
  }

  /** Whether an event belongs to the call. */
  owns(event: { readonly type: string; readonly id?: string }): boolean {
    return event.type.startsWith("hosted-") && event.type !== "hosted-call-start" && event.id === this.#call.id;
  }

  begin(): string {
    return this.events.itemAdded(startItem(this.#call, this.id)) + this.#progress("in_progress");
  }

  /** Adds arguments. Code of a source of this API is streamed as it comes; any other when it is complete. */
  input(text: string): string {
    this.#chunks.push(text);
    if (this.#type === "mcp_call") return this.#delta("response.mcp_call_arguments.delta", text);
    const isStreamed = this.#type === "code_interpreter_call" && this.#call.native?.dialect === "responses";
    return isStreamed && text !== codeBegin && text !== codeEnd
      ? this.#delta("response.code_interpreter_call_code.delta", JSON.parse(`"${text}"`) as string)
      : "";
  }

  /** The arguments are complete. */
  run(): string {
    if (this.#runs) return "";
    this.#runs = true;
    const text = this.#arguments;
    switch (this.#type) {
      case "mcp_call":
        return this.write("response.mcp_call_arguments.done", { arguments: text });
      case "code_interpreter_call": {
        const code = scalarText(objectIn(text)?.["code"]);
        const isStreamed = this.#call.native?.dialect === "responses";
        const delta = isStreamed ? "" : this.#delta("response.code_interpreter_call_code.delta", code);
        const done = this.write("response.code_interpreter_call_code.done", { code });
        return delta + done + this.#progress("interpreting");
      }
      case "image_generation_call":
        return this.#progress("generating");
      default:
        return this.#progress("searching");
    }
  }

  /** `event`: absent if the answer ends before the result. */
  close(event: HostedResultEvent | undefined): string {
    const ran = event === undefined ? "" : this.run();
    if (event?.native?.dialect === "responses") {
      const item = event.native.value as JsonValue & JsonObject;
      const isFailed = item["status"] === "failed" || (item["error"] ?? null) !== null;
      return ran + this.#ended(isFailed) + this.events.itemDone(item);
    }
    const { response } = this.events;
    const item = endItem({ ...this.#call, arguments: this.#arguments }, this.id, event?.result, response);
    const image = event?.result.kind === "image" ? this.#partialImages(event.result) : "";
    let events = ran + image + (event ? this.#ended(isFailedCall(event.result)) : "") + this.events.itemDone(item);
    for (const kept of event ? keptItems(this.id, this.#call, event.result, response) : [])
      events += this.events.itemAdded(kept) + this.events.itemDone(kept);
    return events;
  }

  #partialImages({ partial = [] }: HostedImage): string {
    return partial.reduce((written, url, index) => {
      const { format, base64 } = imageData(url);
      const members = { output_format: format, partial_image_b64: base64, partial_image_index: index };
      return written + this.write("response.image_generation_call.partial_image", members);
    }, "");
  }

  get #arguments(): string {
    const text = this.#chunks.join("");
    this.#chunks = [text];
    return text;
  }

  /** Only a call to an MCP server has an event for its failure. */
  #ended(isFailed: boolean): string {
    return isFailed && this.#type !== "mcp_call" ? "" : this.#progress(isFailed ? "failed" : "completed");
  }

  #progress(step: string): string {
    return this.write(`response.${this.#type}.${step}`, {});
  }

  #delta(type: string, text: string): string {
    if (text === "") return "";
    return this.template(type, { obfuscate: this.events.response.obfuscate }).write(text, this.events.nextNumber());
  }
}

function isFailedCall(result: HostedResult): boolean {
  return result.kind === "failure" || (result.kind === "contents" && result.isError);
}

/** Writes the lists of functions of MCP servers with their events. */
export class FunctionLists {
  readonly #events: ResponseEventWriter;
  /** The places of the lists that have begun, by the ids of their items. */
  readonly #pending = new Map<string, number>();

  constructor(events: ResponseEventWriter) {
    this.#events = events;
  }

  write(event: HostedFunctionsEvent): string {
    const events = this.#events;
    const item = functionsItem(event, events.response) as JsonObject & JsonValue;
    const { error: _, ...rest } = item as Record<string, JsonValue>;
    const id = scalarText(item["id"]);
    const known = this.#pending.get(id);
    const at = known ?? events.output.length;
    const place = { item_id: id, output_index: at };
    const begun =
      known === undefined
        ? events.itemAdded({ ...rest, tools: [] }) + events.write("response.mcp_list_tools.in_progress", place)
        : "";
    if (event.isPending) {
      this.#pending.set(id, at);
      events.output.push(item);
      return begun;
    }
    const isFailed = (item["error"] ?? null) !== null;
    const ended = events.write(`response.mcp_list_tools.${isFailed ? "failed" : "completed"}`, place);
    return begun + ended + events.itemDone(item, at);
  }
}

/** The code of a call as JSON: a chunk before its code, and one after it. */
export const codeBegin = '{"code":"';
export const codeEnd = '"}';

/** Reads what identifies the call of an item. */
export function readHostedCall(item: JsonObject): HostedCallIdentity {
  const id = scalarText(item["id"]);
  switch (item["type"]) {
    case "mcp_call":
    case "mcp_approval_request":
      return { id, kind: "mcp", tool: scalarText(item["server_label"]), name: scalarText(item["name"]) };
    case "code_interpreter_call":
      return { id, kind: "code_interpreter", tool: "code_interpreter", name: "code_interpreter" };
    case "file_search_call":
      return { id, kind: "file_search", tool: "file_search", name: "file_search" };
    case "image_generation_call":
      return { id, kind: "image_generation", tool: "image_generation", name: "image_generation" };
    default: {
      const { action } = item;
      const kind = isObject(action) && action["type"] === "open_page" ? "web_fetch" : "web_search";
      return { id, kind, tool: kind, name: kind };
    }
  }
}

/** Reads the arguments of the call of an item, as JSON. */
export function readHostedArguments(item: JsonObject): string {
  switch (item["type"]) {
    case "mcp_call":
    case "mcp_approval_request":
      return scalarText(item["arguments"]);
    case "code_interpreter_call":
      return JSON.stringify({ code: scalarText(item["code"]) });
    case "file_search_call": {
      const { queries } = item;
      return JSON.stringify({ query: Array.isArray(queries) ? queries.map(scalarText).join("\n") : "" });
    }
    case "image_generation_call":
      return JSON.stringify({ prompt: scalarText(item["revised_prompt"]) });
    default: {
      const { query, queries, url } = isObject(item["action"]) ? item["action"] : {};
      if (url !== undefined) return JSON.stringify({ url: scalarText(url) });
      const asked = query ?? (Array.isArray(queries) ? queries[0] : undefined);
      return JSON.stringify({ query: scalarText(asked) });
    }
  }
}

/** Returns the call of an item as the model has made it. */
export function hostedCallPart(item: JsonObject): ToolCallPart {
  const call = readHostedCall(item);
  return { type: "tool-call", id: call.id, name: modelName(call), arguments: readHostedArguments(item) };
}

/** Reads the result of the call of an item, as far as the item shows it. */
export function readHostedResult(item: JsonObject): HostedResult {
  const { type, status, error, output, action } = item;
  if (isObject(error)) {
    if (error["type"] !== "mcp_tool_execution_error")
      return { ...hostedFailure("protocol-error", scalarText(error["message"])) };
    return { kind: "contents", contents: textsIn(error["content"]), isError: true };
  }
  if (typeof error === "string") return { kind: "contents", contents: [{ type: "text", text: error }], isError: true };
  if (status === "failed") return hostedFailure("unavailable");
  if (type === "mcp_call")
    return { kind: "contents", contents: [{ type: "text", text: scalarText(output) }], isError: false };
  if (type === "code_interpreter_call") {
    const logs = objects(item["outputs"]).map((one) => scalarText(one["logs"]));
    return { kind: "code", stdout: logs.join(""), stderr: "", returnCode: 0 };
  }
  if (type === "image_generation_call") {
    const revisedPrompt = nonEmpty(item["revised_prompt"]);
    return { kind: "image", url: "", ...(revisedPrompt !== undefined && { revisedPrompt }) };
  }
  if (type === "file_search_call") {
    const results = objects(item["results"]).map(({ file_id: fileId, filename, score, text }) => ({
      fileId: scalarText(fileId),
      filename: scalarText(filename),
      score: typeof score === "number" ? score : 0,
      text: scalarText(text),
    }));
    return { kind: "files", results };
  }
  const sources = isObject(action) ? objects(action["sources"]) : [];
  return { kind: "search", results: sources.map(({ url }) => ({ url: scalarText(url), title: "", text: "" })) };
}

/** Returns what the model has read of a result: `kept` if this server has kept it, else what the item shows; `undefined` if that is nothing. */
export function readContent(item: JsonObject, kept: string | undefined): Content | undefined {
  if (kept !== undefined) return kept;
  const result = readHostedResult(item);
  const isUnknown =
    (result.kind === "search" && result.results.length === 0) ||
    (result.kind === "files" && !Array.isArray(item["results"])) ||
    (result.kind === "code" && !Array.isArray(item["outputs"]));
  return isUnknown ? undefined : resultContent(result);
}

/** Reads the list of an MCP server's functions. */
export function readFunctions(item: JsonObject): Omit<HostedFunctionsEvent, "type" | "choice"> {
  const { id, server_label: label, tools, error } = item;
  const functions = objects(tools).map(({ name, description, input_schema: parameters, annotations }) => ({
    name: scalarText(name),
    ...(typeof description === "string" && { description }),
    ...(isObject(parameters) && { parameters }),
    ...(isObject(annotations) && { annotations }),
  }));
  const failed = typeof error === "string" ? hostedFailure("unavailable", error) : undefined;
  return { id: scalarText(id), tool: scalarText(label), functions: failed ?? functions };
}

function textsIn(value: unknown): { readonly type: "text"; readonly text: string }[] {
  return objects(value).map(({ text }) => ({ type: "text", text: scalarText(text) }));
}

function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
