import type { CacheMiss } from "../core/cache-miss.ts";
import { assistantParts } from "../core/message.ts";
import type { AssistantPart, ContentPart, Message } from "../core/message.ts";
import {
  billingHeader,
  changingParts,
  isSystem,
  movedMessages,
  sameMessage,
  toolsCause,
} from "../core/prompt-parts.ts";
import type { ChangingPart, FoundCause, PromptMessage, ToolMark } from "../core/prompt-parts.ts";
import type { GenerationRequest } from "../core/request.ts";
import { StepCounter } from "../core/steps.ts";
import type { Steps } from "../core/steps.ts";
import { addJson, Digest, inPrompt } from "./cache-diagnosis.ts";
import { estimateTokens, tokensInCharacters } from "../core/estimate-tokens.ts";

/*
 * Says why a source reports few cached tokens: compares digests of the parts of a request with those of earlier requests. No text is kept.
 */

/** The digests of a request's parts, with estimates of their tokens. */
export interface PromptDigest {
  readonly tools: readonly ToolMark[];
  readonly toolTokens: number;
  readonly messages: readonly DigestedMessage[];
  /** The settings that change how a prompt is written: the reasoning and the choice of tools. */
  readonly options: string;
}

interface DigestedMessage extends PromptMessage {
  readonly path: string;
  readonly tokens: number;
  /** Of the text without what software changes with each request, of system messages and the first other message. */
  readonly masked?: Readonly<Record<ChangingPart, string>>;
  /** Of the lines of a system message. */
  readonly lines?: ReadonlySet<string>;
}

/** A request that was sent. */
interface SentPrompt {
  readonly digest: PromptDigest;
  readonly scope: string;
  /** In milliseconds. */
  readonly at: number;
  /** The server that got it. */
  readonly server: string;
  readonly size: number;
  /** As the source counted them. */
  promptTokens?: number;
}

