import type { CallState, ReasoningState } from "./turn-state.ts";

/**
 * A message, independent of any API. It can represent the messages of OpenAI's chat completions, OpenAI's Responses and Anthropic's
 * Messages. `content` is a string if the client sent one, else its parts in order.
 */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** Members that every message may have. */
export interface MessageBase {
  /** The message's path in the client's request, for errors; default `messages[INDEX]`. */
  readonly path?: string;
}

export interface SystemMessage extends MessageBase {
  readonly role: "system" | "developer";
  readonly content: Content;
  readonly name?: string;
}

export interface UserMessage extends MessageBase {
  readonly role: "user";
  readonly content: Content;
  readonly name?: string;
}

/** The model's output in one turn: text, reasoning and calls in the order in which they were generated. */
export interface AssistantMessage extends MessageBase {
  readonly role: "assistant";
  /** A string: one text and nothing else. null: the client sent null. */
  readonly content: string | readonly AssistantPart[] | null;
  readonly name?: string;
}

/** The result of a call. */
export interface ToolMessage extends MessageBase, CacheablePart {
  readonly role: "tool";
  readonly content: Content;
  /** The id of the call. */
  readonly toolCallId: string;
  /** The tool's name, if the client sent it or the call was found by its id. */
  readonly name?: string;
  /** The tool failed. The content is its error. */
  readonly isError?: boolean;
}

export type Content = string | readonly ContentPart[];

/** A part of a user's, a system's or a tool's message. */
export type ContentPart = TextPart | RefusalPart | ImagePart | AudioPart | FilePart;

/** A part of the model's output. */
export type AssistantPart = TextPart | RefusalPart | ImagePart | ReasoningPart | ToolCallPart;

/** A part of a prompt that a server may have to cache on request. */
export interface CacheablePart {
  /**
   * The prompt up to the end of this part is to be cached for this time. Sources: `cache_control` of Messages and of OpenRouter's chat API,
   * OpenAI's `prompt_cache_breakpoint`.
   */
  readonly cacheMinutes?: number;
}

export interface TextPart extends CacheablePart {
  readonly type: "text";
  readonly text: string;
  /** The role of the text in the turn, if the model states it (`commentary` before a call, `final_answer`). Source: Responses, `phase`. */
  readonly phase?: string;
}

export interface RefusalPart {
  readonly type: "refusal";
  readonly refusal: string;
}

export interface ImagePart extends CacheablePart {
  readonly type: "image";
  /** An http(s) or a data URL. */
  readonly url: string;
  readonly detail?: string;
}

export interface AudioPart extends CacheablePart {
  readonly type: "audio";
  /** Base64. */
  readonly data: string;
  readonly format: string;
  /** The part's path in the client's request, for errors; default: its place in the message. */
  readonly path?: string;
}

/** A file: its text, its bytes, or where it is. */
export interface FilePart extends CacheablePart {
  readonly type: "file";
  readonly name?: string;
  /** A text document's own text. */
  readonly text?: string;
  /** The bytes as a data URL, or as base64 if the client sent it so. */
  readonly data?: string;
  /** An http(s) URL. */
  readonly url?: string;
  /** The id that a vendor's file storage gave it. */
  readonly id?: string;
}

/** Reasoning of the model. */
export interface ReasoningPart {
  readonly type: "reasoning";
  /** The reasoning text; "" if only a summary or the encrypted form is known. */
  readonly text: string;
  /** Its summary, part by part. */
  readonly summary?: readonly string[];
  /** The item's id at the vendor. */
  readonly id?: string;
  readonly state?: ReasoningState;
}

export interface ToolCallPart extends ToolCall, CacheablePart {
  readonly type: "tool-call";
  /** What the source of the call demands back with it. */
  readonly state?: CallState;
}

/** A tool call. `arguments` is the model's own JSON text, which may be malformed and is never changed. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** For a custom tool: the input text. */
  readonly arguments: string;
  /** Default "function". */
  readonly kind?: "function" | "custom";
  /** The group that the tool belongs to, which `name` begins with (`qualifiedName`). Source: Responses, tools of type `namespace`. */
  readonly namespace?: string;
}

