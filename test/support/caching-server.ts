import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

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

interface ChatBody {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: unknown;
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

  const answer = async (response: ServerResponse, body: ChatBody): Promise<void> => {
    const tokens = tokensOf(body);
    if (tokens.length >= contextSize) return refuseLength(response, tokens.length, contextSize);
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
    write(response, body, text, tokens.length, cachedTokens);
    slot.tokens = [...tokens, ...text.split(" "), "</assistant>"];
    slot.isBusy = false;
    deferred.shift()?.();
  };

  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      if (state.broken)
        return response.writeHead(500).end('{"error":{"code":500,"message":"broken","type":"server_error"}}');
      if (request.method === "GET")
        return response.end(
          JSON.stringify({ object: "list", data: [{ id: "m", object: "model", created: 7, owned_by: "llamacpp" }] }),
        );
      const body: unknown = text === "" ? null : JSON.parse(text);
      if (!isChatBody(body))
        return response
          .writeHead(400)
          .end('{"error":{"code":400,"message":"\\"messages\\" is required","type":"invalid_request_error"}}');
      void answer(response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    answered,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function isChatBody(body: unknown): body is ChatBody {
  return typeof body === "object" && body !== null && "messages" in body && Array.isArray(body.messages);
}

/** Tools are part of the system prompt, as most chat templates write them. */
function tokensOf({ messages, tools }: ChatBody): string[] {
  const text = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content));
  return [
    ...(tools === undefined ? [] : [JSON.stringify(tools)]),
    ...messages.map(({ role, content }) => `<${role}> ${text(content)} </${role}>`),
    "<assistant>",
  ].flatMap((part) => part.split(/\s+/));
}

function commonLength(one: readonly string[], other: readonly string[]): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  return length;
}

/** Source: llama.cpp, tools/server/server.cpp: `exceed_context_size_error`. */
function refuseLength(response: ServerResponse, n_prompt_tokens: number, n_ctx: number): void {
  const message = `request (${n_prompt_tokens} tokens) exceeds the available context size (${n_ctx} tokens), try increasing it`;
  const error = { code: 400, message, type: "exceed_context_size_error", n_prompt_tokens, n_ctx };
  response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
}

function write(
  response: ServerResponse,
  body: ChatBody,
  text: string,
  promptTokens: number,
  cachedTokens: number,
): void {
  const head = { id: "chatcmpl-1", created: 1_790_000_000, model: body.model ?? "m" };
  const completionTokens = text.split(" ").length;
  const usage = {
    completion_tokens: completionTokens,
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
  if (body.stream !== true) {
    const choices = [{ finish_reason: "stop", index: 0, message: { role: "assistant", content: text } }];
    response.writeHead(200, { "content-type": "application/json" });
    return void response.end(JSON.stringify({ choices, object: "chat.completion", usage, ...head }));
  }
  const chunk = (choices: unknown, more: object = {}): string =>
    `data: ${JSON.stringify({ choices, ...head, object: "chat.completion.chunk", ...more })}\n\n`;
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(chunk([{ finish_reason: null, index: 0, delta: { role: "assistant", content: null } }]));
  response.write(chunk([{ finish_reason: null, index: 0, delta: { content: text } }]));
  response.write(chunk([{ finish_reason: "stop", index: 0, delta: {} }]));
  response.end(`${chunk([], { usage })}data: [DONE]\n\n`);
}