/** What a source reported of a request. */
export interface ReportedCache {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** Conversations with more messages are not compared. */
const maxMessages = 5000;
/** The requests of one owner and model that are remembered, and the messages of all requests together: about 10 MB. */
const maxPerScope = 32;
const maxSize = 100_000;
/** Shorter beginnings are not cached by every vendor: OpenAI and Anthropic cache from 1,024 tokens. */
const minReusable = 1024;
/** Caches keep blocks of tokens, so a few more than the new ones are always processed: 10 %, or 256. */
const minMissedShare = 0.1;
const minMissed = 256;
/** How long caches of vendors keep a prompt by default: five minutes. Source: Anthropic's and OpenAI's guides to prompt caching. */
const keptMs = 5 * 60_000;
/** The characters of a message in which changing parts are searched for. */
const maxMasked = 64 * 1024;

/** Digests the parts of a conversation, in steps; undefined for a text and for a conversation that is too long. */
export function* digestPrompt(request: GenerationRequest): Steps<PromptDigest | undefined> {
  const { prompt, tools = [], reasoning, toolChoice } = request;
  if (prompt.kind !== "chat" || prompt.messages.length > maxMessages) return undefined;
  const pace = new StepCounter();
  const marks: ToolMark[] = [];
  let toolTokens = 0;
  for (const { name, description, parameters, inputGrammar } of tools) {
    const { value, length } = yield* digestOf([description ?? "", parameters ?? null, inputGrammar ?? null]);
    marks.push({ name: new Digest().add(name).value, definition: value });
    toolTokens += tokensInCharacters(length + name.length);
    if (pace.endsStep()) yield;
  }
  const messages: DigestedMessage[] = [];
  for (const [index, message] of prompt.messages.entries()) {
    const isFirst = !isSystem(message) && messages.every(isSystem);
    messages.push(yield* digestMessage(message, index, isSystem(message) || isFirst));
    if (pace.endsStep()) yield;
  }
  const options = yield* digestOf([reasoning ?? null, toolChoice ?? null]);
  return { tools: marks, toolTokens, messages, options: options.value };
}

function* digestMessage(message: Message, index: number, isMasked: boolean): Steps<DigestedMessage> {
  const { role } = message;
  const parts: readonly (AssistantPart | ContentPart)[] =
    message.role === "assistant" ? assistantParts(message) : partsOf(message.content);
  const isReasoning = (part: { readonly type: string }): boolean => part.type === "reasoning";
  const text = yield* digestOf(parts.filter((part) => !isReasoning(part)).map(inPrompt));
  const reasoning = yield* digestOf(parts.filter(isReasoning).map(inPrompt));
  const words = isMasked ? wordsOf(parts).slice(0, maxMasked) : "";
  return {
    role,
    path: message.path ?? `messages[${index}]`,
    text: text.value,
    reasoning: reasoning.value,
    tokens: estimateTokens({ prompt: { kind: "chat", messages: [message], template: {} } }),
    ...(isMasked && { masked: maskedDigests(words) }),
    ...(isSystem(message) && {
      lines: new Set(
        words
          .split("\n")
          .filter((line) => line.length > 1)
          .map(digestText),
      ),
    }),
  };
}

function partsOf(content: Exclude<Message, { role: "assistant" }>["content"]): readonly ContentPart[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

function wordsOf(parts: readonly object[]): string {
  return parts.map((part) => ("text" in part && typeof part.text === "string" ? part.text : "")).join("\n");
}

/** The digests of a text from which one kind of changing text was removed. */
function maskedDigests(text: string): Record<ChangingPart, string> {
  const masked = (patterns: readonly RegExp[]): string =>
    digestText(patterns.reduce((rest, pattern) => rest.replace(pattern, "…"), text));
  const header = text
    .split("\n")
    .filter((line) => !billingHeader.test(line))
    .join("\n");
  const digests: Partial<Record<ChangingPart, string>> = { "billing-header": digestText(header) };
  for (const [kind, patterns] of changingParts) digests[kind] = masked(patterns);
  return digests as Record<ChangingPart, string>;
}

function digestText(text: string): string {
  return new Digest().add(text).value;
}

function* digestOf(value: unknown): Steps<Digest> {
  const digest = new Digest();
  yield* addJson(digest, value);
  return digest;
}

/** A request, compared with an earlier one. */
export interface ComparedPrompt {
  /** How its prompt differs before the end of the earlier one; null: it continues an earlier prompt, or no prompt is like it. */
  readonly broken: BrokenPrefix | null;
  /** Returns why so little of the prompt was cached; null if nothing was missed that an earlier request had put there. */
  missed(reported: ReportedCache): CacheMiss | null;
}

/** Tokens are estimates. */
export interface BrokenPrefix extends FoundCause {
  readonly at: number;
  /** Those of the earlier prompt that follow. */
  readonly missedTokens: number;
}

/** The requests that an upstream got. Each is compared only with earlier ones of the same owner and model. */
export class PromptHistory {
  /** The oldest first. */
  #sent: SentPrompt[] = [];
  #size = 0;

  /** Notes that a request was sent, and compares it with the earlier one that is most like it. `now`: milliseconds. `server`: its URL. */
  sent(
    { owner = "", model }: Pick<GenerationRequest, "owner" | "model">,
    digest: PromptDigest,
    now: number,
    server: string,
  ): ComparedPrompt {
    const scope = JSON.stringify([owner, model]);
    const earlier = this.#nearest(scope, digest);
    const own: SentPrompt = { digest, scope, at: now, server, size: digest.messages.length + digest.tools.length + 1 };
    this.#add(own);
    return {
      broken: earlier ? brokenPrefix(earlier, own) : null,
      missed(reported) {
        own.promptTokens = reported.promptTokens;
        return earlier ? missOf(earlier, own, reported) : null;
      },
    };
  }

  #add(prompt: SentPrompt): void {
    const ofScope = this.#sent.filter(({ scope }) => scope === prompt.scope);
    if (ofScope.length >= maxPerScope) this.#remove(ofScope[0]);
    this.#sent.push(prompt);
    this.#size += prompt.size;
    while (this.#size > maxSize && this.#sent.length > 1) this.#remove(this.#sent[0]);
  }

  #remove(prompt: SentPrompt | undefined): void {
    if (!prompt) return;
    this.#sent = this.#sent.filter((other) => other !== prompt);
    this.#size -= prompt.size;
  }

  /** The earlier request that is most like this one, the latest of them. */
  #nearest(scope: string, digest: PromptDigest): SentPrompt | undefined {
    const texts = new Map(digest.messages.map((message) => [message.text, message.tokens]));
    const [first] = digest.messages;
    let nearest: SentPrompt | undefined;
    let most = 0;
    for (const prompt of this.#sent) {
      if (prompt.scope !== scope) continue;
      let likeness = 0;
      let shared = 0;
      for (const message of prompt.digest.messages) {
        const tokens = texts.get(message.text);
        if (tokens === undefined) continue;
        likeness += tokens;
        if (!isSystem(message)) shared++;
      }
      // Agents send the user's first message also to models that write a title, with another system prompt.
      if (shared < 2 && !sharesSystem(prompt.digest, digest)) continue;
      // A system prompt with another date is the same one.
      const [known] = prompt.digest.messages;
      if (first && known && known.text !== first.text && changedPart(known, first)) likeness += first.tokens;
      if (likeness > 0 && likeness >= most) [nearest, most] = [prompt, likeness];
    }
    return nearest;
  }
}

