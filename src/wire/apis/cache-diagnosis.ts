import type * as z from "zod";
import { estimateTokens, tokensInCharacters } from "../core/estimate-tokens.ts";
import { jsonChunks } from "../core/json-chunks.ts";
import { assistantParts } from "../core/message.ts";
import type { AssistantPart, ContentPart, Message } from "../core/message.ts";
import type { ChatPrompt } from "../core/request.ts";
import { runSync, StepCounter } from "../core/steps.ts";
import type { Steps } from "../core/steps.ts";
import type { messageDiagnostics } from "./messages/schema.ts";
import type { CacheDiagnostics } from "./responses/schema.ts";

/*
 * Compares a request with an earlier one, to say where their prompts diverge: Anthropic's and OpenAI's cache diagnostics. What is compared
 * are requests, not what a cache contained. Source: https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics,
 * https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics.
 */

/** A setting that an API compares. `compaction`: of the items that replace a part of the conversation. */
type Setting = "model" | "tier" | "cacheKey" | "format" | "effort" | "verbosity" | "others" | "compaction";
type ComparedPart = Setting | "tools" | "system" | "messages";

/** The reasons of each API, in the order in which they are reported. Only the first one is. */
export const cacheMissReasons = {
  messages: [
    ["model", "model_changed"],
    ["system", "system_changed"],
    ["tools", "tools_changed"],
    ["others", "unavailable"],
    ["messages", "messages_changed"],
  ],
  responses: [
    ["model", "model_changed"],
    ["tier", "service_tier_changed"],
    ["cacheKey", "prompt_cache_key_changed"],
    ["tools", "tools_changed"],
    ["format", "text_format_changed"],
    ["effort", "reasoning_effort_changed"],
    ["verbosity", "verbosity_changed"],
    ["compaction", "context_compacted"],
    ["system", "input_changed"],
    ["messages", "input_changed"],
  ],
} as const satisfies {
  readonly messages: Reasons<NonNullable<MessageDiagnostics["cache_miss_reason"]>["type"]>;
  readonly responses: Reasons<NonNullable<CacheDiagnostics["reason"]>>;
};

type MessageDiagnostics = z.infer<typeof messageDiagnostics>;
type Reasons<Reason extends string> = readonly (readonly [ComparedPart, Reason])[];

/** What is compared of a request. */
export interface ComparedRequest {
  /** By name, as JSON; null means the same as undefined. */
  readonly settings: { readonly [Name in Setting]?: unknown };
  /** As JSON; the order of members counts. */
  readonly tools: unknown;
  readonly prompt: ChatPrompt;
}

/** A digest, and an estimate of the tokens. */
type Part = readonly [digest: string, tokens: number];

interface PromptBeginning {
  readonly settings: { readonly [Name in Setting]?: string };
  readonly tools: Part;
  /** The system messages that the prompt begins with. */
  readonly system: Part;
}

/** A message's digests: of its beginnings, the last one of the whole; and of the blocks of messages that it is the last one of. */
interface DigestedMessage {
  readonly digests: readonly string[];
  readonly tokens: number;
  /** Of 2, 4, 8 … messages, each with its first message, by which it is recognized. */
  readonly blocks: { readonly first: Message; readonly part: Part }[];
}

/** The fingerprint of a request: digests and estimates. */
export interface Fingerprint extends PromptBeginning {
  /** The messages after those of the system; each has its digests in `digested`. */
  readonly conversation: readonly Message[];
  /** An estimate for the whole prompt. */
  readonly tokens: number;
}

/** A fingerprint as it is stored. Its size has a limit. The names of the members are those of the stored text. */
export interface StoredFingerprint extends PromptBeginning {
  /** Of groups of messages (`groupStarts`). */
  readonly messages: readonly Part[];
  /** The number of messages. */
  readonly count: number;
}

/** Where the prompts of two requests diverge. */
export interface Divergence<Reason extends string> {
  readonly reason: Reason;
  /** The tokens of the earlier prompt, and those of them that follow the divergence. */
  readonly reusableTokens: number;
  readonly missedTokens: number;
}

/** "unavailable": the fingerprints do not say whether the prompts diverge. null: they do not. */
export type Comparison<Reason extends string> = Divergence<Reason> | "pending" | "not-found" | "unavailable" | null;

/** The number of characters that are digested in one step. */
const chunkSize = 64 * 1024;
/** The number of messages at the end of a conversation whose digests are stored one by one. */
const singleMessages = 16;

/**
 * Messages that were digested. The history of a chain of responses has the same objects in each request; one that changes has others from
 * the change on, so the first and the last message of a block identify it.
 */
const digested = new WeakMap<Message, DigestedMessage>();

