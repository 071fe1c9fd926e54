import type { GeneratedHostedCall } from "../../core/accumulate.ts";
import type { HostedFunctionsEvent, HostedResultEvent } from "../../core/events.ts";
import { failureMessages, resultContent, resultText } from "../../core/hosted-result.ts";
import type {
  HostedCallIdentity,
  HostedFailure,
  HostedFailureCode,
  HostedResult,
  HostedToolKind,
} from "../../core/hosted-tool.ts";
import { isObject, nonEmpty, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ContentPart } from "../../core/message.ts";
import type { BodyCounter } from "../body-counter.ts";
import type { TurnSeal } from "../turn-seal.ts";
import { mcpToolUseId, serverToolUseId } from "./ids.ts";
import { serverToolResultBlock, serverToolUseBlock } from "./schema.ts";

/* The blocks of calls that run on the server, and of their results: written from events, and read from answers and from conversations. */

const useTypes: ReadonlySet<unknown> = new Set(serverToolUseBlock.shape.type.values);
const resultTypes: ReadonlySet<unknown> = new Set(serverToolResultBlock.shape.type.values);

export function isHostedUse({ type }: JsonObject): boolean {
  return useTypes.has(type);
}

export function isHostedResult({ type }: JsonObject): boolean {
  return resultTypes.has(type);
}

/** The kinds by the names of Anthropic's calls. */
const kinds: Readonly<Record<string, HostedToolKind>> = {
  web_search: "web_search",
  web_fetch: "web_fetch",
  code_execution: "code_interpreter",
  bash_code_execution: "code_interpreter",
  text_editor_code_execution: "code_interpreter",
};

/** Anthropic's name of each kind, in the types of results, too. */
const names: Readonly<Partial<Record<HostedToolKind, string>>> = {
  web_search: "web_search",
  web_fetch: "web_fetch",
  code_interpreter: "code_execution",
};

/** Reads the block of a call. */
export function readHostedUse(block: JsonObject): HostedCallIdentity {
  const [id, name] = [scalarText(block["id"]), scalarText(block["name"])];
  if (block["type"] === "mcp_tool_use") return { id, kind: "mcp", tool: scalarText(block["server_name"]), name };
  return { id, kind: kinds[name] ?? "other", tool: name, name };
}

/** The ids of an answer's calls, in Anthropic's form: the same one for a call and its result. */
export class HostedIds {
  readonly #written = new Map<string, string>();
  readonly #random: () => number;

  /** `random` is uniform in [0, 1). */
  constructor(random: () => number) {
    this.#random = random;
  }

