import { z } from "zod";
import type { DetokenizeRequest, TokenizeRequest } from "../../core/engine.ts";
import { invalidRequest } from "../../core/failure.ts";
import type { Steps } from "../../core/steps.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { chatRequestInSteps } from "../chat/read-request.ts";
import type { ReadOptions } from "../port.ts";
import { issueFailure } from "../request/issue-failure.ts";
import { invalidValue, missingParameter, stringTooLong, unsupportedParameter } from "../request/refusals.ts";
import { integer, list } from "../request/shapes.ts";

/** The form of the answer: llama.cpp's, or vLLM's. */
export type TokensForm = "llama.cpp" | "vllm";

export interface ReadTokenizeRequest {
  readonly request: TokenizeRequest;
  readonly form: TokensForm;
  /** What each token says is wanted, too. */
  readonly withTexts: boolean;
}

/** A text of this length takes some tenths of a second, in which the model makes no step. */
const longestText = 1_000_000;
const mostTokens = 1_000_000;

const ids = list(integer(0), { phrase: "an array of integers", most: mostTokens });

/**
 * Reads the body of `POST /tokenize`. llama.cpp's server asks with `content`, vLLM with `prompt` or with `messages` and all that a chat
 * request may have. `model`: the model that is meant.
 *
 * @throws {FailureError} 400, in OpenAI's words.
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
    const request = yield* readConversation(body, model, id, options);
    const withTexts = flag(body, "return_token_strs") ?? false;
    return {
      request: { id, model, input: { kind: "chat", request }, withBytes: withTexts, body },
      form: "vllm",
      withTexts,
    };
  }
  const text = content ?? prompt;
  if (typeof text !== "string") throw issueFailure(name, text, z.string().safeParse(text).error?.issues ?? []);
  if (text.length > longestText) throw stringTooLong(name, longestText, text.length);
  const isLlama = name === "content";
  const addSpecial = isLlama ? (flag(body, "add_special") ?? false) : (flag(body, "add_special_tokens") ?? true);
  const parseSpecial = isLlama ? (flag(body, "parse_special") ?? true) : true;
  const withTexts = flag(body, isLlama ? "with_pieces" : "return_token_strs") ?? false;
  return {
    request: { id, model, input: { kind: "text", text, addSpecial, parseSpecial }, withBytes: withTexts, body },
    form: isLlama ? "llama.cpp" : "vllm",
    withTexts,
  };
}

/** Reads a chat request of which only the prompt is wanted. Throws `FailureError` 400. */
export function* readConversation(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
  options: ReadOptions,
): Steps<GenerationRequest> {
  if (body["chat_template"] !== undefined && body["chat_template"] !== null)
    throw unsupportedParameter("chat_template");
  return (yield* chatRequestInSteps({ ...body, model }, id, options)).request;
}

/** Reads the body of `POST /detokenize`, which is the same in llama.cpp and vLLM. Throws `FailureError` 400. */
export function readDetokenizeRequest(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
): DetokenizeRequest {
  const { tokens } = body;
  if (tokens === undefined || tokens === null) throw missingParameter("tokens");
  const checked = ids.safeParse(tokens);
  if (!checked.success) throw issueFailure("tokens", tokens, checked.error.issues);
  return { id, model, tokens: checked.data };
}

/** The body as an object. Throws `FailureError` 400 for anything else. */
export function objectBody(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw invalidRequest("Invalid type for the request body: expected an object.", null, "invalid_type");
}

function flag(body: Readonly<Record<string, unknown>>, name: string): boolean | undefined {
  const value = body[name] ?? undefined;
  const checked = z.boolean().optional().safeParse(value);
  if (!checked.success) throw issueFailure(name, value, checked.error.issues);
  return checked.data;
}