/** Computes the fingerprint of a request, in steps. */
export function* fingerprint({ settings, tools, prompt }: ComparedRequest): Steps<Fingerprint> {
  const digests: { [Name in Setting]?: string } = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined || value === null) continue;
    digests[name as Setting] = (yield* digestOf(value)).value;
  }
  const declared = yield* digestOf(tools ?? []);
  const { messages, template } = prompt;
  const systemEnd = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const [system, conversation] =
    systemEnd === -1 ? [messages, []] : [messages.slice(0, systemEnd), messages.slice(systemEnd)];
  // The answer to this request continues the last message, so the next request has a longer one.
  if (template.continueFinalMessage === true) conversation.pop();
  const instructions = yield* digestOf(system.map(partsOf));
  const pace = new StepCounter();
  let conversationTokens = 0;
  for (const [start, size] of groupsOf(conversation.length))
    conversationTokens += (yield* blockOf(conversation, start, size, pace))[1];
  const toolTokens = tools === undefined || tools === null ? 0 : tokensInCharacters(declared.length);
  const systemTokens = system.length === 0 ? 0 : tokensOf(system);
  return {
    settings: digests,
    tools: [declared.value, toolTokens],
    system: [instructions.value, systemTokens],
    conversation,
    tokens: toolTokens + systemTokens + conversationTokens,
  };
}

/** Returns the form of a fingerprint that is stored: about 1 KB for a conversation of 5,000 messages. */
export function storedFingerprint({ settings, tools, system, conversation }: Fingerprint): StoredFingerprint {
  const messages = groupsOf(conversation.length).map(([start, size]) => partOf(conversation, start, size));
  return { settings, tools, system, messages, count: conversation.length };
}

/**
 * Returns the groups of a conversation, as the index of the first message and the number of messages: of one message each at its end, and
 * of more with the distance from it. Most divergences are near the end, and a conversation that stores the fingerprint of each turn takes
 * little space. A group begins at a multiple of its size, a power of 2, so a conversation that grows combines the digests of earlier groups.
 */
function groupsOf(count: number): (readonly [start: number, size: number])[] {
  const groups: (readonly [number, number])[] = [];
  for (let end = count; end > 0;) {
    const after = count - end;
    let size = 1;
    if (after >= singleMessages) while (end % (2 * size) === 0 && 2 * size <= after) size *= 2;
    end -= size;
    groups.push([end, size]);
  }
  return groups.reverse();
}

/** Digests the messages from `start` on in steps, unless they were digested before. `size`: a power of 2. */
function* blockOf(messages: readonly Message[], start: number, size: number, pace: StepCounter): Steps<Part> {
  const last = messages[start + size - 1];
  const first = messages[start];
  if (!last || !first) throw new RangeError("expected a block within the conversation");
  let entry = digested.get(last);
  if (size === 1) {
    if (!entry) {
      entry = { digests: yield* digestsOf(last, pace), tokens: tokensOf([last]), blocks: [] };
      digested.set(last, entry);
      if (pace.endsStep()) yield;
    }
    return [entry.digests.at(-1) ?? "", entry.tokens];
  }
  const level = Math.log2(size) - 1;
  const known = entry?.blocks[level];
  if (known?.first === first) return known.part;
  const half = size / 2;
  const before = yield* blockOf(messages, start, half, pace);
  const after = yield* blockOf(messages, start + half, half, pace);
  const part: Part = [new Digest().add(`${before[0]} ${after[0]}`).value, before[1] + after[1]];
  const blocks = digested.get(last)?.blocks;
  if (blocks) blocks[level] = { first, part };
  if (pace.endsStep(1 / 16)) yield;
  return part;
}

function partOf(messages: readonly Message[], start: number, size: number): Part {
  return runSync(blockOf(messages, start, size, new StepCounter()));
}

/**
 * Returns where the prompt of `later` diverges from that of `earlier`. A prompt that begins with the whole earlier one does not diverge,
 * nor does one that the earlier prompt begins with: a cache would contain all of it.
 */
export function compareFingerprints<Reason extends string>(
  earlier: StoredFingerprint,
  later: Fingerprint,
  reasons: Reasons<Reason>,
): Divergence<Reason> | "unavailable" | null {
  const same = (one: string | undefined, other: string | undefined) => one === other;
  const messages = earlier.messages.map(([, tokens]) => tokens);
  const sameTools = same(earlier.tools[0], later.tools[0]);
  const reusableTokens = sum([earlier.tools[1], earlier.system[1], ...messages]);
  const at = divergingMessage(earlier, later);
  /** The tokens that are missed if a part differs; null if it is the same. */
  const missed = (part: ComparedPart): number | "unavailable" | null => {
    switch (part) {
      case "tools":
        return sameTools ? null : reusableTokens;
      case "system":
        if (same(earlier.system[0], later.system[0])) return null;
        return sameTools ? reusableTokens - earlier.tools[1] : reusableTokens;
      case "messages":
        return typeof at === "number" ? sum(messages.slice(at)) : at;
      case "compaction": {
        const { compaction } = later.settings;
        const isNew = compaction !== undefined && !same(compaction, earlier.settings.compaction);
        return isNew && typeof at === "number" ? sum(messages.slice(at)) : null;
      }
      default:
        return same(earlier.settings[part], later.settings[part]) ? null : reusableTokens;
    }
  };
  for (const [part, reason] of reasons) {
    const missedTokens = missed(part);
    if (missedTokens === null) continue;
    return missedTokens === "unavailable" || reason === "unavailable"
      ? "unavailable"
      : { reason, reusableTokens, missedTokens };
  }
  return null;
}