  of({ id, kind }: HostedCallIdentity): string {
    if (/^(?:srvtoolu|mcptoolu)_[a-zA-Z0-9_]+$/.test(id)) return id;
    let written = this.#written.get(id);
    if (written === undefined) {
      written = kind === "mcp" ? mcpToolUseId(this.#random) : serverToolUseId(this.#random);
      this.#written.set(id, written);
    }
    return written;
  }
}

/** Returns the block of a call, or `undefined` for a tool that Anthropic does not have. */
export function hostedUseBlock(
  call: HostedCallIdentity & Pick<GeneratedHostedCall, "native">,
  input: JsonObject,
  ids: HostedIds,
): JsonObject | undefined {
  if (call.native?.dialect === "messages") return { ...call.native.value, input };
  const id = ids.of(call);
  const { kind, tool, name } = call;
  if (kind === "mcp") return { type: "mcp_tool_use", id, name, input, server_name: tool };
  const known = names[kind];
  return known === undefined ? undefined : { type: "server_tool_use", id, name: known, input };
}

/** Returns the block that lists the functions of an MCP server; none for a list that failed. */
export function functionsBlock({ tool, functions, native }: HostedFunctionsEvent): JsonObject | undefined {
  if (native?.dialect === "messages") return native.value;
  if (native || "kind" in functions) return undefined;
  const tools = functions.map(({ name, description, parameters }) => ({
    name,
    description: description ?? null,
    input_schema: parameters ?? { type: "object", properties: {} },
  }));
  return { type: "mcp_tool_listing", mcp_server_name: tool, tools };
}

/** Returns the block of a result, or `undefined` for a tool that Anthropic does not have. */
export function hostedResultBlock(event: HostedResultEvent, ids: HostedIds, seal: TurnSeal): JsonObject | undefined {
  const { kind, result, native } = event;
  if (native?.dialect === "messages") return native.value;
  const tool_use_id = ids.of(event);
  if (kind === "mcp") {
    const is_error = result.kind === "failure" || (result.kind === "contents" && result.isError);
    return { type: "mcp_tool_result", tool_use_id, is_error, content: mcpContent(result) };
  }
  const name = names[kind];
  if (name === undefined) return undefined;
  return { type: `${name}_tool_result`, tool_use_id, content: resultValue(name, result, seal) };
}

function mcpContent(result: HostedResult): readonly JsonObject[] {
  if (result.kind === "failure") return [{ type: "text", text: result.message }];
  if (result.kind !== "contents") return [];
  return result.contents.map((part) => ({ type: "text", text: resultText([part]) }));
}

function resultValue(name: string, result: HostedResult, seal: TurnSeal): unknown {
  switch (result.kind) {
    case "search":
      return result.results.map(({ title, url, text, age }) => ({
        type: "web_search_result",
        title,
        url,
        encrypted_content: seal.seal({ text }),
        page_age: age ?? null,
      }));
    case "document": {
      const { url, title, mediaType, content, retrieved } = result;
      const source =
        "text" in content
          ? { type: "text", media_type: "text/plain", data: content.text }
          : { type: "base64", media_type: mediaType, data: content.base64 };
      const document = { type: "document", source, title: title ?? null };
      return { type: "web_fetch_result", url, retrieved_at: retrieved, content: document };
    }
    case "code": {
      const { stdout, stderr, returnCode, files = [] } = result;
      const content = files.map(({ id }) => ({ type: "code_execution_output", file_id: id }));
      return { type: "code_execution_result", stdout, stderr, return_code: returnCode, content };
    }
    case "failure":
      return { type: `${name}_tool_result_error`, error_code: errorCode(name, result) };
    case "contents":
    case "files":
    case "image": {
      // A user's own executor may return another kind of result.
      const stdout = resultText(resultContent(result));
      return { type: "code_execution_result", stdout, stderr: "", return_code: 0, content: [] };
    }
  }
}

/** Anthropic's codes. Source: the types of its SDK, `WebSearchToolResultErrorCode` and those of the other tools. */
const errorCodes: Readonly<Record<HostedFailureCode, string>> = {
  unavailable: "unavailable",
  "invalid-input": "invalid_tool_input",
  "query-too-long": "query_too_long",
  "url-too-long": "url_too_long",
  "max-uses-exceeded": "max_uses_exceeded",
  "too-many-requests": "too_many_requests",
  "too-large": "content_too_large",
  "url-not-allowed": "url_not_allowed",
  "url-not-in-context": "url_not_in_prior_context",
  "url-not-accessible": "url_not_accessible",
  "unsupported-content-type": "unsupported_content_type",
  timeout: "execution_time_exceeded",
  "protocol-error": "unavailable",
};

/** The codes that each tool has besides `unavailable`, `invalid_tool_input` and `too_many_requests`, which all have. */
const ownCodes: Readonly<Record<string, ReadonlySet<string>>> = {
  web_search: new Set(["max_uses_exceeded", "query_too_long"]),
  web_fetch: new Set([
    "url_too_long",
    "url_not_allowed",
    "url_not_in_prior_context",
    "url_not_accessible",
    "unsupported_content_type",
    "max_uses_exceeded",
    "content_too_large",
  ]),
  code_execution: new Set(["execution_time_exceeded"]),
};
const commonCodes: ReadonlySet<string> = new Set(["unavailable", "invalid_tool_input", "too_many_requests"]);

function errorCode(name: string, { code }: HostedFailure): string {
  const own = errorCodes[code];
  if (commonCodes.has(own) || ownCodes[name]?.has(own) === true) return own;
  return name === "web_search" && code === "too-large" ? "request_too_large" : "unavailable";
}

const failureCodes: ReadonlyMap<string, HostedFailureCode> = new Map<string, HostedFailureCode>([
  ["request_too_large", "too-large"],
  ...Object.entries(errorCodes).flatMap(([code, own]): [string, HostedFailureCode][] =>
    code === "protocol-error" ? [] : [[own, code as HostedFailureCode]],
  ),
]);

/**
 * Reads the block of a result. `seal` opens the texts of this server's own search results; those of another server cannot be read.
 */
export function readHostedResult(block: JsonObject, seal?: TurnSeal, counter?: BodyCounter): HostedResult {
  const { content } = block;
  if (block["type"] === "mcp_tool_result") {
    const contents: ContentPart[] =
      typeof content === "string"
        ? [{ type: "text", text: content }]
        : objects(content).map(({ text }) => ({ type: "text", text: scalarText(text) }));
    return { kind: "contents", contents, isError: block["is_error"] === true };
  }
  if (Array.isArray(content)) {
    const results = objects(content).map(({ url, title, encrypted_content: sealed, page_age: age }) => ({
      url: scalarText(url),
      title: scalarText(title),
      text: (typeof sealed === "string" ? seal?.open(sealed, counter)?.text : undefined) ?? "",
      ...(typeof age === "string" && { age }),
    }));
    return { kind: "search", results };
  }
  if (!isObject(content)) return { kind: "contents", contents: [], isError: false };
  const { error_code: code, error_message: message } = content;
  if (typeof code === "string") {
    const known = failureCodes.get(code) ?? "unavailable";
    return { kind: "failure", code: known, message: nonEmpty(message) ?? failureMessages[known] };
  }
  if (content["type"] === "web_fetch_result") return documentOf(content);
  const { stdout, stderr, return_code: returnCode } = content;
  if (stdout !== undefined || stderr !== undefined)
    return {
      kind: "code",
      stdout: scalarText(stdout),
      stderr: scalarText(stderr),
      returnCode: typeof returnCode === "number" ? returnCode : 0,
    };
  const { type: _, ...members } = content;
  return { kind: "contents", contents: [{ type: "text", text: JSON.stringify(members) }], isError: false };
}

function documentOf({ url, retrieved_at: retrieved, content }: JsonObject): HostedResult {
  const { title, source } = isObject(content) ? content : {};
  const { type, media_type: mediaType, data } = isObject(source) ? source : {};
  const text = scalarText(data);
  return {
    kind: "document",
    url: scalarText(url),
    ...(typeof title === "string" && { title }),
    mediaType: scalarText(mediaType),
    content: type === "base64" ? { base64: text } : { text },
    retrieved: scalarText(retrieved),
  };
}

function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Counts the calls that a message reports in its usage. A search that failed is not counted. */
export class HostedUsage {
  #searches = 0;
  #fetches = 0;
  #isUsed = false;

  add({ kind, result }: HostedResultEvent): void {
    if (kind !== "web_search" && kind !== "web_fetch") return;
    this.#isUsed = true;
    if (result.kind === "failure") return;
    if (kind === "web_search") this.#searches++;
    else this.#fetches++;
  }

  /** The member of the usage; none without hosted calls. */
  get members(): JsonObject {
    if (!this.#isUsed) return {};
    return { server_tool_use: { web_search_requests: this.#searches, web_fetch_requests: this.#fetches } };
  }
}
