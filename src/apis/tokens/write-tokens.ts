import type { ModelAdapter, SlotState, Tokenization } from "../../core/engine.ts";
import type { Steps } from "../../core/steps.ts";
import type { TokensForm } from "./read-request.ts";

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
  return JSON.stringify({ content: text, prompt: text });
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

/** Writes the answer to `GET /slots` in the form of llama.cpp's server, without any part of a prompt or an answer. */
export function writeSlots(slots: readonly (SlotState & { readonly model: string })[]): string {
  return JSON.stringify(
    slots.map(({ id, model, busy, task, contextSize, tokensLeft, ...counts }) => ({
      id,
      id_task: task ?? -1,
      model,
      n_ctx: contextSize,
      speculative: false,
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
  return JSON.stringify(adapters.map(({ id, model, file, scale }) => ({ id, model, path: file, scale })));
}
