import { keepAliveMs } from "../../wire/apis/ollama/request.ts";
import { cacheMinutesOf } from "../../wire/apis/request/cache-mark.ts";
import type { Usage } from "../../wire/core/events.ts";
import { Digest } from "../../wire/core/digest.ts";
import { isObject } from "../../wire/core/json.ts";
import type { Api, Json } from "./facts.ts";
import type { FactFinding } from "./finding.ts";

/** By which rules a vendor finds the beginning of a prompt in its cache. Sizes are in tokens. */
interface CacheRules {
  /** A shorter prompt is not cached. */
  readonly least: number;
  /** What is found is a multiple of this. */
  readonly step: number;
  /** Only what ends with a mark is cached, and found from this number of blocks before a mark of the later request. */
  readonly lookback?: number;
  /** How long a prompt stays in the cache since it was last read, and since it was written, in minutes. */
  readonly idle: number;
  readonly most?: number;
}

/**
 * Sources: https://developers.openai.com/api/docs/guides/prompt-caching ("Prompt cache retention": in memory for 5 to 10 minutes without a
 * request, an hour at most; `24h`; `prompt_cache_options.ttl`, by default 30 minutes; marks by `mode: "explicit"`, the latest 80).
 */
function openai(body: Json): CacheRules {
  const { prompt_cache_options: options, prompt_cache_retention: retention } = body;
  const { mode, ttl = "30m" } = isObject(options) ? options : {};
  const minutes = cacheMinutesOf({ prompt_cache_breakpoint: { ttl } }) ?? 0;
  if (mode === "explicit") return { least: 1024, step: 1, lookback: 80, idle: minutes };
  if (retention === "in_memory" || retention === "in-memory") return { least: 1024, step: 128, idle: 5, most: 60 };
  return { least: 1024, step: 128, idle: retention === "24h" ? 24 * 60 : minutes };
}

/**
 * Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching ("Cache limitations", "Automatic prefix checking": most
 * models; some need 2,048 or 4,096 tokens; 5 minutes or an hour by the mark, anew with each use); https://ai.google.dev/gemini-api/docs/caching,
 * "Implicit caching" (Flash; how long is not said). Ollama has the prompt of the last request of a slot until it unloads the model.
 */
const cacheRules: Readonly<Record<Api, (body: Json) => CacheRules>> = {
  chat: openai,
  responses: openai,
  messages: () => ({ least: 1024, step: 1, lookback: 20, idle: 5 }),
  gemini: () => ({ least: 1024, step: 1, idle: Infinity }),
  ollama: ({ keep_alive: keepAlive }) => {
    const isKnown = typeof keepAlive === "string" || typeof keepAlive === "number";
    return { least: 0, step: 1, idle: (keepAliveMs(isKnown ? keepAlive : undefined) ?? 300_000) / 60_000 };
  },
};

/** Prices in dollars for a million tokens of the prompt: those that are read, and those that are read from a cache. */
export interface Prices {
  readonly input: number;
  readonly cached: number;
}

/** About this number of characters is a token. */
const charactersPerToken = 4;

/** A part of the prompt, without its mark. */
interface Block {
  readonly text: string;
  /** How long its mark keeps the prompt up to it, in minutes; undefined: it has no mark. */
  readonly minutes: number | undefined;
  /** Thinking takes none. */
  readonly takesMark: boolean;
  /** What it depends on besides the blocks before it. */
  readonly section: "tools" | "system" | "messages";
}

/** About how many tokens the prompt of a request has. */
export function promptTokensOf(body: Json): number {
  return tokensIn(promptBlocks(body));
}

/** About how many tokens of the prompt of `later` the vendor reads from its cache, if it has answered `earlier` some seconds before. */
export function cachedTokens(api: Api, earlier: Json, later: Json): number {
  const cache = new PromptCache(api);
  cache.charge(earlier, 0);
  return cache.charge(later, 0).read;
}

/** What the vendor charges for a prompt, in tokens. */
export interface PromptCharge {
  readonly total: number;
  /** Read from the cache. */
  readonly read: number;
  /** Written to it, for an hour and for a shorter time. `total` without `read` and both is neither. */
  readonly written: { readonly hour: number; readonly short: number };
}

