import { estimateTokens } from "../../../wire/core/estimate-tokens.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { Message } from "../../../wire/core/message.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import type { Header, RequestPurpose, RequestSummary } from "../../../judge/inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";
import { productOf } from "../model-routes.ts";

/** The requests of one session of a client, or of one conversation if the client names no session. */
export interface Thread {
  /** The id of its first request. */
  readonly id: string;
}

/** Messages that grow from request to request, in a thread. A session may have several: its sub-agents, and side questions. */
export interface Conversation {
  /** The id of its first request. */
  readonly id: string;
  readonly thread: Thread;
  /** The number of its requests. */
  turns: number;
}

/** What one request says about its place among others, and what the list of requests shows of it. */
export interface LineFacts {
  /** The key of the client's session. */
  readonly session?: string;
  readonly client?: string;
  readonly purpose?: RequestPurpose;
  readonly topic?: string;
  readonly snippet?: string;
  readonly snippetOf?: "user" | "tool";
  readonly estimatedTokens?: number;
  /** Absent if the request has no messages: a count of tokens, or a request that was refused before it was read. */
  readonly keys?: ConversationKeys;
}

/** The place of a request among others. */
export interface RequestLine {
  readonly facts: LineFacts;
  readonly thread: Thread;
  readonly turn?: TurnOfConversation;
}

interface TurnOfConversation {
  readonly conversation: Conversation;
  /** From 1. */
  readonly number: number;
}

/** The threads and conversations of earlier requests, by their keys. */
export interface KnownConversations {
  readonly sessions: Map<string, Thread>;
  readonly conversations: Map<string, Conversation>;
}

/** The parts of a request that its line is made of. */
export interface LineSource {
  readonly headers: readonly Header[];
  readonly mask: Mask;
  /** undefined: the request was not read. */
  readonly request: Partial<GenerationRequest> | undefined;
}

/**
 * The headers in which clients send the id of a session. Sources: Claude Code 2.1.330 (`x-claude-code-session-id`), Codex 0.169
 * (`session-id`) and 0.101 (`session_id`).
 */
const sessionHeaders = ["x-claude-code-session-id", "session-id", "session_id"] as const;

/** Reads what a request says about its place among others; undefined if it says nothing. */
export function lineFacts({ headers, mask, request }: LineSource): LineFacts | undefined {
  const header = (name: string): string | undefined => headers.find(([other]) => other.toLowerCase() === name)?.[1];
  const session = sessionHeaders.map(header).find((value) => value !== undefined && value !== "");
  if (!request && session === undefined) return undefined;
  const sender = { ...(session !== undefined && { session }), ...clientOf(header("user-agent"), mask) };
  if (!request) return sender;
  const messages = request.prompt?.kind === "chat" ? request.prompt.messages : [];
  const agent = agentOf(header);
  const isSubagent = agent.isSubagent || header("x-openai-subagent") !== undefined;
  const isForTitle = isTitle(request, messages);
  const keys =
    session === undefined ? messageKeys(messages, isForTitle) : sessionKeys(session, agent.id, messages, isForTitle);
  const purpose = isSubagent ? "sub-agent" : isForTitle ? "title" : undefined;
  return {
    ...sender,
    keys,
    ...(request.prompt && { estimatedTokens: estimateTokens({ ...request, prompt: request.prompt }) }),
    purpose,
    ...topicOf(messages, mask),
    ...snippetOf(request, mask),
  };
}

/**
 * Finds the thread and the conversation of a request among those of earlier requests, and adds it to them.
 *
 * With a session header, the session is the thread. In a session, a request continues the conversation of the same agent, or the one with
 * the same system prompt, or one whose messages its own messages continue. Without the header, it continues the conversation whose
 * messages its own messages, the system prompt included, begin with and continue; else one whose other messages they continue: its system
 * prompt has changed, as it does where it has a date or a user edits it.
 */