/** A tool that the model may call and the client runs. */
export interface Tool extends CacheablePart {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments; absent: an object without properties. */
  readonly parameters?: JsonSchema;
  /** Arguments must follow the schema exactly, with any tool choice. */
  readonly strict?: boolean;
  /** "custom": a call has free text in place of arguments. Default "function". */
  readonly kind?: "function" | "custom";
  /** A grammar for the text of a custom tool's call. */
  readonly inputGrammar?: { readonly syntax: "regex" | "lark"; readonly definition: string };
  /** The group that it belongs to, which `name` begins with (`qualifiedName`). Source: Responses, tools of type `namespace`. */
  readonly namespace?: string;
  /** The tool is not in the prompt until the result of a tool search names it. Source: Messages, `defer_loading`. */
  readonly deferred?: boolean;
  /** The path of the schema or grammar in the client's request, for errors; default `tools[INDEX].function.parameters`. */
  readonly path?: string;
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

/** The parts of an assistant's message, in order. */
export function assistantParts({ content }: AssistantMessage): readonly AssistantPart[] {
  if (content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** The content of an assistant's message with these parts: a string for one plain text, null without parts. */
export function assistantContent(parts: readonly AssistantPart[]): AssistantMessage["content"] {
  const [first] = parts;
  if (first === undefined) return null;
  const isPlain = first.type === "text" && first.phase === undefined && first.cacheMinutes === undefined;
  return parts.length === 1 && isPlain ? first.text : parts;
}

/** The calls of an assistant's message, in order. */
export function assistantCalls(message: AssistantMessage): readonly ToolCall[] {
  if (message.content === null || typeof message.content === "string") return none;
  return message.content.filter((part) => part.type === "tool-call");
}

/** The readable reasoning of an assistant's message, its parts joined; undefined without any. */
export function reasoningOf(message: AssistantMessage): string | undefined {
  const texts: string[] = [];
  for (const part of assistantParts(message)) {
    if (part.type !== "reasoning") continue;
    const { text, summary, state } = part;
    if (text === "" && summary) texts.push(summary.join("\n\n"));
    else if (text !== "" || state === undefined) texts.push(text);
  }
  return texts.length === 0 ? undefined : texts.join("\n\n");
}

const none: readonly ToolCall[] = [];

/** Ids of calls in the form that a server accepts: a different one for each id, and the same whenever it is asked for. */
class FittedIds {
  readonly #fittedOf = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #fit: (id: string) => string;
  readonly #numbered: (fitted: string, number: number) => string;
  /** Lower numbers are in use. */
  #number = 0;

  /** `fit`: the form of an id; `numbered`: the same for one whose form another id has. */
  constructor(fit: (id: string) => string, numbered: (fitted: string, number: number) => string) {
    this.#fit = fit;
    this.#numbered = numbered;
  }

  of(id: string): string {
    let fitted = this.#fittedOf.get(id);
    if (fitted === undefined) {
      const first = (fitted = this.#fit(id));
      while (this.#taken.has(fitted)) fitted = this.#numbered(first, this.#number++);
      this.#taken.add(fitted);
      this.#fittedOf.set(id, fitted);
    }
    return fitted;
  }

  /** The id of a further call with this id. From now on, `of` returns it, too: results follow their calls. */
  ofCall(id: string): string {
    this.#fittedOf.delete(id);
    return this.of(id);
  }
}

/** Ids of exactly nine letters or digits, which Mistral's models require: the end of the original id, unless another id has the same end. */
export class ShortIds extends FittedIds {
  constructor() {
    const fit = (id: string): string =>
      id
        .replace(/[^a-zA-Z0-9]/g, "")
        .slice(-9)
        .padStart(9, "0");
    super(fit, (_, number) => String(number).padStart(9, "0"));
  }
}

/**
 * Ids of letters, digits, `_` and `-`, which Anthropic requires, and a different one for each call: `f.a:0` and `f_a_0` are two calls, and so
 * are two calls with the id `call_0`, which some servers give to the first call of every answer.
 */
export class WordIds extends FittedIds {
  constructor() {
    super(
      (id) => id.replace(/[^a-zA-Z0-9_-]/g, "_"),
      (fitted, number) => `${fitted}_${number}`,
    );
  }
}
