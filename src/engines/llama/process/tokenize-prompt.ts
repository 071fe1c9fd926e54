import type { LlamaModel, Token } from "node-llama-cpp";
import { invalidRequest } from "../../../generation/failure.ts";
import type { PromptInput } from "../preparing/prepared-request.ts";
import type { Vocabulary } from "./vocabulary.ts";

/**
 * A prompt's tokens. Spans that spell special tokens without meaning them are tokenized as plain text, the others with special tokens;
 * there is exactly one BOS where the tokenizer adds one or the template wrote one. An empty prompt is the beginning of a document.
 * Throws FailureError for token ids that the model does not have, and for a suffix that it cannot fill in before.
 */
export function tokenizePrompt(model: LlamaModel, vocabulary: Vocabulary, prompt: PromptInput): Token[] {
  if (prompt.type === "tokens") {
    for (const token of prompt.tokens)
      if (token >= vocabulary.size)
        throw invalidRequest(
          `Invalid token id: ${token}. This model has ${vocabulary.size} tokens.`,
          "prompt",
          "invalid_value",
        );
    return prompt.tokens.length > 0 ? (prompt.tokens as Token[]).slice() : [documentStart(model)];
  }
  const { bos } = model.tokens;
  const start = bos !== null && (prompt.bos || model.tokens.shouldPrependBosToken) ? [bos] : [];
  const text = spanTokens(model, vocabulary, prompt.spans);
  // A client that writes the BOS itself into a completions prompt means the one that is there already.
  const repeated = start.length > 0 && text[0] === bos ? 1 : 0;
  const body = text.slice(repeated);
  const tokens = start.concat(
    prompt.suffix === undefined ? body : fillInMiddle(model, vocabulary, body, prompt.suffix),
  );
  return tokens.length > 0 ? tokens : [documentStart(model)];
}

function spanTokens(
  model: LlamaModel,
  vocabulary: Vocabulary,
  spans: readonly { readonly text: string; readonly special: boolean }[],
): Token[] {
  const tokens: Token[] = [];
  for (const span of spans) {
    const last = tokens.at(-1);
    // SentencePiece puts a space in front of a text; in the middle of one there must be none.
    const continues = last !== undefined && !vocabulary.isControl(last);
    for (const token of model.tokenize(span.text, span.special, continues ? "trimLeadingSpace" : undefined))
      tokens.push(token);
  }
  return tokens;
}

function fillInMiddle(model: LlamaModel, vocabulary: Vocabulary, before: readonly Token[], suffix: string): Token[] {
  const { prefix, suffix: suffixToken, middle } = model.tokens.infill;
  if (prefix === null || suffixToken === null || middle === null)
    throw invalidRequest(
      "Unsupported parameter: 'suffix' is not supported with this model, which has no tokens to fill in the middle.",
      "suffix",
      "unsupported_parameter",
    );
  const after = spanTokens(model, vocabulary, [{ text: suffix, special: false }]);
  return [prefix, ...before, suffixToken, ...after, middle];
}

function documentStart(model: LlamaModel): Token {
  const start = model.tokens.bos ?? model.tokens.eos;
  if (start === null) throw invalidRequest("The prompt is empty, and this model has no token to begin with.", "prompt");
  return start;
}