export function joinLine(id: string, facts: LineFacts, known: KnownConversations): RequestLine {
  const { session, keys } = facts;
  const found = keys?.earlier.map((key) => known.conversations.get(key)).find((one) => one !== undefined);
  const thread = found?.thread ?? (session === undefined ? undefined : known.sessions.get(session)) ?? { id };
  if (!keys) {
    const line = { facts, thread };
    addLine(line, known);
    return line;
  }
  const conversation = found ?? { id, thread, turns: 0 };
  const line = { facts, thread, turn: { conversation, number: ++conversation.turns } };
  addLine(line, known);
  return line;
}

/** Adds the thread and the conversation of a request to those that later requests may continue. */
export function addLine({ facts, thread, turn }: RequestLine, { sessions, conversations }: KnownConversations): void {
  if (facts.session !== undefined) sessions.set(facts.session, thread);
  if (turn) for (const key of facts.keys?.own ?? []) conversations.set(key, turn.conversation);
}

/** The summary of a request with its line. */
export function withLine(summary: RequestSummary, { facts, thread, turn }: RequestLine): RequestSummary {
  const { client, purpose, topic, snippet, snippetOf, estimatedTokens } = facts;
  const isUncounted = summary.prompt_tokens === undefined && summary.outcome === "finished";
  return {
    ...summary,
    ...(isUncounted && estimatedTokens !== undefined && { estimated_prompt_tokens: estimatedTokens }),
    client,
    thread: thread.id,
    ...(turn && { conversation: turn.conversation.id, turn: turn.number }),
    purpose,
    ...(topic !== undefined && topic !== snippet && { topic }),
    ...(snippet !== undefined && snippetOf !== undefined && { snippet, snippet_of: snippetOf }),
  };
}

/** Maximum number of earlier messages after which a conversation is found: a turn of an agent adds a few. */
const maxEarlier = 64;

/** The keys of the conversations that a request may continue, the best first, and those of its own conversation. */
interface ConversationKeys {
  readonly earlier: readonly string[];
  readonly own: readonly string[];
}

function messageKeys(messages: readonly Message[], isForTitle: boolean): ConversationKeys {
  const whole = prefixKeys(messages, "messages");
  // A request for a title may have the same first message as the conversation that it is about.
  const rest = isForTitle ? [] : prefixKeys(messages.filter(isNotSystem), "other messages");
  return { earlier: [...earlierOf(whole), ...earlierOf(rest)], own: [...whole.slice(-1), ...rest.slice(-1)] };
}

/** The keys of the beginnings that are shorter than the whole, the longest first. */
function earlierOf(keys: readonly string[]): string[] {
  return keys.slice(-1 - maxEarlier, -1).reverse();
}

function isNotSystem({ role }: Message): boolean {
  return role !== "system" && role !== "developer";
}

function sessionKeys(
  session: string,
  agent: string | undefined,
  messages: readonly Message[],
  isForTitle: boolean,
): ConversationKeys {
  if (agent !== undefined) {
    const key = `session ${session} agent ${agent}`;
    return { earlier: [key], own: [key] };
  }
  const firstOther = messages.findIndex(isNotSystem);
  const leading = messages.slice(0, firstOther === -1 ? messages.length : firstOther);
  const prompt = `session ${session} prompt ${prefixKeys(leading, "").at(-1) ?? ""}`;
  // It may have the same first message as the conversation that it is about.
  if (isForTitle) return { earlier: [prompt], own: [prompt] };
  const rest = prefixKeys(messages.filter(isNotSystem), `session ${session} messages`);
  return { earlier: [prompt, ...earlierOf(rest)], own: [prompt, ...rest.slice(-1)] };
}

/**
 * The agent of a session that sent a request. Sources: Claude Code 2.1.233 sends `x-claude-code-agent-id` for its sub-agents only; Codex
 * 0.169 sends a `thread-id` always, which is the session's id for its first agent.
 */
function agentOf(header: (name: string) => string | undefined): { id: string | undefined; isSubagent: boolean } {
  const claude = header("x-claude-code-agent-id");
  if (claude !== undefined) return { id: claude, isSubagent: true };
  const codex = header("thread-id");
  return { id: codex, isSubagent: codex !== undefined && codex !== header("session-id") };
}

