import * as z from "zod";
import { integerShape, list } from "../request/shapes.ts";

/*
 * The objects of `/tokenize`, `/detokenize`, `/slots` and `/lora-adapters`. Source: README of llama.cpp's server; vLLM's
 * `TokenizeCompletionRequest`, `TokenizeChatRequest` and `TokenizeResponse`. The keys of a shape are in the order of the wire;
 * `.meta({ note })` of a request's member is its row in docs/parameters.md.
 */

const count = z.int().min(0);

/** Tokenizing a text of this length takes some tenths of a second, during which the model does not decode. */
const maxTextLength = 1_000_000;
const maxTokens = 1_000_000;

const text = z.string().max(maxTextLength).meta({ note: "At most 1,000,000 characters." });
const flag = (note: string) => z.boolean().optional().meta({ note });

/** A request to `POST /tokenize` in the form of llama.cpp. */
export const llamaTokenize = z.object({
  content: text,
  add_special: flag("Adds the special tokens that the model's tokenizer adds; default `false`."),
  parse_special: flag("Reads special tokens in the text; default `true`."),
  with_pieces: flag("Returns each token as `id` and `piece`, its text."),
});

/** A request to `POST /tokenize` in the form of vLLM. */
export const vllmTokenize = z.object({
  prompt: text,
  add_special_tokens: flag("Adds the special tokens that the model's tokenizer adds; default `true`."),
  return_token_strs: flag("Adds `token_strs`, the text of each token."),
});

/** The members that vLLM adds to a chat request for `POST /tokenize`. */
export const vllmChatTokenize = vllmTokenize.pick({ return_token_strs: true });

/** A request to `POST /detokenize`, the same in llama.cpp and vLLM. */
export const detokenizeRequest = z.object({
  tokens: list(integerShape(0), { phrase: "an array of integers", most: maxTokens }).meta({
    note: "At most 1,000,000 token ids.",
  }),
});

/** With pieces: the text of each token, or its bytes if they are not whole characters. */
export const llamaTokens = z.object({
  tokens: z.array(z.union([count, z.object({ id: count, piece: z.union([z.string(), z.array(count)]) })])),
});

export const vllmTokens = z.object({
  count,
  max_model_len: count.nullable(),
  tokens: z.array(count),
  token_strs: z.array(z.string()).nullable(),
});

/** The text under the names of llama.cpp and of vLLM. */
export const detokenized = z.object({ content: z.string(), prompt: z.string() });

/** An element of llama.cpp's `GET /slots`, with the name of the model. */
export const slot = z.object({
  id: count,
  id_task: z.int(),
  model: z.string(),
  n_ctx: count,
  speculative: z.boolean(),
  is_processing: z.boolean(),
  n_prompt_tokens: count,
  n_prompt_tokens_processed: count,
  n_prompt_tokens_cache: count,
  next_token: z.array(z.object({ has_next_token: z.boolean(), n_remain: z.int(), n_decoded: count })),
});

/** An element of llama.cpp's `GET /lora-adapters`, with the name of the model. */
export const loraAdapter = z.object({ id: count, model: z.string(), path: z.string(), scale: z.number() });
