import { createHash } from "node:crypto";

/*
 * The prompt cache of Anthropic's API, as it is charged. Sources:
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching ("How automatic prefix checking works", "What invalidates the
 * cache", "Edge cases") and its pricing table. A token is four characters of a block's JSON.
 */

export type Json = Readonly<Record<string, unknown>>;

export interface PromptUsage {
  readonly input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_creation: { readonly ephemeral_5m_input_tokens: number; readonly ephemeral_1h_input_tokens: number };
}

/** The price of prompts in multiples of the price of an uncached token. */
export function promptPrice(usages: readonly PromptUsage[]): number {
  return usages.reduce((sum, { input_tokens: input, cache_read_input_tokens: read, cache_creation: created }) => {
    const written = created.ephemeral_5m_input_tokens * 1.25 + created.ephemeral_1h_input_tokens * 2;
    return sum + input + read * 0.1 + written;
  }, 0);
}

/** The share of all prompts' tokens that was read from the cache: 0 to 1. */
export function cachedShare(usages: readonly PromptUsage[]): number {
  const read = usages.reduce((sum, usage) => sum + usage.cache_read_input_tokens, 0);
  const all = usages.reduce(
    (sum, usage) => sum + usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
    0,
  );
  return all === 0 ? 0 : read / all;
}

export interface Mark {
  /** "5m" or "1h". */
  readonly ttl: string;
}

/** A block of a prompt: a tool, a block of the system prompt, or a block of a message. */
export interface PromptBlock {
  /** For refusals: `messages.0.content.1`. */
  readonly path: string;
  readonly block: Json;
  readonly mark: Mark | undefined;
  /** What its prefix depends on besides the blocks before it. */
  readonly section: "tools" | "system" | "messages";
  readonly role?: string;
}

const ttlMs: Readonly<Record<string, number>> = { "5m": 300_000, "1h": 3_600_000 };

/** The number of positions that a mark looks at, its own included. */
const lookback = 20;

/** The cache of one account. `minTokens`: shorter prefixes are not cached. */
export class AnthropicCache {
  /** When each prefix is forgotten, in milliseconds. */
  readonly #entries = new Map<string, { ends: number; readonly lifeMs: number }>();
  readonly #minTokens: number;

  constructor(minTokens: number) {
    this.#minTokens = minTokens;
  }

  /** Charges a prompt, and keeps its marked prefixes. `settings`: what invalidates the cache of messages, such as `thinking`. */
  charge(blocks: readonly PromptBlock[], model: unknown, settings: unknown, now: number): PromptUsage {
    const prefixes: { readonly digest: string; readonly tokens: number }[] = [];
    let digest = digestOf("", model);
    let tokens = 0;
    let section: PromptBlock["section"] = "tools";
    for (const one of blocks) {
      if (one.section !== section && one.section === "messages") digest = digestOf(digest, settings);
      section = one.section;
      const text = JSON.stringify([one.section, one.role, withoutMarks(one.block)]);
      digest = digestOf(digest, text);
      tokens += Math.ceil(text.length / 4);
      prefixes.push({ digest, tokens });
    }
    const marked = blocks.flatMap(({ mark }, at) => (mark ? [{ mark, at }] : []));
    let read = 0;
    for (const { at } of marked) {
      for (let position = at; position > at - lookback && position >= 0; position--) {
        const prefix = prefixes[position];
        const entry = prefix && this.#entries.get(prefix.digest);
        if (!prefix || !entry || entry.ends < now) continue;
        entry.ends = now + entry.lifeMs;
        read = Math.max(read, prefix.tokens);
        break;
      }
    }
    const created = { "5m": 0, "1h": 0 };
    let cached = read;
    for (const { mark, at } of marked) {
      const prefix = prefixes[at];
      if (!prefix || prefix.tokens < this.#minTokens || prefix.tokens <= read) continue;
      const lifeMs = ttlMs[mark.ttl] ?? 0;
      this.#entries.set(prefix.digest, { ends: now + lifeMs, lifeMs });
      created[mark.ttl === "1h" ? "1h" : "5m"] += prefix.tokens - cached;
      cached = prefix.tokens;
    }
    return {
      input_tokens: tokens - cached,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: cached - read,
      cache_creation: { ephemeral_5m_input_tokens: created["5m"], ephemeral_1h_input_tokens: created["1h"] },
    };
  }
}

function digestOf(before: string, value: unknown): string {
  return createHash("sha256")
    .update(before)
    .update(JSON.stringify(value) ?? "")
    .digest("base64");
}

/** Marks are no part of the prompt, and a text is the same as a string or as a block. */
function withoutMarks(value: Json): Json {
  const { cache_control: _, content, ...rest } = value;
  if (content === undefined) return rest;
  const blocks: unknown[] = typeof content === "string" ? [{ type: "text", text: content }] : (content as unknown[]);
  return { ...rest, content: Array.isArray(blocks) ? blocks.map((block) => withoutMarks(block as Json)) : blocks };
}
