import { callsOf, partsOf, thoughtOf } from "../../../core/assistant-parts.ts";
import type { AssistantPart, ContentPart, Message, Tool } from "../../../core/message.ts";
import { promptRole } from "./prompt-outline.ts";
import type { MessageMark, PromptOutline, TextPiece, ToolMark } from "./prompt-outline.ts";

export interface OutlinedPrompt {
  readonly messages: readonly Message[];
  /** Those that the prompt shows. */
  readonly tools: readonly Tool[];
  /** What else the chat template was told: a JSON value. */
  readonly options: unknown;
  readonly rendered: string;
  /** What the rendered text ends with for the answer. */
  readonly opening: string;
}

/** Conversations of more messages are not explained. */
const mostMessages = 5000;
/** After so many texts that the template has changed, no further ones are looked for: each may cost a look through the whole prompt. */
const mostUnfound = 20;
/** So much of a text is looked for, in characters. */
const needleLength = 200;
/** Sentences and lines of a message that are told apart; what follows is one more. */
const mostPieces = 400;

/** The outline of a conversation's prompt; undefined: it has too many messages. Linear in its length. */
export function outlinePrompt(prompt: OutlinedPrompt): PromptOutline | undefined {
  const { messages, tools, rendered } = prompt;
  if (messages.length > mostMessages) return undefined;
  const places = new Places(rendered);
  const toolPlace = placeOfTools(rendered, tools, messages);
  const firstUser = messages.findIndex(({ role }) => role === "user");
  const marks = messages.map((message, index): MessageMark => {
    const words = wordsOf(message);
    const start = places.next(words.trim(), toolPlace);
    const looksClosely = isSystem(message) || index === firstUser || index === messages.length - 1;
    return {
      role: message.role,
      path: message.path ?? `messages[${index}]`,
      start,
      hash: hashOf(`${message.role}\u0000${words}${callsText(message)}`),
      thoughts: message.role === "assistant" ? hashOf(thoughtOf(message) ?? "") : 0,
      images: hashOf(imagesOf(message)),
      length: words.length,
      ...(looksClosely && { pieces: piecesOf(words) }),
    };
  });
  return {
    bytes: Buffer.byteLength(rendered),
    openingBytes: Buffer.byteLength(prompt.opening),
    messages: marks,
    tools: tools.map(toolMark),
    toolsStart: toolPlace ? places.beforeTools : 0,
    options: hashOf(JSON.stringify(prompt.options) ?? ""),
  };
}

/** The outline of a prompt that is no conversation. */
export function outlineText(text: string): PromptOutline {
  const mark: MessageMark = {
    role: promptRole,
    path: "prompt",
    start: 0,
    hash: hashOf(text),
    thoughts: 0,
    images: 0,
    length: text.length,
    pieces: piecesOf(text),
  };
  const bytes = Buffer.byteLength(text);
  return { bytes, openingBytes: 0, messages: [mark], tools: [], toolsStart: 0, options: 0 };
}

interface Place {
  readonly start: number;
  readonly end: number;
}

/** Finds texts one after the other in the rendered prompt, and counts its bytes on the way. */
class Places {
  readonly #text: string;
  /** The end of what was found, in characters and in bytes. */
  #end = 0;
  #endBytes = 0;
  #unfound = 0;
  #toolsPassed = false;
  /** In bytes: the end of the last text before the tools. */
  beforeTools = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where a message with this text begins at the earliest, in bytes. */
  next(text: string, tools: Place | undefined): number {
    const at = this.#find(text);
    if (tools && !this.#toolsPassed && at !== undefined) {
      if (tools.start < at) {
        this.#toolsPassed = true;
        this.#moveTo(Math.max(this.#end, Math.min(tools.end, at)));
      }
    }
    const start = this.#endBytes;
    if (at !== undefined) {
      const whole = this.#text.startsWith(text, at) ? text.length : needleLength;
      this.#moveTo(at + whole);
    }
    if (tools && !this.#toolsPassed) this.beforeTools = this.#end <= tools.start ? this.#endBytes : this.beforeTools;
    return start;
  }

  #find(text: string): number | undefined {
    if (text === "" || this.#unfound >= mostUnfound) return undefined;
    const at = this.#text.indexOf(text.slice(0, needleLength), this.#end);
    if (at !== -1) return at;
    this.#unfound++;
    return undefined;
  }

  #moveTo(end: number): void {
    this.#endBytes += Buffer.byteLength(this.#text.slice(this.#end, end));
    this.#end = end;
  }
}

/** Where the rendered prompt names the tools; undefined: it does not, or there are none. */
function placeOfTools(rendered: string, tools: readonly Tool[], messages: readonly Message[]): Place | undefined {
  const [first] = tools;
  const last = tools.at(-1);
  if (!first || !last) return undefined;
  const [system] = messages;
  // A system prompt may name tools, too.
  const words = system && isSystem(system) ? wordsOf(system).trim().slice(0, needleLength) : "";
  const at = words === "" ? -1 : rendered.indexOf(words);
  const skipped = system && at !== -1 ? at + wordsOf(system).trim().length : 0;
  const find = (name: string, from: number): number => {
    const quoted = rendered.indexOf(JSON.stringify(name), from);
    return quoted === -1 ? rendered.indexOf(name, from) : quoted;
  };
  let start = find(first.name, skipped);
  if (start === -1) start = find(first.name, 0);
  if (start === -1) return undefined;
  const end = Math.max(start, find(last.name, start));
  return { start, end };
}

function isSystem({ role }: Message): boolean {
  return role === "system" || role === "developer";
}

/** The texts of a message but its thoughts. */
function wordsOf({ content }: Message): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content
    .map(partWords)
    .filter((words) => words !== null)
    .join("\n");
}

function partWords(part: ContentPart | AssistantPart): string | null {
  switch (part.type) {
    case "text":
      return part.text;
    case "refusal":
      return part.refusal;
    case "file":
      return [part.name, part.text].filter((text) => text !== undefined).join("\n\n");
    default:
      return null;
  }
}

function callsText(message: Message): string {
  if (message.role === "tool") return message.name ?? "";
  if (message.role !== "assistant") return "";
  return callsOf(message)
    .map(({ name, arguments: text }) => `\u0000${name}\u0000${text}`)
    .join("");
}

function imagesOf(message: Message): string {
  const parts = message.role === "assistant" ? partsOf(message) : message.content;
  if (typeof parts === "string") return "";
  return parts.map((part) => (part.type === "image" ? `${part.url}\u0000` : "")).join("");
}

function toolMark({ name, description = "", parameters, inputGrammar }: Tool): ToolMark {
  const text = `${description}\u0000${JSON.stringify([parameters, inputGrammar])}`;
  return { name: hashOf(name), hash: hashOf(text), length: text.length };
}

/** The sentences and lines of a text. */
function piecesOf(text: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  let end = 0;
  for (const { 0: piece, index } of text.matchAll(/[^\n.!?]+[\n.!?]*|[\n.!?]+/g)) {
    if (pieces.length === mostPieces) break;
    pieces.push({ hash: hashOf(piece), length: piece.length });
    end = index + piece.length;
  }
  const rest = text.slice(end);
  if (rest !== "") pieces.push({ hash: hashOf(rest), length: rest.length });
  return pieces;
}

/** FNV-1a over UTF-16 units, 32 bits: two texts are taken for one by accident, never on a path that anything but an explanation takes. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
