import { isObject } from "../../core/json.ts";
import type { Message } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { modelFamily } from "../../core/turn-state.ts";
import { cacheMinutesOf } from "../request/cache-mark.ts";
import type { ServerProfile } from "./server-profile.ts";

/*
 * Marks of the prompt cache (`cache_control`) in the form of Anthropic's Messages API and of OpenRouter's and LiteLLM's chat APIs. Sources:
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching, https://docs.litellm.ai/docs/completion/prompt_caching,
 * https://openrouter.ai/docs/guides/best-practices/prompt-caching.
 */

export type Marked = { [name: string]: unknown };

/** Returns a mark in the form of Anthropic and OpenRouter, which have two times. Those of OpenAI are longer than the shorter one. */
export function cacheControl(minutes: number): Marked {
  return minutes > 30 ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

/** Anthropic refuses more marks. */
const maxMarks = 4;

/**
 * Makes the marks of a request ones that Anthropic accepts: at most four, the last ones, and none for a shorter time before a longer one.
 * `blocks`: all that may have a mark, in the order of the prompt: tools, instructions, messages. `whole`: the mark of the request itself.
 * Changes the blocks. Returns the mark of the request; undefined: it has none, or its last block has one of its own.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching, "Edge cases".
 */
export function fitMarks(blocks: readonly Marked[], whole?: Marked): Marked | undefined {
  const marked = blocks.filter((block) => "cache_control" in block);
  const last = blocks.at(-1);
  const inside: unknown = last?.["content"];
  const isOnLast =
    marked.length > 0 && (marked.at(-1) === last || (Array.isArray(inside) && inside.includes(marked.at(-1))));
  const kept = whole && !isOnLast ? maxMarks - 1 : maxMarks;
  for (const block of marked.slice(0, -kept)) delete block["cache_control"];
  const isLong = (control: unknown) => isObject(control) && control["ttl"] === "1h";
  let longest = isLong(whole) ? whole : undefined;
  for (const block of marked.slice(-kept).toReversed()) {
    const control = block["cache_control"];
    if (isLong(control)) longest = control as Marked;
    else if (longest !== undefined) block["cache_control"] = longest;
  }
  return isOnLast ? undefined : whole;
}

/** Whether a tool or a part of the conversation has a mark. */
export function hasMarks({ prompt, tools = [] }: GenerationRequest): boolean {
  const isMarked = (part: object) => "cacheMinutes" in part;
  const inMessage = (message: Message) =>
    isMarked(message) || (Array.isArray(message.content) && message.content.some(isMarked));
  return tools.some(isMarked) || (prompt.kind === "chat" && prompt.messages.some(inMessage));
}

/**
 * Returns the mark of a whole request: the client's own, or the automatic one. With that, the server caches everything up to the last block
 * that it can cache, and the mark moves forward as the conversation grows. It is for clients whose own API caches without marks (all but
 * Messages), and for prompts that are only processed. `isDefault`: whether servers of the API cache so unless their profile says otherwise.
 */
export function requestMark(
  request: GenerationRequest,
  profile: ServerProfile,
  isDefault: boolean,
): Marked | undefined {
  const { extra, limits, passthrough } = request;
  const own = cacheMinutesOf(passthrough?.body ?? extra);
  if (own !== undefined) return cacheControl(own);
  if (hasMarks(request)) return undefined;
  const options = isObject(extra["prompt_cache_options"]) ? extra["prompt_cache_options"] : {};
  const automatic = cacheControl(options["ttl"] === "12h" ? 720 : 30);
  if (limits.maxTokens === 0) return automatic;
  const { automaticCache = isDefault, model = request.model } = profile;
  const isCached = typeof automaticCache === "boolean" ? automaticCache : automaticCache.includes(modelFamily(model));
  return isCached && passthrough?.dialect !== "messages" && options["mode"] !== "explicit" ? automatic : undefined;
}
