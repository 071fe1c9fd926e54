import { isObject } from "../../core/json.ts";
import type { Message } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { Header } from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";

/** The requests of one conversation of a client. */
export interface Thread {
  /** The id of its first request. */
  readonly id: string;
  /** The number of its requests. */
  turns: number;
}

/** What the list of requests shows of the messages of a request. */
export interface RequestLine {
  /** Of the conversation up to this request. */
  readonly keys: ConversationKeys;
  readonly thread: Thread;
  /** From 1. */
  readonly turn: number;
  readonly snippet?: string;
  readonly snippetOf?: "user" | "tool";
}

/** Keys under which the thread of a conversation is found. */
interface ConversationKeys {
  /** Of the client's session. */
  readonly session: string | undefined;
  /** Of all messages; "" without messages. */
  readonly messages: string;
}

/**
 * The headers in which clients send the id of a session. Sources: Claude Code 2.1.330 (`x-claude-code-session-id`), Codex 0.169
 * (`session-id`) and 0.101 (`session_id`).
 */
const sessionHeaders: ReadonlySet<string> = new Set(["x-claude-code-session-id", "session-id", "session_id"]);

/**
 * Finds the thread of a request among those of earlier requests, and adds it to them. A request continues a thread if it has the same
 * session header, or if its messages begin with all messages of an earlier request and continue them.
 *
 * @param threads The threads of earlier requests, by their keys.
 */
export function lineOf(
  id: string,
  request: Partial<GenerationRequest>,
  headers: readonly Header[],
  mask: Mask,
  threads: Map<string, Thread>,
): RequestLine {
  const session = headers.find(([name]) => sessionHeaders.has(name.toLowerCase()))?.[1];
  const messages = request.prompt?.kind === "chat" ? request.prompt.messages : [];
  const prefixes = prefixKeys(messages);
  const keys = {
    session: session === undefined ? undefined : `session ${session}`,
    messages: prefixes.at(-1) ?? "",
  };
  const earlier = [...(keys.session === undefined ? [] : [keys.session]), ...prefixes.slice(0, -1).reverse()];
  const known = earlier.find((key) => threads.has(key));
  const thread = (known === undefined ? undefined : threads.get(known)) ?? { id, turns: 0 };
  thread.turns++;
  const line = { keys, thread, turn: thread.turns, ...snippetOf(request, mask) };
  addThread(line, threads);
  return line;
}

/** Adds the thread of a request to those that later requests may continue. */
export function addThread({ keys, thread }: RequestLine, threads: Map<string, Thread>): void {
  if (keys.session !== undefined) threads.set(keys.session, thread);
  if (keys.messages !== "") threads.set(keys.messages, thread);
}

/** A key of each beginning of the messages, the shortest first. */
function prefixKeys(messages: readonly Message[]): string[] {
  const hash = [0x811c9dc5, 0x9e3779b9];
  return messages.map((message) => {
    for (const text of distinctiveTexts(message)) addTo(hash, text);
    return `messages ${hash.join(" ")}`;
  });
}

/** Texts of a message that stay the same when a client sends it again: clients drop reasoning, and move marks for caches. */
function distinctiveTexts({ role, content }: Message): string[] {
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : (content ?? []);
  return [
    `\0${role}`,
    ...parts.flatMap((part) => {
      if (part.type === "text") return [part.text];
      if (part.type === "tool-call") return [part.name, part.arguments];
      return part.type === "image" ? [part.url] : [];
    }),
  ];
}

/** Of a long text, this number of characters at each end and its length are compared. */
const comparedLength = 256;

/** Two FNV-1a hashes of 32 bits with different beginnings. */
function addTo(hash: number[], text: string): void {
  const { length } = text;
  const compared =
    length <= 2 * comparedLength ? text : text.slice(0, comparedLength) + text.slice(length - comparedLength);
  const whole = `${compared}\0${length}`;
  for (const [which, start] of hash.entries()) {
    let value = start;
    for (let at = 0; at < whole.length; at++) value = Math.imul(value ^ whole.charCodeAt(at), 0x01000193);
    hash[which] = value;
  }
}

/** Maximum length of a snippet, and of the text that it is made from, in characters. */
const snippetLength = 160;
const readLength = 4096;

/** The beginning of the last text of the user, or of the last tool result if no text follows it. */
function snippetOf({ prompt }: Partial<GenerationRequest>, mask: Mask): Pick<RequestLine, "snippet" | "snippetOf"> {
  if (prompt?.kind === "text") {
    const [first] = prompt.prompts;
    return typeof first === "string" ? { snippet: shortened(first, mask), snippetOf: "user" } : {};
  }
  for (const message of prompt?.messages.toReversed() ?? []) {
    if (message.role !== "user" && message.role !== "tool") continue;
    const text = typeof message.content === "string" ? [message.content] : textsOf(message.content);
    const last = text.findLast((one) => one.trim() !== "" && !isInjected(one));
    if (last !== undefined) return { snippet: shortened(last, mask), snippetOf: message.role };
  }
  return {};
}

function textsOf(content: unknown): string[] {
  return Array.isArray(content)
    ? content.flatMap((part: unknown) => (isObject(part) && typeof part["text"] === "string" ? [part["text"]] : []))
    : [];
}

/** The client wrote the text, not the user. Source: Claude Code 2.1 (`<system-reminder>`), Codex 0.169 (`<environment_context>`). */
function isInjected(text: string): boolean {
  return /^\s*<(?:system-reminder|environment_context)>/.test(text);
}

/** Masks before it shortens: a secret that is cut would not be found. */
function shortened(text: string, mask: Mask): string {
  const line = mask.text(text.trimStart().slice(0, readLength)).replace(/\s+/g, " ").trimEnd();
  return line.length <= snippetLength ? line : `${line.slice(0, snippetLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