/** The number of characters of a system prompt that are searched for the word "title". */
const titleLength = 2000;

/** A request for the title of a session: without tools, and with a system prompt about a title. Sources: Claude Code 2.1.233, opencode. */
function isTitle({ tools }: Partial<GenerationRequest>, messages: readonly Message[]): boolean {
  if (tools && tools.length > 0) return false;
  const system = messages.filter((message) => !isNotSystem(message));
  return system.some(({ content }) =>
    textsOf(content).some((text) =>
      /\b(?:generate|create|write)\b[^.\n]{0,80}\btitles?\b|\btitle generator\b/i.test(text.slice(0, titleLength)),
    ),
  );
}

/** The first product in the header `user-agent`, such as `claude-cli/2.1.330` or `OpenAI/Python 2.1.0`; all browsers begin with `Mozilla`. */
function clientOf(agent: string | undefined, mask: Mask): { readonly client?: string } {
  if (agent?.startsWith("Mozilla/")) return { client: "browser" };
  const product = productOf(agent);
  return product === undefined ? {} : { client: mask.text(product) };
}

/** A key of each beginning of the messages, the shortest first. */
function prefixKeys(messages: readonly Message[], kind: string): string[] {
  const hash = [0x811c9dc5, 0x9e3779b9];
  return messages.map((message) => {
    for (const text of distinctiveTexts(message)) addTo(hash, text);
    return `${kind} ${hash.join(" ")}`;
  });
}

/** Texts of a message that stay the same when a client sends it again: clients drop reasoning, and move marks for caches. */
function distinctiveTexts({ role, content }: Message): string[] {
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : (content ?? []);
  return [
    `\0${role}`,
    ...parts.flatMap((part) => {
      // Claude Code 2.1 begins its system prompt with a line that differs from request to request.
      if (part.type === "text") return part.text.startsWith("x-anthropic-billing-header:") ? [] : [part.text];
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
function snippetOf({ prompt }: Partial<GenerationRequest>, mask: Mask): Pick<LineFacts, "snippet" | "snippetOf"> {
  if (prompt?.kind === "text") {
    const [first] = prompt.prompts;
    return typeof first === "string" ? { snippet: shortened(first, mask), snippetOf: "user" } : {};
  }
  for (const message of prompt?.messages.toReversed() ?? []) {
    if (message.role !== "user" && message.role !== "tool") continue;
    const last = textsOf(message.content).findLast(isWritten);
    if (last !== undefined) return { snippet: shortened(last, mask), snippetOf: message.role };
  }
  return {};
}

/** The beginning of the user's first text. */
function topicOf(messages: readonly Message[], mask: Mask): { readonly topic?: string } {
  for (const { role, content } of messages) {
    const text = role === "user" ? textsOf(content).find(isWritten) : undefined;
    if (text !== undefined) return { topic: shortened(text, mask) };
  }
  return {};
}

function textsOf(content: unknown): string[] {
  if (typeof content === "string") return [content];
  return Array.isArray(content)
    ? content.flatMap((part: unknown) => (isObject(part) && typeof part["text"] === "string" ? [part["text"]] : []))
    : [];
}

/**
 * Whether the user wrote the text, or a tool. Else the client did. Sources: Claude Code 2.1 (`<system-reminder>`), Codex 0.169
 * (`<environment_context>`) and 0.101 (`<user_instructions>`, `# AGENTS.md instructions`).
 */
function isWritten(text: string): boolean {
  return !/^\s*(?:$|<(?:system-reminder|environment_context|user_instructions)>|# AGENTS\.md instructions)/.test(text);
}

/** Masks before it shortens: a secret that is cut would not be found. */
function shortened(text: string, mask: Mask): string {
  const line = mask.text(text.trimStart().slice(0, readLength)).replace(/\s+/g, " ").trimEnd();
  return line.length <= snippetLength ? line : `${line.slice(0, snippetLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