/** A comparison with an earlier request, whose fingerprint is read while the request is answered. The answer never waits for it. */
export class CacheComparison<Reason extends string> {
  readonly #later: Fingerprint;
  #result: Comparison<Reason> = "pending";

  /** `earlier`: undefined if there is no fingerprint. */
  constructor(earlier: Promise<StoredFingerprint | undefined>, later: Fingerprint, reasons: Reasons<Reason>) {
    this.#later = later;
    earlier
      .then((found) => (this.#result = found === undefined ? "not-found" : compareFingerprints(found, later, reasons)))
      .catch(() => (this.#result = "unavailable"));
  }

  /** `promptTokens`: the tokens of the prompt, where they are counted. The result is then scaled, since it is estimated. */
  result(promptTokens: number | undefined): Comparison<Reason> {
    const result = this.#result;
    if (result === null || typeof result !== "object" || promptTokens === undefined) return result;
    const { tokens } = this.#later;
    const scale = promptTokens > 0 && tokens > 0 ? promptTokens / tokens : 1;
    return {
      reason: result.reason,
      reusableTokens: Math.round(result.reusableTokens * scale),
      missedTokens: Math.round(result.missedTokens * scale),
    };
  }
}

/** Returns the index of the first group of messages that differs, or null if none does. */
function divergingMessage(
  { messages: groups, count }: StoredFingerprint,
  { conversation }: Fingerprint,
): number | "unavailable" | null {
  for (const [index, [start, size]] of groupsOf(count).entries()) {
    const message = conversation[start];
    if (!message) return null;
    if (start + size > conversation.length) return "unavailable";
    const digest = groups[index]?.[0] ?? "";
    const [own] = partOf(conversation, start, size);
    // The last message may have got further parts.
    const isSame =
      own === digest || (start + size === count && digested.get(message)?.digests.includes(digest) === true);
    if (!isSame) return index;
  }
  return null;
}

/** Returns the digests of a message without parts, with its first part, and so on: a client may append parts to its last message. */
function* digestsOf(message: Message, pace: StepCounter): Steps<string[]> {
  const [head, ...parts] = partsOf(message);
  const digest = yield* digestOf(head);
  const digests = [digest.value];
  for (const part of parts) {
    yield* addJson(digest, part);
    digests.push(digest.value);
    if (pace.endsStep()) yield;
  }
  return digests;
}

/** Returns what is compared of a message: without the ids and paths that no prompt contains, with a text as its only part. */
function partsOf(message: Message): unknown[] {
  const { role, name } = message;
  const head = { role, name, ...(role === "tool" && { isError: message.isError }) };
  if (role === "assistant") return [head, ...assistantParts(message).map(inPrompt)];
  const { content } = message;
  return [head, ...(typeof content === "string" ? [{ type: "text", text: content }] : content.map(inPrompt))];
}

/**
 * Returns a part without what no prompt contains: marks of what is to be cached, which clients move, states, which some clients do not return,
 * and ids, which servers may count.
 */
export function inPrompt(part: AssistantPart | ContentPart): object {
  const { cacheMinutes: _, id, state: __, ...rest } = part as AnyPart;
  return part.type === "file" && id !== undefined ? { ...rest, id } : rest;
}

interface AnyPart {
  readonly cacheMinutes?: number;
  readonly id?: string;
  readonly state?: unknown;
}

function tokensOf(messages: readonly Message[]): number {
  return estimateTokens({ prompt: { kind: "chat", messages, template: {} } });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function* digestOf(value: unknown): Steps<Digest> {
  const digest = new Digest();
  yield* addJson(digest, value);
  return digest;
}

/** Adds the JSON of a value to a digest, in steps. */
export function* addJson(digest: Digest, value: unknown): Steps<void> {
  let isFirst = true;
  for (const chunk of jsonChunks(value, chunkSize)) {
    if (!isFirst) yield;
    isFirst = false;
    digest.add(chunk);
  }
}

/** A digest of 64 bits, which is not cryptographic: a client can only deceive itself. Source: cyrb53 by bryc, public domain. */
export class Digest {
  /** In characters. */
  length = 0;
  #high = 0xdeadbeef;
  #low = 0x41c6ce57;

  add(text: string): this {
    let [high, low] = [this.#high, this.#low];
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      high = Math.imul(high ^ unit, 2654435761);
      low = Math.imul(low ^ unit, 1597334677);
    }
    [this.#high, this.#low] = [high, low];
    this.length += text.length;
    return this;
  }

  get value(): string {
    const [high, low] = [this.#high, this.#low];
    const mixed = (one: number, other: number) =>
      Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909);
    return [mixed(high, low), mixed(low, high)].map((half) => (half >>> 0).toString(36)).join("-");
  }
}
