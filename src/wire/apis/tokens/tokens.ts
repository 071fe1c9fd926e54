import * as z from "zod";
import type { DetokenizeRequest, ModelAdapter, SlotState, Tokenization, TokenizeRequest } from "../../core/engine.ts";
import type { Steps } from "../../core/steps.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { chatRequestInSteps } from "../chat/request.ts";
import type { ReadOptions } from "../port.ts";
import { checkedMembers } from "../request/parameter.ts";
import { lean } from "../profile.ts";
import { invalidValue, missingParameter, unsupportedParameter } from "../request/refusals.ts";
import { isObject } from "../../core/json.ts";
import { serialize } from "../members.ts";
import {
  detokenized,
  detokenizeRequest,
  llamaTokenize,
  loraAdapter,
  slot,
  vllmChatTokenize,
  vllmTokenize,
} from "./schema.ts";

export { objectBody } from "../request/refusals.ts";

/** The form of the answer: that of llama.cpp, or of vLLM. */
export type TokensForm = "llama.cpp" | "vllm";

export interface ReadTokenizeRequest {
  readonly request: TokenizeRequest;
  readonly form: TokensForm;
  /** The answer contains the text of each token. */
  readonly withTexts: boolean;
}

/**
 * Reads the body of `POST /tokenize`. Requests of llama.cpp have `content`; those of vLLM have `prompt`, or `messages` with the other
 * members of a chat request. `model`: the name of the model.
 *
 * @throws {FailureError} 400, with OpenAI's message.
 */
export function* readTokenizeRequest(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
  options: ReadOptions,
): Steps<ReadTokenizeRequest> {
  const { content, prompt, messages } = body;
  const given = { content, prompt, messages };
  const [name, other] = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (name === undefined) throw missingParameter("content");
  if (other !== undefined) throw invalidValue(other, `it cannot be combined with '${name}'.`);
  if (name === "messages") {
    const request = yield* readPromptRequest(body, model, id, options);
    const withTexts = checkedMembers(vllmChatTokenize, body).read.return_token_strs ?? false;
    return {
      request: { id, model, input: { kind: "chat", request }, withBytes: withTexts, body },
      form: "vllm",
      withTexts,
    };
  }
  const read = name === "content" ? readLlama(body) : readVllm(body);
  return {
    request: { id, model, input: { kind: "text", ...read.input }, withBytes: read.withTexts, body },
    form: read.form,
    withTexts: read.withTexts,
  };
}

interface ReadText extends Pick<ReadTokenizeRequest, "form" | "withTexts"> {
  readonly input: { readonly text: string; readonly addSpecial: boolean; readonly parseSpecial: boolean };
}

function readLlama(body: Readonly<Record<string, unknown>>): ReadText {
  const { content, add_special, parse_special, with_pieces } = checkedMembers(llamaTokenize, body).read;
  const input = { text: content, addSpecial: add_special ?? false, parseSpecial: parse_special ?? true };
  return { input, form: "llama.cpp", withTexts: with_pieces ?? false };
}

function readVllm(body: Readonly<Record<string, unknown>>): ReadText {
  const { prompt, add_special_tokens, return_token_strs } = checkedMembers(vllmTokenize, body).read;
  const input = { text: prompt, addSpecial: add_special_tokens ?? true, parseSpecial: true };
  return { input, form: "vllm", withTexts: return_token_strs ?? false };
}

/** Reads a chat request for its prompt. Throws `FailureError` (400). */
export function* readPromptRequest(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
  options: ReadOptions,
): Steps<GenerationRequest> {
  if (body["chat_template"] !== undefined && body["chat_template"] !== null)
    throw unsupportedParameter("chat_template");
  // OpenAI has no such path, so it cannot refuse a member.
  return (yield* chatRequestInSteps({ ...body, model }, id, { ...options, profile: lean })).request;
}

/** Reads the body of `POST /detokenize`, which is the same in llama.cpp and vLLM. Throws `FailureError` (400). */
export function readDetokenizeRequest(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
): DetokenizeRequest {
  return { id, model, tokens: checkedMembers(detokenizeRequest, body).read.tokens };
}

const tokensPerStep = 1024;

/**
 * Writes the answer to `POST /tokenize` in the form of llama.cpp's server (its README, "POST /tokenize") or of vLLM (its
 * `TokenizeResponse`), in steps. `contextLength`: that of the model, if known.
 */
