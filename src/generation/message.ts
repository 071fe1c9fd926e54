/** A conversation, API-neutral. `content` is a string when the client sent a string, else its parts in order. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

export type Content = string | readonly ContentPart[];

export interface SystemMessage {
  readonly role: "system" | "developer";
  readonly content: Content;
  readonly name?: string;
}

export interface UserMessage {
  readonly role: "user";
  readonly content: Content;
  readonly name?: string;
}

export interface AssistantMessage {
  readonly role: "assistant";
  /** null when only calls were made. */
  readonly content: Content | null;
  readonly name?: string;
  readonly reasoning?: string;
  readonly refusal?: string;
  readonly toolCalls?: readonly ToolCall[];
}

export interface ToolMessage {
  readonly role: "tool";
  readonly content: Content;
  /** Of the call that this answers. */
  readonly toolCallId: string;
  /** The function's name, where the client gave it or it was found by the id. */
  readonly name?: string;
}

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly refusal: string }
  /** `url` is an http(s) or a data URL. */
  | { readonly type: "image"; readonly url: string; readonly detail?: string }
  | { readonly type: "audio"; readonly data: string; readonly format: string }
  | { readonly type: "file"; readonly file: Readonly<Record<string, unknown>> };

/** A call that was made. `arguments` is the model's own JSON text: it may be malformed, and survives as it is. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly kind?: "function" | "custom";
}

/** A tool that may be called. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments; absent: an object without properties. */
  readonly parameters?: JsonSchema;
  /** Arguments must follow the schema exactly, whatever the choice of tools. */
  readonly strict?: boolean;
  /** "custom": a call holds free text in place of arguments. Default "function". */
  readonly kind?: "function" | "custom";
  /** What the whole text of a custom tool's call must match. */
  readonly inputGrammar?: { readonly syntax: "regex" | "lark"; readonly definition: string };
}

/** Any JSON Schema: an object, or true / false. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

export type ToolChoice =
  | { readonly type: "none" }
  | { readonly type: "auto" }
  | { readonly type: "required" }
  | { readonly type: "named"; readonly name: string }
  /** Only these may be called; with mode "required" one of them must be. */
  | { readonly type: "allowed"; readonly mode: "auto" | "required"; readonly names: readonly string[] };
