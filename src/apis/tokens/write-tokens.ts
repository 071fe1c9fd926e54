import type { ModelAdapter, SlotState, Tokenization } from "../../core/engine.ts";
import type { Steps } from "../../core/steps.ts";
import type { TokensForm } from "./read-request.ts";

/** So many tokens are written in one step. */
const inAStep = 1024;

/**
 * The body of `POST /tokenize`, as llama.cpp's server (its README, "POST /tokenize") or vLLM (its `TokenizeResponse`) writes it.
 * `contextLength`: of the model, where it is known.
 */
export function* writeTokens(
  { tokens, bytes }: Tokenization,
  form: TokensForm,
  withTexts: boolean,
  contextLength: number | undefined,
): Steps<string> {
  const pieces = withTexts && bytes ? bytes : undefined;
  if (form === "llama.cpp") {
    const shown = (id: number, at: number): unknown => (pieces ? { id, piece: pieceOf(pieces[at] ?? []) } : id);
    return `{"tokens":${yield* writeList(tokens, shown)}}`;
  }
  const numbers = yield* writeList(tokens, (token) => token);
  const texts = pieces ? yield* writeList(pieces, textOf) : "null";
  const length = JSON.stringify(contextLength ?? null);
  return `{"count":${tokens.length},"max_model_len":${length},"tokens":${numbers},"token_strs":${texts}}`;
}

function* writeList<Item>(items: readonly Item[], shown: (item: Item, at: number) => unknown): Steps<string> {
  const written: string[] = [];
  for (let from = 0; from < items.length; from += inAStep) {
    const some = items.slice(from, from + inAStep).map((item, at) => shown(item, from + at));
    written.push(JSON.stringify(some).slice(1, -1));
    yield;
  }
  return `[${written.join(",")}]`;
}

/** The body of `POST /detokenize`: the text under llama.cpp's name and under vLLM's, since both are asked in the same way. */
export function writeText(text: string): string {
  return JSON.stringify({ content: text, prompt: text });
}

function textOf(bytes: readonly number[]): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** A text; its bytes, where they are no whole characters. */
function pieceOf(bytes: readonly number[]): string | readonly number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return bytes;
  }
}

/** The body of `GET /slots`, in the form of llama.cpp's server: nothing of a prompt or an answer is in it. */
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

/** The body of `GET /lora-adapters`, in the form of llama.cpp's server. */
export function writeAdapters(adapters: readonly (ModelAdapter & { readonly model: string })[]): string {
  return JSON.stringify(adapters.map(({ id, model, file, scale }) => ({ id, model, path: file, scale })));
}