function sharesSystem({ messages: [known] }: PromptDigest, { messages: [asked] }: PromptDigest): boolean {
  if (!known || !asked || isSystem(known) !== isSystem(asked)) return false;
  if (!isSystem(known) || known.text === asked.text) return true;
  return changedPart(known, asked) !== undefined || sharesLine(known, asked);
}

function brokenPrefix(earlier: SentPrompt, own: SentPrompt): BrokenPrefix | null {
  const { cause, at } = divergenceOf(earlier.digest, own.digest);
  return cause && { ...cause, at, missedTokens: Math.max(0, tokensOf(earlier.digest) - at) };
}

function missOf(earlier: SentPrompt, own: SentPrompt, { promptTokens, cachedTokens }: ReportedCache): CacheMiss | null {
  const estimated = tokensOf(own.digest);
  const scale = estimated > 0 ? promptTokens / estimated : 1;
  const found = divergenceOf(earlier.digest, own.digest);
  const at = Math.min(promptTokens, Math.round(found.at * scale));
  const known = earlier.promptTokens ?? Math.round(tokensOf(earlier.digest) * scale);
  const reusable = Math.min(known, found.cause ? promptTokens : at);
  const missed = reusable - cachedTokens;
  if (reusable < minReusable || missed < Math.max(minMissed, reusable * minMissedShare)) return null;
  if (found.cause) return { ...found.cause, at, cachedTokens, promptTokens };
  const isLate = own.at - earlier.at > keptMs;
  const cause = isLate ? "expired" : own.server !== earlier.server ? "other-server" : "not-cached";
  return { cause, at: cachedTokens, cachedTokens, promptTokens, knownTokens: reusable };
}

/** Where two prompts diverge, in estimated tokens. `cause` null: the later one continues the earlier one, or only its last message is new. */
interface PromptDivergence {
  readonly cause: FoundCause | null;
  readonly at: number;
}

function divergenceOf(known: PromptDigest, asked: PromptDigest): PromptDivergence {
  const tools = toolsCause(known.tools, asked.tools);
  if (tools) return { cause: tools, at: 0 };
  if (known.options !== asked.options) return { cause: { cause: "template-options" }, at: 0 };
  const index = asked.messages.findIndex((message, at) => !sameMessage(message, known.messages[at]));
  const [former, message] = [known.messages[index], asked.messages[index]];
  const at = asked.toolTokens + sum(index === -1 ? asked.messages : asked.messages.slice(0, index));
  if (!former || !message) return { cause: null, at };
  const cause = messageCause(known, asked, index, former, message);
  return { cause: cause && { cause, where: message.path }, at };
}

function messageCause(
  known: PromptDigest,
  asked: PromptDigest,
  index: number,
  former: DigestedMessage,
  message: DigestedMessage,
): FoundCause["cause"] | null {
  const moved = movedMessages(known.messages.slice(index), asked.messages.slice(index));
  if (moved) return moved;
  if (former.role === message.role && former.text === message.text) return "reasoning-dropped";
  const changed = changedPart(former, message);
  if (changed) return changed;
  if (index === asked.messages.length - 1 && !isSystem(message)) return null;
  if (!isSystem(message) && !isSystem(former)) return "message-changed";
  return isSystem(former) && isSystem(message) && !sharesLine(former, message) ? "system-replaced" : "system-changed";
}

function sharesLine(former: DigestedMessage, message: DigestedMessage): boolean {
  return [...(message.lines ?? [])].some((line) => former.lines?.has(line) === true);
}

/** The kind of text that alone differs between two messages. */
function changedPart(former: DigestedMessage, message: DigestedMessage): ChangingPart | undefined {
  const { masked } = message;
  if (!masked || !former.masked || former.role !== message.role) return undefined;
  const kinds: readonly ChangingPart[] = ["billing-header", ...changingParts.map(([kind]) => kind)];
  return kinds.find((kind) => masked[kind] === former.masked?.[kind]);
}

function tokensOf({ toolTokens, messages }: PromptDigest): number {
  return toolTokens + sum(messages);
}

function sum(messages: readonly DigestedMessage[]): number {
  return messages.reduce((total, { tokens }) => total + tokens, 0);
}
