import { invalidRequest } from "../../../../core/failure.ts";
import type { PromptInput } from "../../preparing/prepared-request.ts";
import type { NativeModel, AddedTokens } from "../c-api/native-model.ts";
import type { AsyncLock, AsyncSteps } from "../event-loop-share.ts";
import { checkToken, type Vocabulary } from "./vocabulary.ts";

/** What makes tokens of text. */
export interface Tokenizer {
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  readonly splitter: TextSplitter;
  /** Long texts are read in another thread; the model's passes need one, too. */
  readonly lock: AsyncLock;
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
export function* tokenizePrompt(tokenizer: Tokenizer, prompt: PromptInput, param = "prompt"): AsyncSteps<number[]> {
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

const nothingAround: AddedTokens = { before: [], after: [] };

/** The tokens of a text as it stands, with what the tokenizer puts around it only where that is asked for. */
function* bareTokens(
  tokenizer: Tokenizer,
  { spans }: Extract<PromptInput, { type: "spans" }>,
  addSpecial: boolean,
): AsyncSteps<number[]> {
  const { before, after: behind } = addSpecial ? tokenizer.model.addedTokens : nothingAround;
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
): AsyncSteps<number | undefined> {
  const { model, vocabulary, splitter: pieces } = tokenizer;
  let last: number | undefined;
  for (const { text, special } of spans) {
    let isFirst = true;
    for (const piece of special ? pieces.split(text) : [text]) {
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
  { model, lock: beside }: Tokenizer,
  text: string,
  special: boolean,
  continues: boolean,
): AsyncSteps<ArrayLike<number>> {
  let tokens: ArrayLike<number> = [];
  const { ready, leave } = beside.acquire();
  try {
    yield ready;
    yield model.tokenizeAsync(text, special, continues).then((read) => void (tokens = read));
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

/** Texts up to this length, in UTF-16 units, stay one piece: they take too little time to be worth cutting. */
const shortText = 4096;

/** Cuts long texts into pieces whose tokens, one after another, are those of the text. */
export class TextSplitter {
  readonly #vocabulary: Vocabulary;
  #special: { readonly pattern: RegExp; readonly control: ReadonlySet<string> } | undefined;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /**
   * A text's pieces, each but the first with a control token at its beginning. llama.cpp cuts a text at its special tokens before it
   * looks for others (`tokenizer_st_partition`), so no token spans such a place. A cut after a control token would be wrong: some of them
   * swallow the white space that follows.
   */
  split(text: string): readonly string[] {
    if (text.length <= shortText) return [text];
    const { pattern, control } = (this.#special ??= specialTexts(this.#vocabulary));
    const pieces: string[] = [];
    let start = 0;
    for (const { 0: found, index } of text.matchAll(pattern)) {
      if (!control.has(found) || index === start) continue;
      pieces.push(text.slice(start, index));
      start = index;
    }
    pieces.push(text.slice(start));
    return pieces;
  }
}

/** All texts that llama.cpp cuts at, the longest first, as there; and which of them are control tokens. */
function specialTexts(vocabulary: Vocabulary): { pattern: RegExp; control: ReadonlySet<string> } {
  const control = new Set(vocabulary.controlTexts());
  const all = [...new Set([...control, ...vocabulary.userDefinedTexts()])].sort((a, b) => b.length - a.length);
  // A pattern without alternatives would match everywhere.
  const alternatives = all.length === 0 ? ["(?!)"] : all.map(literal);
  return { pattern: new RegExp(alternatives.join("|"), "g"), control };
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}
