import type { ContentPart, JsonSchema, Message } from "./message.ts";

/**
 * What runs hosted tools: the tools that an API's vendor runs in its own service, such as a web search. One executor serves many requests at
 * the same time.
 */
export interface HostedToolExecutor {
  /** The name in the configuration. Keys may be limited to some names. */
  readonly name: string;
  /** The kind of tools that it runs. */
  readonly kind: HostedToolKind;
  /** The longest time of one call, and of one `functions`, in milliseconds. The caller enforces it: a call that hangs is abandoned. */
  readonly timeoutMs: number;
  /** The maximum number of calls in one answer, whatever the client allows. */
  readonly maxCalls: number;

  /**
   * Returns the functions by which a model calls the tool: those of an MCP server that the client allows; one for all other kinds, such as
   * `web_search(query)`. The model knows them by `modelName`. Does not reject.
   */
  functions(tool: HostedTool, signal: AbortSignal): Promise<readonly HostedFunction[] | HostedFailure>;

  /** Runs one call. Does not reject: every outcome is a result, and so is an abort of `signal`. Results have limited lengths. */
  run(call: HostedCall, signal: AbortSignal): Promise<HostedResult>;
}

/** The executors of a server. */
export interface HostedToolExecutors {
  /** The names of the configuration. */
  readonly names: readonly string[];
  /**
   * Returns what runs a tool; undefined if nothing is configured for its kind. Throws `FailureError` for a tool that the configuration
   * does not allow: an MCP server that is not configured.
   */
  find(tool: HostedTool): HostedToolExecutor | undefined;
}

/** A tool that the API's vendor runs, such as a web search. */
export interface HostedTool {
  /** The type in the API: `web_search`, `code_interpreter`. */
  readonly type: string;
  readonly kind: HostedToolKind;
  /** The client's name of the tool: `web_search`, the label of an MCP server. */
  readonly name: string;
  readonly options: HostedToolOptions;
  /** The path of the declaration in the client's request, for errors: `tools[0]`. */
  readonly path: string;
  /** As the client declared it. */
  readonly declaration: Readonly<Record<string, unknown>>;
  /** The client names it as the configuration does: no other server knows it. */
  readonly isOwn?: boolean;
}

/** The kinds of hosted tools, by what they do. The APIs have several names and versions for each. */
export type HostedToolKind =
  | "web_search"
  | "web_fetch"
  | "mcp"
  | "code_interpreter"
  | "file_search"
  | "image_generation"
  | "other";

/** The kinds of which a server has one tool each. A type of this name is of this kind. */
export const singleKinds = [
  "web_search",
  "web_fetch",
  "code_interpreter",
  "file_search",
  "image_generation",
] as const satisfies readonly HostedToolKind[];

/** What a client asks of a hosted tool, independent of any API. */
export interface HostedToolOptions {
  /** The maximum number of calls in one answer. */
  readonly maxUses?: number;
  /** Hosts, and hosts with a path, that results may come from; subdomains included. */
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
  /** For results near the user. */
  readonly userLocation?: {
    readonly city?: string;
    readonly region?: string;
    /** ISO 3166-1, two letters. */
    readonly country?: string;
    /** IANA. */
    readonly timezone?: string;
  };
  /** How much of the results the model is shown. */
  readonly contextSize?: "low" | "medium" | "high";
  /** Of a fetched document, in tokens. */
  readonly maxContentTokens?: number;
  /** Whether citations of the results are requested. */
  readonly citations?: boolean;
  readonly server?: HostedServer;
  /** The ids of the stores that `file_search` searches, the maximum number of results, and the vendor's filters. */
  readonly stores?: readonly string[];
  readonly maxResults?: number;
  readonly filters?: Readonly<Record<string, unknown>>;
}

/** The MCP server of a tool of kind `mcp`. */
export interface HostedServer {
  /** The client's name of the server, in calls and their results. */
  readonly label: string;
  readonly url?: string;
  /** One of the vendor's own servers. */
  readonly connector?: string;
  readonly description?: string;
  /** The value of the `authorization` header, or the token. */
  readonly authorization?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: all of its functions. */
  readonly allowed?: FunctionFilter;
  /** The names of those that are not allowed. */
  readonly excluded?: readonly string[];
  /** Its functions as the client has them from an earlier answer. Present: the server is not asked for them. */
  readonly listed?: readonly HostedFunction[];
  /** The answer does not list the functions: the conversation contains the list, or the client does not know such lists. */
  readonly isListed?: boolean;
  /** The functions that need the client's approval. `true`: all. Absent: none. */
  readonly approval?: true | { readonly always?: FunctionFilter; readonly never?: FunctionFilter };
}

/** Some functions of an MCP server: those with these names, and with `readOnly` those that only read. */
export interface FunctionFilter {
  readonly names?: readonly string[];
  readonly readOnly?: boolean;
}

