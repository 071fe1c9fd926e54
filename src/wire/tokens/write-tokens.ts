import type { ModelAdapter, SlotState, Tokenization } from "../../generation/engine.ts";
import type { TokensForm } from "./read-request.ts";

/**
 * The body of `POST /tokenize`, as llama.cpp's server (its README, "POST /tokenize") or vLLM (its `TokenizeResponse`) writes it.
 * `contextLength`: of the model, where it is known.
 */
export function writeTokens(
  { tokens, bytes }: Tokenization,
  form: TokensForm,
  withTexts: boolean,
  contextLength: number | undefined,
): string {
  const pieces = withTexts && bytes ? bytes : undefined;
  if (form === "llama.cpp") {
    const shown = pieces ? tokens.map((id, at) => ({ id, piece: pieceOf(pieces[at] ?? []) })) : tokens;
    return JSON.stringify({ tokens: shown });
  }
  return JSON.stringify({
    count: tokens.length,
    max_model_len: contextLength ?? null,
    tokens,
    token_strs:
      pieces?.map((piece) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(piece))) ?? null,
  });
}

/** The body of `POST /detokenize`: the text under llama.cpp's name and under vLLM's, since both are asked in the same way. */
export function writeText(text: string): string {
  return JSON.stringify({ content: text, prompt: text });
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
