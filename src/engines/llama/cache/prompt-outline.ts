import { isSystem } from "../../../wire/core/prompt-parts.ts";
import type { PromptMessage, ToolMark } from "../../../wire/core/prompt-parts.ts";
import { assistantCalls, reasoningOf } from "../../../wire/core/message.ts";
import type { AssistantPart, ContentPart, Message, Tool } from "../../../wire/core/message.ts";

/**
 * The parts of a prompt and where they begin in its rendered text, in bytes of UTF-8. Checkpoints are placed by it, and two outlines show
 * which part of a prompt differs from an earlier one.
 */
export interface PromptOutline {
  /** Length of the rendered text. */
  readonly bytes: number;
  /** Length of the generation prompt at its end. */
  readonly openingBytes: number;
  readonly messages: readonly MessageMark[];
  readonly tools: readonly ToolMark[];
  /** Lower bound of the offset of the tool definitions. */
  readonly toolsStart: number;
  /** All other input of the chat template, as JSON. */
  readonly options: string;
}

export interface MessageMark extends PromptMessage {
  /** Path in the client's request. */
  readonly path: string;
  /** Lower bound of the message's offset: the end of the text before it. */
  readonly start: number;
}

/** Role of the only message of a prompt that is not a conversation. */
export const promptRole = "prompt";

/** Longer conversations have no outline. */
const maxMessages = 5000;
/** In characters; the request may contain more than the template renders. */
const maxCharacters = 4 * 2 ** 20;
/** After this many texts that the template has changed, no other text is searched for: each search may scan the whole prompt. */
const maxMisses = 20;
/** How many characters of a text are searched for. */
const needleLength = 200;

/**
 * Outlines the prompt of a conversation, in time linear in its length. `tools` are those in the prompt; `rendered` ends with `opening`,
 * the generation prompt. Returns undefined for a conversation that is too long.
 */
export function outlinePrompt(prompt: {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly options: unknown;
  readonly rendered: string;
  readonly opening: string;
}): PromptOutline | undefined {
  const { messages, tools, rendered } = prompt;
  if (messages.length > maxMessages) return undefined;
  const section = toolSection(rendered, tools, messages[0]);
  let toolsStart = 0;
  let isPastTools = section === undefined;
  /** The end of the last text that was found, in characters and in bytes. */
  let end = 0;
  let endBytes = 0;
  let misses = 0;
  const moveTo = (next: number): void => {
    endBytes += Buffer.byteLength(rendered.slice(end, next));
    end = next;
  };
  const marks = messages.map((message, index): MessageMark => {
    const words = wordsOf(message);
    const needle = words.trim();
    const at = needle === "" || misses >= maxMisses ? -1 : rendered.indexOf(needle.slice(0, needleLength), end);
    if (needle !== "" && at === -1) misses++;
    if (section && !isPastTools && at > section.start) {
      isPastTools = true;
      moveTo(Math.max(end, Math.min(section.end, at)));
    }
    const start = endBytes;
    if (at !== -1) moveTo(at + (rendered.startsWith(needle, at) ? needle.length : needleLength));
    if (section && !isPastTools && end <= section.start) toolsStart = endBytes;
    return {
      role: message.role,
      path: message.path ?? `messages[${index}]`,
      start,
      text: words + callsText(message),
      reasoning: message.role === "assistant" ? (reasoningOf(message) ?? "") : "",
    };
  });
  const outline: PromptOutline = {
    bytes: Buffer.byteLength(rendered),
    openingBytes: Buffer.byteLength(prompt.opening),
    messages: marks,
    tools: tools.map(toolMark),
    toolsStart,
    options: JSON.stringify(prompt.options) ?? "",
  };
  return charactersOf(outline) > maxCharacters ? undefined : outline;
}

/** Outlines a prompt that is not a conversation. */
export function outlineText(text: string): PromptOutline {
  const message: MessageMark = { role: promptRole, path: "prompt", start: 0, text, reasoning: "" };
  return {
    bytes: Buffer.byteLength(text),
    openingBytes: 0,
    messages: [message],
    tools: [],
    toolsStart: 0,
    options: "",
  };
}

/** The length of all texts of an outline. */
export function charactersOf({ messages, tools, options }: PromptOutline): number {
  let characters = options.length;
  for (const { text, reasoning } of messages) characters += text.length + reasoning.length;
  for (const { name, definition } of tools) characters += name.length + definition.length;
  return characters;
}

/** From the name of the first tool to that of the last one, in characters; undefined if the prompt does not contain them. */
function toolSection(
  rendered: string,
  tools: readonly Tool[],
  firstMessage: Message | undefined,
): { readonly start: number; readonly end: number } | undefined {
  const [first] = tools;
  const last = tools.at(-1);
  if (!first || !last) return undefined;
  // A system prompt may mention tools, too.
  const system = firstMessage && isSystem(firstMessage) ? wordsOf(firstMessage).trim() : "";
  const at = system === "" ? -1 : rendered.indexOf(system.slice(0, needleLength));
  const find = (name: string, from: number): number => {
    const quoted = rendered.indexOf(JSON.stringify(name), from);
    return quoted === -1 ? rendered.indexOf(name, from) : quoted;
  };
  let start = find(first.name, at === -1 ? 0 : at + system.length);
  if (start === -1) start = find(first.name, 0);
  return start === -1 ? undefined : { start, end: Math.max(start, find(last.name, start)) };
}

/** The texts of a message without its reasoning. */
function wordsOf({ content }: Message): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content
    .map(partWords)
    .filter((words) => words !== null)
    .join("\n");
}

function partWords(part: ContentPart | AssistantPart): string | null {
  if (part.type === "text") return part.text;
  if (part.type === "refusal") return part.refusal;
  if (part.type === "file") return [part.name, part.text].filter((text) => text !== undefined).join("\n\n");
  return null;
}

function callsText(message: Message): string {
  if (message.role === "tool") return message.name ?? "";
  if (message.role !== "assistant") return "";
  return assistantCalls(message)
    .map(({ name, arguments: text }) => `\u0000${name}\u0000${text}`)
    .join("");
}

function toolMark({ name, description = "", parameters, inputGrammar }: Tool): ToolMark {
  return { name, definition: `${description}\u0000${JSON.stringify([parameters, inputGrammar])}` };
}
