import { isObject } from "../../wire/core/json.ts";
import type { Api, Json } from "./facts.ts";
import type { FactFinding } from "./finding.ts";
import type { VendorRequest } from "./vendor.ts";

/** By which rules a vendor finds the beginning of a prompt in its cache. Sizes are in tokens. */
interface CacheRules {
  /** A shorter prompt is not cached. */
  readonly least: number;
  /** What is found is a multiple of this. */
  readonly step: number;
  /** Only what ends with a mark is cached, and found from this number of blocks before a mark of the later request. */
  readonly lookback?: number;
}

const openai: CacheRules = { least: 1024, step: 128 };

/**
 * Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching ("Cache limitations", "Automatic prefix checking": most
 * models; some need 2,048 or 4,096 tokens); https://platform.openai.com/docs/guides/prompt-caching; https://ai.google.dev/gemini-api/docs/caching,
 * "Implicit caching" (Flash). Ollama has the prompt of the last request of a slot.
 */
const cacheRules: Readonly<Record<Api, CacheRules>> = {
  chat: openai,
  responses: openai,
  messages: { least: 1024, step: 1, lookback: 20 },
  gemini: { least: 1024, step: 1 },
  ollama: { least: 0, step: 1 },
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
  readonly isMarked: boolean;
}

/** About how many tokens the prompt of a request has. */
export function promptTokensOf(body: Json): number {
  return tokensIn(promptBlocks(body));
}

/** About how many tokens of the prompt of `later` the vendor reads from its cache, if it has answered `earlier` some seconds before. */
export function cachedTokens(api: Api, earlier: Json, later: Json): number {
  const { least, step, lookback } = cacheRules[api];
  // The key decides which server of the vendor is asked.
  if (earlier["prompt_cache_key"] !== later["prompt_cache_key"]) return 0;
  const before = promptBlocks(earlier);
  const after = promptBlocks(later);
  let same = 0;
  while (same < before.length && before[same]?.text === after[same]?.text) same++;
  if (lookback === undefined) return rounded(tokensIn(before.slice(0, same)), least, step);
  const upTo: number[] = [];
  for (const { text } of before) upTo.push((upTo.at(-1) ?? 0) + text.length);
  for (let mark = after.length - 1; mark >= 0; mark--) {
    if (after[mark]?.isMarked !== true) continue;
    for (let at = Math.min(mark, same - 1); at > mark - lookback && at >= 0; at--) {
      const tokens = Math.ceil((upTo[at] ?? 0) / charactersPerToken);
      if (before[at]?.isMarked === true && tokens >= least) return tokens;
    }
  }
  return 0;
}

function rounded(tokens: number, least: number, step: number): number {
  return tokens < least ? 0 : tokens - (tokens % step);
}

/**
 * How much of the later request's prompt is not found in the vendor's cache, and would be if the gateway changed nothing. `client`: both
 * requests as the client has sent them, in the vendor's API; absent: in another one, whose prompt only grows.
 */
export function judgeCache(
  earlier: VendorRequest | undefined,
  later: VendorRequest | undefined,
  { input, cached }: Prices,
  client?: { readonly earlier: Json; readonly later: Json },
): FactFinding[] {
  if (!earlier?.body || !later?.body) return [];
  const { least, step, lookback } = cacheRules[later.api];
  const total = promptTokensOf(earlier.body);
  const possible = client ? cachedTokens(later.api, client.earlier, client.later) : rounded(total, least, step);
  const lost = possible - cachedTokens(later.api, earlier.body, later.body);
  // Other spaces in the JSON are other characters, and the same tokens.
  if (lost <= possible / 50) return [];
  const cost = ((lost * (input - cached)) / 1_000_000) * 1000;
  const isUnmarked = lookback !== undefined && !promptBlocks(later.body).some(({ isMarked }) => isMarked);
  const why = isUnmarked
    ? "Nothing of the prompt is marked for the cache"
    : "The prompt does not begin as that of the turn before";
  const share = Math.round((100 * lost) / possible);
  return [
    {
      side: "request",
      kind: "cache-lost",
      severity: isUnmarked && !client ? "warning" : "error",
      path: isUnmarked ? "marks" : "prompt",
      message: `${why}: ${share} % of what could be read from the vendor's cache is not found there, about ${Math.round(lost)} tokens, or $${cost.toFixed(2)} for 1,000 requests like this.`,
      clientSide: earlier.text.slice(0, 4000),
      vendorSide: later.text.slice(0, 4000),
    },
  ];
}

function tokensIn(blocks: readonly Block[]): number {
  return Math.ceil(blocks.reduce((sum, { text }) => sum + text.length, 0) / charactersPerToken);
}

/** A prompt in the order in which vendors cache it: tools, system, messages. */
function promptBlocks(body: Json): Block[] {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);
  const messages = list(body["messages"] ?? body["input"] ?? body["contents"]).flatMap((message) => {
    if (!isObject(message) || !Array.isArray(message["content"])) return [message];
    const { content, ...rest } = message;
    return (content as unknown[]).map((part) => ({ ...rest, ...(isObject(part) && { ...part }) }));
  });
  const system = list(body["system"] ?? body["instructions"] ?? body["systemInstruction"]);
  const blocks = [...list(body["tools"]), ...system, ...messages].map((block) => ({
    text: JSON.stringify(block, (name, value: unknown) => (name === "cache_control" ? undefined : value)),
    isMarked: isObject(block) && isObject(block["cache_control"]),
  }));
  const last = blocks.pop();
  return last ? [...blocks, { ...last, isMarked: last.isMarked || isObject(body["cache_control"]) }] : [];
}