/** The usage that a vendor reports for such a prompt. */
export function usageOf({ total, read, written }: PromptCharge, completionTokens: number): Usage {
  const writes = written.hour + written.short;
  const details = {
    ...(read > 0 && { cached_tokens: read }),
    ...(writes > 0 && { cache_write_tokens: writes }),
  };
  const promptDetails = read + writes > 0 && { promptDetails: details };
  return { promptTokens: total, completionTokens, ...promptDetails };
}

/** The prompt cache of one of the vendor's accounts. `least`: shorter prompts are not cached; default: as the vendor's models. */
export class PromptCache {
  readonly #api: Api;
  readonly #least: number | undefined;
  /** By the digests of prompts, in milliseconds. */
  readonly #entries = new Map<string, { ends: number; readonly idle: number; readonly last: number }>();

  constructor(api: Api, least?: number) {
    this.#api = api;
    this.#least = least;
  }

  /** Charges a prompt, and keeps it. `now`: in milliseconds. */
  charge(body: Json, now: number): PromptCharge {
    const { lookback, step, idle, most = Infinity, ...rules } = cacheRules[this.#api](body);
    const least = this.#least ?? rules.least;
    const blocks = promptBlocks(body);
    // The key decides which server of the vendor is asked.
    const digest = new Digest().add(JSON.stringify([body["model"], body["prompt_cache_key"]]));
    let characters = 0;
    let section: Block["section"] = "tools";
    const prefixes = blocks.map((block) => {
      // What Anthropic's cache of messages depends on, and that of tools and system does not.
      if (block.section !== section && block.section === "messages" && lookback !== undefined)
        digest.add(JSON.stringify([body["thinking"], body["tool_choice"]]));
      section = block.section;
      digest.add(`${section}\n${block.text}\n`);
      characters += block.text.length;
      return { digest: digest.value, tokens: Math.ceil(characters / charactersPerToken) };
    });
    const marked = blocks.flatMap(({ minutes }, at) =>
      lookback === undefined || minutes !== undefined ? [{ at, minutes: lookback === undefined ? idle : minutes }] : [],
    );
    const read = rounded(this.#found(prefixes, marked, lookback, now), least, step);
    const written = { hour: 0, short: 0 };
    let kept = read;
    for (const { at, minutes = idle } of marked) {
      const { tokens = 0, digest: name = "" } = prefixes[at] ?? {};
      if (tokens < least) continue;
      const life = minutes * 60_000;
      const known = this.#entries.get(name);
      const last = known && known.ends >= now ? known.last : now + most * 60_000;
      this.#entries.set(name, { ends: Math.min(now + life, last), idle: life, last });
      if (lookback === undefined || tokens <= kept) continue;
      written[minutes === 60 ? "hour" : "short"] += tokens - kept;
      kept = tokens;
    }
    return { total: prefixes.at(-1)?.tokens ?? 0, read, written };
  }

  /** The tokens of the longest prompt that is found, which lives on. */
  #found(
    prefixes: readonly { readonly digest: string; readonly tokens: number }[],
    marked: readonly { readonly at: number }[],
    lookback = 1,
    now = 0,
  ): number {
    for (const { at } of marked.toReversed()) {
      for (let position = at; position > at - lookback && position >= 0; position--) {
        const { digest = "", tokens = 0 } = prefixes[position] ?? {};
        const entry = this.#entries.get(digest);
        if (!entry || entry.ends < now) continue;
        entry.ends = Math.min(now + entry.idle, entry.last);
        return tokens;
      }
    }
    return 0;
  }
}

function rounded(tokens: number, least: number, step: number): number {
  return tokens < least ? 0 : tokens - (tokens % step);
}

/** A request at the vendor. */
interface SeenPrompt {
  readonly api: Api;
  readonly body: Json | undefined;
  readonly text: string;
}

/**
 * How much of the later request's prompt is not found in the vendor's cache, and would be if the gateway changed nothing. `client`: both
 * requests as the client has sent them.
 */
export function judgeCache(
  earlier: SeenPrompt | undefined,
  later: SeenPrompt | undefined,
  { input, cached }: Prices,
  client: { readonly api: Api; readonly earlier: Json; readonly later: Json },
): FactFinding[] {
  if (!earlier?.body || !later?.body) return [];
  const isSame = client.api === later.api;
  // In another API, a prompt that only grows is one that the vendor could have all of.
  if (!isSame && !isBeginning(client.earlier, client.later)) return [];
  const { least, step, lookback } = cacheRules[later.api](later.body);
  const total = promptTokensOf(earlier.body);
  const possible = isSame ? cachedTokens(later.api, client.earlier, client.later) : rounded(total, least, step);
  const lost = possible - cachedTokens(later.api, earlier.body, later.body);
  // Other spaces in the JSON are other characters, and the same tokens; they may be one step of the cache.
  if (lost <= Math.max(possible / 50, step)) return [];
  const cost = ((lost * (input - cached)) / 1_000_000) * 1000;
  const isUnmarked = lookback !== undefined && promptBlocks(later.body).every(({ minutes }) => minutes === undefined);
  const why = isUnmarked
    ? "Nothing of the prompt is marked for the cache"
    : "The prompt does not begin as that of the turn before";
  const share = Math.round((100 * lost) / possible);
  return [
    {
      side: "request",
      kind: "cache-lost",
      severity: isUnmarked && !isSame ? "warning" : "error",
      path: isUnmarked ? "marks" : "prompt",
      message: `${why}: ${share} % of what could be read from the vendor's cache is not found there, about ${Math.round(lost)} tokens, or $${cost.toFixed(2)} for 1,000 requests like this.`,
      clientSide: earlier.text.slice(0, 4000),
      vendorSide: later.text.slice(0, 4000),
    },
  ];
}

function isBeginning(earlier: Json, later: Json): boolean {
  const blocks = promptBlocks(later);
  return promptBlocks(earlier).every(({ text }, at) => text === blocks[at]?.text);
}

function tokensIn(blocks: readonly Block[]): number {
  return Math.ceil(blocks.reduce((sum, { text }) => sum + text.length, 0) / charactersPerToken);
}

/** A prompt in the order in which vendors cache it: tools, system, messages. A text is the same as a string and as a block. */
function promptBlocks(body: Json): Block[] {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);
  const blockOf =
    (section: Block["section"]) =>
    (block: unknown): Block => ({
      text: JSON.stringify(block, (name, value: unknown) => (marks.has(name) ? undefined : value)),
      minutes: markIn(block),
      takesMark: !(isObject(block) && /^(?:redacted_)?thinking$/.test(String(block["type"]))),
      section,
    });
  const messages = list(body["messages"] ?? body["input"] ?? body["contents"]).flatMap((message) => {
    if (!isObject(message) || message["content"] === undefined) return [message];
    const { content, ...rest } = message;
    return partsOf(content).map((part) => ({ ...rest, ...(isObject(part) && { ...part }) }));
  });
  const system = list(body["system"] ?? body["instructions"] ?? body["systemInstruction"]).flatMap(partsOf);
  const blocks = [
    ...list(body["tools"]).map(blockOf("tools")),
    ...system.map(blockOf("system")),
    ...messages.map(blockOf("messages")),
  ];
  const whole = cacheMinutesOf(body);
  const last = blocks.findLastIndex(({ takesMark }) => takesMark);
  const target = blocks[last];
  if (whole !== undefined && target) blocks[last] = { ...target, minutes: target.minutes ?? whole };
  return blocks;
}

const marks: ReadonlySet<string> = new Set(["cache_control", "prompt_cache_breakpoint"]);

function partsOf(content: unknown): unknown[] {
  if (Array.isArray(content)) return content;
  return [typeof content === "string" ? { type: "text", text: content } : content];
}

/** The mark of a block, or the last one in its content: of a result. */
function markIn(block: unknown): number | undefined {
  if (!isObject(block)) return undefined;
  const { content } = block;
  const inner = Array.isArray(content) ? content.filter(isObject).map(cacheMinutesOf) : [];
  return cacheMinutesOf(block) ?? inner.findLast((minutes) => minutes !== undefined);
}
