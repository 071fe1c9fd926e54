import { z } from "zod";
import type { DetokenizeRequest, TokenizeRequest } from "../../core/engine.ts";
import type { Steps } from "../../core/steps.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { chatRequestInSteps } from "../chat/read-request.ts";
import type { ReadOptions } from "../port.ts";
import { parameterFailure } from "../request/issue-failure.ts";
import { invalidValue, missingParameter, stringTooLong, unsupportedParameter } from "../request/refusals.ts";
import { integerShape, list } from "../request/shapes.ts";

export { objectBody } from "../request/refusals.ts";

/** The form of the answer: that of llama.cpp, or of vLLM. */
export type TokensForm = "llama.cpp" | "vllm";

export interface ReadTokenizeRequest {
  readonly request: TokenizeRequest;
  readonly form: TokensForm;
  /** The answer contains the text of each token. */
  readonly withTexts: boolean;
}

/** Tokenizing a text of this length takes some tenths of a second, during which the model does not decode. */
const maxTextLength = 1_000_000;
const maxTokens = 1_000_000;

const ids = list(integerShape(0), { phrase: "an array of integers", most: maxTokens });

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
    const withTexts = flag(body, "return_token_strs") ?? false;
    return {
      request: { id, model, input: { kind: "chat", request }, withBytes: withTexts, body },
      form: "vllm",
      withTexts,
    };
  }
  const text = content ?? prompt;
  if (typeof text !== "string") throw parameterFailure(name, text, z.string().safeParse(text).error?.issues ?? []);
  if (text.length > maxTextLength) throw stringTooLong(name, maxTextLength, text.length);
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

/** Reads a chat request for its prompt. Throws `FailureError` (400). */
export function* readPromptRequest(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
  options: ReadOptions,
): Steps<GenerationRequest> {
  if (body["chat_template"] !== undefined && body["chat_template"] !== null)
    throw unsupportedParameter("chat_template");
  return (yield* chatRequestInSteps({ ...body, model }, id, options)).request;
}

/** Reads the body of `POST /detokenize`, which is the same in llama.cpp and vLLM. Throws `FailureError` (400). */
export function readDetokenizeRequest(
  body: Readonly<Record<string, unknown>>,
  model: string,
  id: string,
): DetokenizeRequest {
  const { tokens } = body;
  if (tokens === undefined || tokens === null) throw missingParameter("tokens");
  const checked = ids.safeParse(tokens);
  if (!checked.success) throw parameterFailure("tokens", tokens, checked.error.issues);
  return { id, model, tokens: checked.data };
}

function flag(body: Readonly<Record<string, unknown>>, name: string): boolean | undefined {
  const value = body[name] ?? undefined;
  const checked = z.boolean().optional().safeParse(value);
  if (!checked.success) throw parameterFailure(name, value, checked.error.issues);
  return checked.data;
}
