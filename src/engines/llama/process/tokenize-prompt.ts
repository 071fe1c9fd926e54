import { invalidRequest } from "../../../core/failure.ts";
import type { PromptInput } from "../preparing/prepared-request.ts";
import type { NativeModel, TokensAround } from "./c-api/native-model.ts";
import type { OneAtATime } from "./one-at-a-time.ts";
import type { Steps } from "./round-share.ts";
import { checkToken } from "./token-text.ts";
import type { TextPieces } from "./text-pieces.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** What makes tokens of text. */
export interface Tokenizer {
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  readonly pieces: TextPieces;
  /** Long texts are read in another thread; the model's passes need one, too. */
  readonly beside: OneAtATime;
}

/** A text of so many UTF-16 units is read in another thread: it takes longer than a step may. */
const longText = 16_384;
/** So many tokens are taken over in one step. */
const manyTokens = 16_384;

/**
 * A prompt's tokens. Spans that spell special tokens without meaning them are tokenized as plain text, the others with special tokens;
 * there is exactly one BOS where the tokenizer adds one or the template wrote one. An empty prompt is the beginning of a document.
 * Throws FailureError for token ids that the model does not have, which came as `param`, and for a suffix that it cannot fill in before.
 *
 * It pauses after each piece, because a long conversation takes seconds and the model's steps must not wait for it.
 */
export function* tokenizePrompt(tokenizer: Tokenizer, prompt: PromptInput, param = "prompt"): Steps<number[]> {
  const { model, vocabulary } = tokenizer;
  if (prompt.type === "tokens") {
    for (const token of prompt.tokens) checkToken(vocabulary, token, param);
    return prompt.tokens.length > 0 ? prompt.tokens.slice() : [documentStart(model)];
  }
  if (prompt.addSpecial !== undefined) return yield* bareTokens(tokenizer, prompt, prompt.addSpecial);
  const { bos } = model.tokens;
  const tokens = bos !== null && (prompt.bos || model.addsBos) ? [bos] : [];
  const around = prompt.suffix === undefined ? undefined : fillingTokens(model);
  if (around) tokens.push(around.prefix);
  // A client that writes the BOS itself into a completions prompt means the one that is there already.
  yield* addSpans(tokenizer, prompt.spans, tokens, tokens[0] === bos ? bos : null);
  if (around) {
    tokens.push(around.suffix);
    yield* addSpans(tokenizer, [{ text: prompt.suffix ?? "", special: false }], tokens);
    tokens.push(around.middle);
  }
  return tokens.length > 0 ? tokens : [documentStart(model)];
}

const nothingAround: TokensAround = { before: [], behind: [] };

/** The tokens of a text as it stands, with what the tokenizer puts around it only where that is asked for. */
function* bareTokens(
  tokenizer: Tokenizer,
  { spans }: Extract<PromptInput, { type: "spans" }>,
  addSpecial: boolean,
): Steps<number[]> {
  const { before, behind } = addSpecial ? tokenizer.model.around : nothingAround;
  const tokens = before.slice();
  // A client that writes them itself means those that are there already.
  const last = yield* addSpans(tokenizer, spans, tokens, before[0] ?? null);
  if (behind.at(-1) !== last) tokens.push(...behind);
  return tokens;
}

/**
 * Adds the tokens of spans; the last one of them, if they have any. `known`: a first token of theirs that is there already, and not to
 * come twice.
 */
function* addSpans(
  tokenizer: Tokenizer,
  spans: readonly { readonly text: string; readonly special: boolean }[],
  tokens: number[],
  known: number | null = null,
): Steps<number | undefined> {
  const { model, vocabulary, pieces } = tokenizer;
  let last: number | undefined;
  for (const { text, special } of spans) {
    let isFirst = true;
    for (const piece of special ? pieces.of(text) : [text]) {
      // SentencePiece puts a space in front of a text; in the middle of one there must be none. Later pieces begin with a control token.
      const continues = isFirst && last !== undefined && !vocabulary.isControl(last);
      const read =
        piece.length > longText
          ? yield* readBeside(tokenizer, piece, special, continues)
          : continues
            ? model.tokenizeContinuation(piece, special)
            : model.tokenize(piece, special);
      for (let at = last === undefined && read[0] === known ? 1 : 0; at < read.length; at++) {
        tokens.push(read[at] ?? 0);
        if (at % manyTokens === manyTokens - 1) yield;
      }
      last = read[read.length - 1] ?? last;
      isFirst = false;
      yield;
    }
  }
  return last;
}

function* readBeside(
  { model, beside }: Tokenizer,
  text: string,
  special: boolean,
  continues: boolean,
): Steps<ArrayLike<number>> {
  let tokens: ArrayLike<number> = [];
  const { ready, leave } = beside.enter();
  try {
    yield ready;
    yield model.tokenizeBeside(text, special, continues).then((read) => void (tokens = read));
  } finally {
    leave();
  }
  return tokens;
}

/** The tokens around a text and what is to come before another one. */
function fillingTokens({
  tokens: { prefix, suffix, middle },
}: NativeModel): Record<"prefix" | "suffix" | "middle", number> {
  if (prefix !== null && suffix !== null && middle !== null) return { prefix, suffix, middle };
  throw invalidRequest(
    "Unsupported parameter: 'suffix' is not supported with this model, which has no tokens to fill in the middle.",
    "suffix",
    "unsupported_parameter",
  );
}

function documentStart(model: NativeModel): number {
  const start = model.tokens.bos ?? model.tokens.eos;
  if (start === null) throw invalidRequest("The prompt is empty, and this model has no token to begin with.", "prompt");
  return start;
}
