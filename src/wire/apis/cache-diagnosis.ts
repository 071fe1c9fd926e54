import type * as z from "zod";
import { digestJson, digestText } from "../core/digest.ts";
import { tokensInCharacters } from "../core/estimate-tokens.ts";
import { beginningsOf, isSystem, outlineMessages } from "../core/prompt-outline.ts";
import type { OutlinedMessage } from "../core/prompt-outline.ts";
import type { ChatPrompt } from "../core/request.ts";
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

/** The fingerprint of a request: its settings, and the outline of its prompt. */
export interface Fingerprint extends PromptBeginning {
  /** The messages after those of the system. */
  readonly conversation: readonly OutlinedMessage[];
}

/** A fingerprint as it is stored: about 1 KB for a conversation of 5,000 messages. The names of the members are those of the stored text. */
export interface StoredFingerprint extends PromptBeginning {
  /** Of groups of messages (`groupsOf`). */
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

/** The number of messages at the end of a conversation whose digests are stored one by one. */
const singleMessages = 16;

/** Computes the fingerprint of a request, in steps. */
export function* fingerprint({ settings, tools, prompt }: ComparedRequest): Steps<Fingerprint> {
  const digests: { [Name in Setting]?: string } = {};
  for (const [name, value] of Object.entries(settings))
    if (value !== undefined && value !== null) digests[name as Setting] = (yield* digestJson(value)).value;
  const declared = yield* digestJson(tools ?? []);
  const messages = yield* outlineMessages(prompt.messages);
  const systemEnd = messages.findIndex((message) => !isSystem(message));
  const end = systemEnd === -1 ? messages.length : systemEnd;
  const conversation = messages.slice(end);
  // The answer to this request continues the last message, so the next request has a longer one.
  if (prompt.template.continueFinalMessage === true) conversation.pop();
  return {
    settings: digests,
    tools: [declared.value, tools === undefined || tools === null ? 0 : tokensInCharacters(declared.length)],
    system: groupOf(messages.slice(0, end)),
    conversation,
  };
}

/** Returns the form of a fingerprint that is stored. */
export function storedFingerprint({ settings, tools, system, conversation }: Fingerprint): StoredFingerprint {
  const messages = groupsOf(conversation.length).map(([start, end]) => groupOf(conversation.slice(start, end)));
  return { settings, tools, system, messages, count: conversation.length };
}

/**
 * Returns the first and the last index of the groups of a conversation: of one message each at its end, and of more with the distance from
 * it. Most divergences are near the end, and a conversation that stores the fingerprint of each turn takes little space.
 */
function groupsOf(count: number): (readonly [start: number, end: number])[] {
  const groups: (readonly [number, number])[] = [];
  for (let end = count; end > 0;) {
    const after = count - end;
    const start = Math.max(0, end - (after < singleMessages ? 1 : after >> 1));
    groups.push([start, end]);
    end = start;
  }
  return groups.reverse();
}

function groupOf(messages: readonly OutlinedMessage[]): Part {
  const digests = messages.map(({ digest }) => digest).join(" ");
  return [messages.length === 1 ? digests : digestText(digests), sumOf(messages)];
}

function sumOf(messages: readonly { readonly tokens: number }[]): number {
  return messages.reduce((sum, { tokens }) => sum + tokens, 0);
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
  const isSame = (part: "tools" | "system"): boolean => earlier[part][0] === later[part][0];
  const groups = earlier.messages.map(([, tokens]) => ({ tokens }));
  const [, toolTokens] = earlier.tools;
  const reusableTokens = toolTokens + earlier.system[1] + sumOf(groups);
  const group = divergingGroup(earlier, later);
  const afterGroup = typeof group === "number" ? sumOf(groups.slice(group)) : group;
  /** The tokens that are missed if a part differs; null if it is the same. */
  const missed = (part: ComparedPart): number | "unavailable" | null => {
    if (part === "messages") return afterGroup;
    if (part === "tools") return isSame("tools") ? null : reusableTokens;
    if (part === "system") return isSame("system") ? null : reusableTokens - (isSame("tools") ? toolTokens : 0);
    if (later.settings[part] === earlier.settings[part]) return null;
    if (part !== "compaction") return reusableTokens;
    return later.settings.compaction !== undefined && typeof afterGroup === "number" ? afterGroup : null;
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

/** Returns the index of the first group of messages that differs, or null if none does. */
function divergingGroup(
  { messages: groups, count }: StoredFingerprint,
  { conversation }: Fingerprint,
): number | "unavailable" | null {
  for (const [index, [start, end]] of groupsOf(count).entries()) {
    const message = conversation[start];
    if (!message) return null;
    if (end > conversation.length) return "unavailable";
    const digest = groups[index]?.[0] ?? "";
    // A client may append parts to its last message.
    const isSame =
      end === count
        ? beginningsOf(message.parts).includes(digest)
        : groupOf(conversation.slice(start, end))[0] === digest;
    if (!isSame) return index;
  }
  return null;
}

/**
 * Begins to compare a request with an earlier one, whose fingerprint is read while the request is answered: the answer never waits for it.
 * `earlier`: undefined if there is no fingerprint. The returned function gives the result so far; it scales the estimates by the tokens of
 * the prompt, where they are counted.
 */
export function compareWith<Reason extends string>(
  earlier: Promise<StoredFingerprint | undefined>,
  later: Fingerprint,
  reasons: Reasons<Reason>,
): (promptTokens: number | undefined) => Comparison<Reason> {
  let result: Comparison<Reason> = "pending";
  earlier
    .then((found) => (result = found === undefined ? "not-found" : compareFingerprints(found, later, reasons)))
    .catch(() => (result = "unavailable"));
  const tokens = later.tools[1] + later.system[1] + sumOf(later.conversation);
  return (promptTokens = 0) => {
    if (result === null || typeof result !== "object") return result;
    const { reason, reusableTokens, missedTokens } = result;
    const scale = promptTokens > 0 && tokens > 0 ? promptTokens / tokens : 1;
    return {
      reason,
      reusableTokens: Math.round(reusableTokens * scale),
      missedTokens: Math.round(missedTokens * scale),
    };
  };
}
