import { answerOf, type Json, type ScriptedAnswer, type ScriptedFailure } from "../../src/judge/between/facts.ts";
import { startVendor } from "../../src/judge/between/vendor.ts";
import { FailureError, kindOfStatus } from "../../src/wire/core/failure.ts";
import { listOf } from "../doubles/chat-server.ts";

/*
 * A chat server with the prompt cache of llama.cpp's: slots that keep the tokens of their last request, of which the one with the longest
 * common beginning serves the next request, else the least recently used one; what a slot loses is saved in main memory (`--cache-ram`)
 * and loaded again; requests wait while all slots are busy; usage reports `cached_tokens`. Source: llama.cpp b7000, tools/server
 * (get_available_slot, server_prompt_cache, queue_tasks_deferred). A token is a word.
 */

export interface CachingServer {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** Of each answered request, in order. */
  readonly answered: readonly { readonly promptTokens: number; readonly cachedTokens: number; readonly text: string }[];
  /** While true, every request is answered with status 500. */
  broken: boolean;
  close(): Promise<void>;
}

export interface CachingOptions {
  /** Default 4. */
  readonly slots?: number;
  /** Tokens of a prompt that are processed in a millisecond, by all slots together. Default: any number at once. */
  readonly tokensPerMs?: number;
  readonly contextSize?: number;
  /** Prompts that are saved in main memory; default 8. */
  readonly savedPrompts?: number;
}

interface Slot {
  tokens: readonly string[];
  isBusy: boolean;
  lastUsed: number;
}

/** The least part of a prompt that a slot must have in common with it: `slot_prompt_similarity`. */
const minSimilarity = 0.1;

export async function startCachingServer(options: CachingOptions = {}): Promise<CachingServer> {
  const { tokensPerMs = Infinity, contextSize = 128 * 1024, savedPrompts = 8 } = options;
  const slots = Array.from({ length: options.slots ?? 4 }, (): Slot => ({ tokens: [], isBusy: false, lastUsed: 0 }));
  const answered: { promptTokens: number; cachedTokens: number; text: string }[] = [];
  const deferred: (() => void)[] = [];
  /** The oldest first. */
  let saved: (readonly string[])[] = [];
  let uses = 0;
  let prefill = Promise.resolve();
  const state = { broken: false };

  const freeSlot = (tokens: readonly string[]): Slot | undefined => {
    const free = slots.filter(({ isBusy }) => !isBusy);
    const [best] = free
      .map((slot) => ({ slot, common: commonLength(slot.tokens, tokens) }))
      .filter(({ common }) => common / tokens.length > minSimilarity)
      .toSorted((one, other) => other.common - one.common);
    return best?.slot ?? free.toSorted((one, other) => one.lastUsed - other.lastUsed)[0];
  };

  const answer = async (body: Json): Promise<ScriptedAnswer> => {
    const tokens = tokensOf(body);
    let slot = freeSlot(tokens);
    while (!slot) {
      await new Promise<void>((resolve) => deferred.push(resolve));
      slot = freeSlot(tokens);
    }
    slot.isBusy = true;
    slot.lastUsed = ++uses;
    const inSlot = commonLength(slot.tokens, tokens);
    const better = saved.find((prompt) => commonLength(prompt, tokens) > inSlot);
    if (inSlot < slot.tokens.length) saved.push(slot.tokens);
    saved = saved
      .filter((prompt) => prompt !== better)
      .toReversed()
      .slice(0, savedPrompts)
      .toReversed();
    const cachedTokens = Math.min(better ? commonLength(better, tokens) : inSlot, tokens.length - 1);
    slot.tokens = tokens;
    const ms = (tokens.length - cachedTokens) / tokensPerMs;
    if (ms > 0) await (prefill = prefill.then(() => new Promise((resolve) => setTimeout(resolve, ms))));
    const text = `Answer to ${tokens.length} tokens.`;
    answered.push({ promptTokens: tokens.length, cachedTokens, text: tokens.join(" ") });
    slot.tokens = [...tokens, ...text.split(" "), "</assistant>"];
    slot.isBusy = false;
    deferred.shift()?.();
    const usage = {
      promptTokens: tokens.length,
      completionTokens: text.split(" ").length,
      promptDetails: { cached_tokens: cachedTokens },
    };
    return { batches: answerOf([{ text }], { usage }) };
  };

  const { url, close } = await startVendor({
    apis: ["chat"],
    port: 0,
    models: [{ id: "m", created: 7, ownedBy: "llamacpp", endpoints: ["chat"] }],
    isKeyless: true,
    isLenient: true,
    other() {
      if (state.broken) throw new FailureError({ kind: kindOfStatus(500), status: 500, message: "broken" });
      return undefined;
    },
    refusal({ body = {} }) {
      if (!Array.isArray(body["messages"])) return refused('"messages" is required', "invalid_request_error");
      const { length } = tokensOf(body);
      if (length < contextSize) return undefined;
      // Source: llama.cpp, tools/server/server.cpp.
      const message = `request (${length} tokens) exceeds the available context size (${contextSize} tokens), try increasing it`;
      return refused(message, "exceed_context_size_error", { n_prompt_tokens: length, n_ctx: contextSize });
    },
    answer: ({ body = {} }) => answer(body),
  });
  return Object.assign(state, { url: `${url}/v1`, answered, close });
}

function refused(message: string, type: string, more: Json = {}): ScriptedFailure {
  return { status: 400, body: { error: { code: 400, message, type, ...more } } };
}

/** Tools are part of the system prompt, as most chat templates write them. */
function tokensOf({ messages, tools }: Json): string[] {
  const text = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content));
  return [
    ...(tools === undefined ? [] : [JSON.stringify(tools)]),
    ...listOf(messages).map(({ role, content }) => `<${String(role)}> ${text(content)} </${String(role)}>`),
    "<assistant>",
  ].flatMap((part) => part.split(/\s+/));
}

function commonLength(one: readonly string[], other: readonly string[]): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  return length;
}