/** A function of a hosted tool. */
export interface HostedFunction {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** The MCP server says that it changes nothing (`readOnlyHint`). */
  readonly readOnly?: boolean;
  /** The annotations of an MCP server, unchanged. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** What identifies a call of a hosted tool. */
export interface HostedCallIdentity {
  /** Unique among the hosted calls of the answer. */
  readonly id: string;
  readonly kind: HostedToolKind;
  /** The client's name of the tool: `web_search`, the label of an MCP server. */
  readonly tool: string;
  /** The name of the function. */
  readonly name: string;
}

/** One call of a function of a hosted tool. */
export interface HostedCall {
  readonly tool: HostedTool;
  /** The function's name. */
  readonly name: string;
  /** Not validated against the schema of the function. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The conversation before the call. */
  readonly messages: readonly Message[];
  /** Whose call it is: the owner of the client's key, or the request. Where calls wait, owners take turns. */
  readonly owner: string;
}

export type HostedResult =
  | HostedSearch
  | HostedDocument
  | HostedContents
  | HostedCodeOutput
  | HostedFileResults
  | HostedImage
  | HostedFailure;

/** What a web search has found. */
export interface HostedSearch {
  readonly kind: "search";
  readonly results: readonly SearchResult[];
}

export interface SearchResult {
  readonly url: string;
  readonly title: string;
  /** The text that the model reads. */
  readonly text: string;
  /** How old the page is, in words: `3 days ago`, `April 30, 2026`. */
  readonly age?: string;
}

/** A document that was fetched: its text, or the bytes of a PDF, which the engine reads like those of a client. */
export interface HostedDocument {
  readonly kind: "document";
  readonly url: string;
  readonly title?: string;
  /** `text/plain` for text that was made of HTML. */
  readonly mediaType: string;
  readonly content: { readonly text: string } | { readonly base64: string };
  /** ISO 8601. */
  readonly retrieved: string;
}

/** The contents that an MCP server has returned: texts, images as data URLs, files. */
export interface HostedContents {
  readonly kind: "contents";
  readonly contents: readonly ContentPart[];
  /** The function ran and failed: the contents are its error. */
  readonly isError: boolean;
}

/** The output of code. */
export interface HostedCodeOutput {
  readonly kind: "code";
  readonly stdout: string;
  readonly stderr: string;
  readonly returnCode: number;
  /** The id of the container in which it ran. */
  readonly container?: string;
  /** The images that it made, as data URLs. */
  readonly images?: readonly string[];
  /** The ids of the files that it made. */
  readonly files?: readonly { readonly id: string; readonly name?: string }[];
}

/** What a search in files has found. */
export interface HostedFileResults {
  readonly kind: "files";
  readonly results: readonly {
    readonly fileId: string;
    readonly filename: string;
    /** From 0 to 1; higher is more relevant. */
    readonly score: number;
    readonly text: string;
    readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  }[];
}

/** An image that was generated, as a data URL. */
export interface HostedImage {
  readonly kind: "image";
  readonly url: string;
  /** The prompt that was used in place of the model's. */
  readonly revisedPrompt?: string;
  /** Earlier states of the image, as data URLs. */
  readonly partial?: readonly string[];
}

/** A call, or a list of functions, that failed. Each API puts the code into its own words. */
export interface HostedFailure {
  readonly kind: "failure";
  readonly code: HostedFailureCode;
  /** A sentence for the model and the client. It has no address and no credentials of this server. */
  readonly message: string;
  /** The HTTP status of the server that refused. */
  readonly status?: number;
}

/**
 * - unavailable: no executor, or its server does not answer
 * - invalid-input: the arguments are not those of the function
 * - query-too-long, url-too-long: a query or an address is longer than the limit
 * - max-uses-exceeded: the client's `max_uses`, or the server's limit of calls
 * - too-many-requests: the executor's server refuses more requests
 * - too-large: the result is longer than the limit
 * - url-not-allowed: a domain that the client or the configuration does not allow
 * - url-not-in-context: an address that is not in the conversation
 * - url-not-accessible: the address does not answer, or with an error
 * - unsupported-content-type: a document that is neither text nor PDF
 * - timeout: `timeoutMs` passed
 * - protocol-error: an MCP server broke the protocol, or refused the call
 */
export type HostedFailureCode =
  | "unavailable"
  | "invalid-input"
  | "query-too-long"
  | "url-too-long"
  | "max-uses-exceeded"
  | "too-many-requests"
  | "too-large"
  | "url-not-allowed"
  | "url-not-in-context"
  | "url-not-accessible"
  | "unsupported-content-type"
  | "timeout"
  | "protocol-error";

/** A warning for a request with a tool that the server does not run. */
export function notRun({ kind, type, path }: HostedTool): string {
  return `${path}: nothing here runs ${type}; ${kind === "other" ? "it is left out" : "its calls fail as unavailable"}`;
}

/**
 * Returns the name by which the model knows a function. A conversation contains only this name, so it depends on nothing else in the
 * request.
 */
export function modelName({ kind, tool, name }: Pick<HostedCallIdentity, "kind" | "tool" | "name">): string {
  if (kind === "mcp") return `mcp__${tool}__${name}`;
  return kind === "other" ? name : kind;
}