export function* writeTokens(
  { tokens, bytes }: Tokenization,
  form: TokensForm,
  withTexts: boolean,
  contextLength: number | undefined,
): Steps<string> {
  const tokenBytes = withTexts && bytes ? bytes : undefined;
  if (form === "llama.cpp") {
    const shown = (id: number, at: number): unknown =>
      tokenBytes ? { id, piece: textOrBytes(tokenBytes[at] ?? []) } : id;
    return `{"tokens":${yield* writeList(tokens, shown)}}`;
  }
  const numbers = yield* writeList(tokens, (token) => token);
  const texts = tokenBytes ? yield* writeList(tokenBytes, textOf) : "null";
  const length = JSON.stringify(contextLength ?? null);
  return `{"count":${tokens.length},"max_model_len":${length},"tokens":${numbers},"token_strs":${texts}}`;
}

function* writeList<Item>(items: readonly Item[], shown: (item: Item, at: number) => unknown): Steps<string> {
  const written: string[] = [];
  for (let from = 0; from < items.length; from += tokensPerStep) {
    const some = items.slice(from, from + tokensPerStep).map((item, at) => shown(item, from + at));
    written.push(JSON.stringify(some).slice(1, -1));
    yield;
  }
  return `[${written.join(",")}]`;
}

/** Writes the answer to `POST /detokenize`: the text under the names of llama.cpp and of vLLM, whose requests are the same. */
export function writeText(text: string): string {
  return serialize(detokenized, { content: text, prompt: text });
}

function textOf(bytes: readonly number[]): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** Returns the text of a token, or its bytes if they are not whole characters. */
function textOrBytes(bytes: readonly number[]): string | readonly number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return bytes;
  }
}

const slotList = z.array(slot);
const adapterList = z.array(loraAdapter);

/** Writes the answer to `GET /slots` in the form of llama.cpp's server, without any part of a prompt or an answer. */
export function writeSlots(slots: readonly (SlotState & { readonly model: string })[]): string {
  return serialize(
    slotList,
    slots.map(({ id, model, busy, task, contextSize, tokensLeft, speculative = false, ...counts }) => ({
      id,
      id_task: task ?? -1,
      model,
      n_ctx: contextSize,
      speculative,
      is_processing: busy,
      n_prompt_tokens: counts.promptTokens,
      n_prompt_tokens_processed: counts.evaluatedTokens,
      n_prompt_tokens_cache: counts.cachedTokens,
      next_token: [{ has_next_token: busy, n_remain: tokensLeft ?? -1, n_decoded: counts.generatedTokens }],
    })),
  );
}

/** Writes the answer to `GET /lora-adapters` in the form of llama.cpp's server. */
export function writeAdapters(adapters: readonly (ModelAdapter & { readonly model: string })[]): string {
  return serialize(
    adapterList,
    adapters.map(({ id, model, file, scale }) => ({ id, model, path: file, scale })),
  );
}

/**
 * Writes the body of a tokenize request to another server. llama.cpp's server and vLLM both accept it, each by the members that it knows.
 */
export function writeTokenizeRequest(
  { input, body }: TokenizeRequest,
  model: string,
): Readonly<Record<string, unknown>> {
  if (input.kind === "chat") return { ...body, model };
  const { text, addSpecial, parseSpecial } = input;
  return {
    model,
    content: text,
    add_special: addSpecial,
    parse_special: parseSpecial,
    with_pieces: true,
    prompt: text,
    add_special_tokens: addSpecial,
    return_token_strs: true,
  };
}

export function writeDetokenizeRequest(
  { tokens }: DetokenizeRequest,
  model: string,
): Readonly<Record<string, unknown>> {
  return { model, tokens };
}

/** Returns the tokens in an answer of llama.cpp or vLLM, or `undefined` if it has none. */
export function readTokens(answer: unknown): Tokenization | undefined {
  const listed = isObject(answer) ? answer["tokens"] : undefined;
  if (!Array.isArray(listed)) return undefined;
  const texts = isObject(answer) && Array.isArray(answer["token_strs"]) ? answer["token_strs"] : undefined;
  const tokens: number[] = [];
  const bytes: (readonly number[])[] = [];
  for (const [at, entry] of listed.entries()) {
    const [id, text] = isObject(entry) ? [entry["id"], entry["piece"]] : [entry, texts?.[at]];
    if (typeof id !== "number") return undefined;
    tokens.push(id);
    const ownBytes = bytesOf(text);
    if (ownBytes) bytes.push(ownBytes);
  }
  return bytes.length === tokens.length ? { tokens, bytes } : { tokens };
}

function bytesOf(text: unknown): readonly number[] | undefined {
  if (typeof text === "string") return [...new TextEncoder().encode(text)];
  return Array.isArray(text) && text.every((byte) => typeof byte === "number") ? text : undefined;
}

/** Returns the text in an answer of llama.cpp or vLLM, or `undefined` if it has none. */
export function readText(answer: unknown): string | undefined {
  if (!isObject(answer)) return undefined;
  const text = answer["content"] ?? answer["prompt"] ?? answer["text"];
  return typeof text === "string" ? text : undefined;
}
