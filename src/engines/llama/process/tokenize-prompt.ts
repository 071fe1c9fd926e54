import { invalidRequest } from "../../../generation/failure.ts";
import type { PromptInput } from "../preparing/prepared-request.ts";
import type { NativeModel } from "./c-api/native-model.ts";
import { checkToken } from "./token-text.ts";
import type { TextPieces } from "./text-pieces.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** What makes tokens of text. */
export interface Tokenizer {
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  readonly pieces: TextPieces;
}

/**
 * A prompt's tokens. Spans that spell special tokens without meaning them are tokenized as plain text, the others with special tokens;
 * there is exactly one BOS where the tokenizer adds one or the template wrote one. An empty prompt is the beginning of a document.
 * Throws FailureError for token ids that the model does not have, and for a suffix that it cannot fill in before.
 *
 * A generator that pauses after each piece, because a long conversation takes seconds and the model's steps must not wait for it.
 */
export function* tokenizePrompt(tokenizer: Tokenizer, prompt: PromptInput): Generator<undefined, number[]> {
  const { model, vocabulary } = tokenizer;
  if (prompt.type === "tokens") {
    for (const token of prompt.tokens) checkToken(vocabulary, token, "prompt");
    return prompt.tokens.length > 0 ? prompt.tokens.slice() : [documentStart(model)];
  }
  if (prompt.addSpecial !== undefined) return yield* bareTokens(tokenizer, prompt, prompt.addSpecial);
  const { bos } = model.tokens;
  const start = bos !== null && (prompt.bos || model.addsBos) ? [bos] : [];
  const text = yield* spanTokens(tokenizer, prompt.spans);
  // A client that writes the BOS itself into a completions prompt means the one that is there already.
  const repeated = start.length > 0 && text[0] === bos ? 1 : 0;
  const body = text.slice(repeated);
  const tokens = start.concat(prompt.suffix === undefined ? body : yield* fillInMiddle(tokenizer, body, prompt.suffix));
  return tokens.length > 0 ? tokens : [documentStart(model)];
}

/** The tokens of a text as it stands, with what the tokenizer puts around it only where that is asked for. */
function* bareTokens(
  tokenizer: Tokenizer,
  { spans }: Extract<PromptInput, { type: "spans" }>,
  addSpecial: boolean,
): Generator<undefined, number[]> {
  const { tokens, addsBos, addsEos } = tokenizer.model;
  const { bos, eos } = tokens;
  const text = yield* spanTokens(tokenizer, spans);
  const start = addSpecial && addsBos && bos !== null && text[0] !== bos ? [bos] : [];
  const end = addSpecial && addsEos && eos !== null && text.at(-1) !== eos ? [eos] : [];
  return [...start, ...text, ...end];
}

function* spanTokens(
  { model, vocabulary, pieces }: Tokenizer,
  spans: readonly { readonly text: string; readonly special: boolean }[],
): Generator<undefined, number[]> {
  const tokens: number[] = [];
  for (const span of spans) {
    let isFirst = true;
    for (const piece of span.special ? pieces.of(span.text) : [span.text]) {
      const last = tokens.at(-1);
      // SentencePiece puts a space in front of a text; in the middle of one there must be none. Later pieces begin with a control token.
      const continues = isFirst && last !== undefined && !vocabulary.isControl(last);
      const read = continues ? model.tokenizeContinuation(piece, span.special) : model.tokenize(piece, span.special);
      for (const token of read) tokens.push(token);
      isFirst = false;
      yield;
    }
  }
  return tokens;
}

function* fillInMiddle(
  tokenizer: Tokenizer,
  before: readonly number[],
  suffix: string,
): Generator<undefined, number[]> {
  const { prefix, suffix: suffixToken, middle } = tokenizer.model.tokens;
  if (prefix === null || suffixToken === null || middle === null)
    throw invalidRequest(
      "Unsupported parameter: 'suffix' is not supported with this model, which has no tokens to fill in the middle.",
      "suffix",
      "unsupported_parameter",
    );
  const after = yield* spanTokens(tokenizer, [{ text: suffix, special: false }]);
  return [prefix, ...before, suffixToken, ...after, middle];
}

function documentStart(model: NativeModel): number {
  const start = model.tokens.bos ?? model.tokens.eos;
  if (start === null) throw invalidRequest("The prompt is empty, and this model has no token to begin with.", "prompt");
  return start;
}
