/**
 * A conversation, neutral of any API. It holds what OpenAI's chat completions, OpenAI's Responses and Anthropic's Messages can say.
 * `content` is a string where the client sent one, else its parts in order.
 */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** What every message may have. */
export interface Said {
  /** Where the client's request has it, for errors; default `messages[INDEX]`. */
  readonly path?: string;
}

export interface SystemMessage extends Said {
  readonly role: "system" | "developer";
  readonly content: Content;
  readonly name?: string;
}

export interface UserMessage extends Said {
  readonly role: "user";
  readonly content: Content;
  readonly name?: string;
}

/** What the model said in one turn. Texts, thoughts and calls stand in the order in which they were made. */
export interface AssistantMessage extends Said {
  readonly role: "assistant";
  /** A string: one text and nothing else. null: the client said that there is no content. */
  readonly content: string | readonly AssistantPart[] | null;
  readonly name?: string;
}

/** The result of a call. */
export interface ToolMessage extends Said {
  readonly role: "tool";
  readonly content: Content;
  /** Of the call that this answers. */
  readonly toolCallId: string;
  /** The tool's name, where the client gave it or it was found by the id. */
  readonly name?: string;
  /** The tool failed, and the content says how. */
  readonly isError?: boolean;
}

export type Content = string | readonly ContentPart[];

/** A part of what a user, a system or a tool says. */
export type ContentPart = TextPart | RefusalPart | ImagePart | AudioPart | FilePart;

/** A part of what the model said. */
export type AssistantPart = TextPart | RefusalPart | ImagePart | ReasoningPart | ToolCallPart;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  /** What the text is to the turn, where the model says so (`commentary` before a call, `final_answer`). Source: Responses, `phase`. */
  readonly phase?: string;
}

export interface RefusalPart {
  readonly type: "refusal";
  readonly refusal: string;
}

export interface ImagePart {
  readonly type: "image";
  /** An http(s) or a data URL. */
  readonly url: string;
  readonly detail?: string;
}

export interface AudioPart {
  readonly type: "audio";
  /** Base64. */
  readonly data: string;
  readonly format: string;
}

/** A file: its text, its bytes, or where it is. */
export interface FilePart {
  readonly type: "file";
  readonly name?: string;
  /** A text document's own text. */
  readonly text?: string;
  /** The bytes as a data URL (or, where a client sent no more than that, as base64). */
  readonly data?: string;
  /** An http(s) URL. */
  readonly url?: string;
  /** The id that a vendor's file storage gave it. */
  readonly id?: string;
}

/** A thought of the model. */
export interface ReasoningPart {
  readonly type: "reasoning";
  /** The thought itself; "" where only a summary or a sealed form is known. */
  readonly text: string;
  /** Its summary, part by part. */
  readonly summary?: readonly string[];
  /** The item's id at the API that made it. */
  readonly id?: string;
  /** What its maker signed it with; opaque. Source: Anthropic's Messages, `thinking.signature`. */
  readonly signature?: string;
  /** The thought in its maker's sealed form; opaque. Source: Responses, `encrypted_content`; Messages, `redacted_thinking.data`. */
  readonly encrypted?: string;
}

export interface ToolCallPart extends ToolCall {
  readonly type: "tool-call";
}

/** A call that was made. `arguments` is the model's own JSON text: it may be malformed, and survives as it is. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Of a custom tool: the input text. */
  readonly arguments: string;
  /** Default "function". */
  readonly kind?: "function" | "custom";
  /** The group that the tool belongs to, which `name` begins with (`qualifiedName`). Source: Responses, tools of type `namespace`. */
  readonly namespace?: string;
}

/** A tool that may be called, and that the client runs. */
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
  /** The group that it belongs to, which `name` begins with (`qualifiedName`). Source: Responses, tools of type `namespace`. */
  readonly namespace?: string;
  /** It stays out of the prompt until the result of a search for tools names it. Source: Messages, `defer_loading`. */
  readonly deferred?: boolean;
  /** Where the client's request has its schema or grammar, for errors; default `tools[INDEX].function.parameters`. */
  readonly path?: string;
}

/** A tool that the API's own server runs, such as a web search. An engine that cannot run it says so by its type. */
export interface HostedTool {
  /** The name that the API gives its type: `web_search`, `code_interpreter`. */
  readonly type: string;
  /** As the client declared it. */
  readonly declaration: Readonly<Record<string, unknown>>;
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
