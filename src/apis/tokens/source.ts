import type { DetokenizeRequest, Tokenization, TokenizeRequest } from "../../core/engine.ts";
import { isObject } from "../../core/json.ts";

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
