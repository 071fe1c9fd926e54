import { invalidRequest } from "../../../../wire/core/failure.ts";
import type { PromptInput } from "../../preparing/prepared-request.ts";
import type { EncoderProcess, ImageOrigin, KnownImage } from "../../vision/encoder-process.ts";
import { placeImage, type PlacedImage } from "../../vision/prompt-images.ts";
import type { AddedTokens, NativeModel } from "../c-api/native-model.ts";
import type { AsyncLock, AsyncSteps } from "../event-loop-share.ts";
import { checkToken, type Vocabulary } from "./vocabulary.ts";

/** What tokenization needs of a model. */
export interface Tokenizer {
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  readonly splitter: TextSplitter;
  /** At most one long text at a time is tokenized in another thread, because decodes need a thread, too. */
  readonly lock: AsyncLock;
  /** Absent if the model does not take images. */
  readonly encoder?: EncoderProcess | undefined;
  /** Rows that are decoded together at most. */
  readonly maxRows?: number;
}

/** Longer texts, in UTF-16 units, are tokenized in another thread: they take longer than a step may. */
const maxSyncLength = 16_384;
/** Tokens that are copied in one step. */
const tokensPerStep = 16_384;

/**
 * Tokenizes a prompt. Spans that contain the text of special tokens without meaning them are tokenized as plain text, the others with
 * special tokens. The result has exactly one BOS if the tokenizer adds one or the template has written one. An empty prompt becomes the
 * token that starts a document.
 *
 * The images of the prompt are added to `images`; `origin`: of the request. Throws FailureError for an image that cannot be read, for token ids
 * that the model does not have (as `param`), and for a suffix that the model does not support.
 */
export function* tokenizePrompt(
  tokenizer: Tokenizer,
  prompt: PromptInput,
  param = "prompt",
  images: PlacedImage[] = [],
  origin: ImageOrigin = {},
): AsyncSteps<number[]> {
  const { model, vocabulary } = tokenizer;
  if (prompt.type === "tokens") {
    for (const token of prompt.tokens) checkToken(vocabulary, token, param);
    return prompt.tokens.length > 0 ? prompt.tokens.slice() : [documentStart(model)];
  }
  if (prompt.addSpecial !== undefined) return yield* textTokens(tokenizer, prompt, prompt.addSpecial);
  const { bos } = model.tokens;
  const tokens = bos !== null && (prompt.bos || model.addsBos) ? [bos] : [];
  const infill = prompt.suffix === undefined ? undefined : infillTokens(model);
  if (infill) tokens.push(infill.prefix);
  // A client that writes the BOS into a completions prompt means the one that is there already.
  const present = tokens[0] === bos ? bos : null;
  if (prompt.media) yield* addSpansAndMedia(tokenizer, prompt, tokens, images, present, origin);
  else yield* addSpans(tokenizer, prompt.spans, tokens, present);
  if (infill) {
    tokens.push(infill.suffix);
    yield* addSpans(tokenizer, [{ text: prompt.suffix ?? "", special: false }], tokens);
    tokens.push(infill.middle);
  }
  return tokens.length > 0 ? tokens : [documentStart(model)];
}

const noTokens: AddedTokens = { before: [], after: [] };

/** The tokens of a text as it is, with those that the tokenizer adds to a whole text if `addSpecial` is true. */
function* textTokens(
  tokenizer: Tokenizer,
  { spans }: Extract<PromptInput, { type: "spans" }>,
  addSpecial: boolean,
): AsyncSteps<number[]> {
  const { before, after } = addSpecial ? tokenizer.model.addedTokens : noTokens;
  const tokens = before.slice();
  // A client that writes these tokens into the text means those that are there already.
  const last = yield* addSpans(tokenizer, spans, tokens, before[0] ?? null);
  if (after.at(-1) !== last) tokens.push(...after);
  return tokens;
}

/**
 * Adds the tokens of spans to `tokens`, and pauses after each chunk, because a long conversation takes seconds. Returns the last added
 * token. `present`: a token that is there already, and is left out if the spans start with it.
 */
function* addSpans(
  tokenizer: Tokenizer,
  spans: readonly { readonly text: string; readonly special: boolean }[],
  tokens: number[],
  present: number | null = null,
): AsyncSteps<number | undefined> {
  const { model, vocabulary, splitter } = tokenizer;
  let last: number | undefined;
  for (const { text, special } of spans) {
    let isFirst = true;
    for (const chunk of special ? splitter.split(text) : [text]) {
      // SentencePiece adds a space before a text, which is wrong within one. Further chunks start with a control token.
      const continues = isFirst && last !== undefined && !vocabulary.isControl(last);
      const read =
        chunk.length > maxSyncLength
          ? yield* tokenizeAsync(tokenizer, chunk, special, continues)
          : continues
            ? model.tokenizeContinuation(chunk, special)
            : model.tokenize(chunk, special);
      for (let at = last === undefined && read[0] === present ? 1 : 0; at < read.length; at++) {
        tokens.push(read[at] ?? 0);
        if (at % tokensPerStep === tokensPerStep - 1) yield;
      }
      last = read[read.length - 1] ?? last;
      isFirst = false;
      yield;
    }
  }
  return last;
}

/** Adds the tokens of spans with the images between them. A text after an image is tokenized as the start of one, as libmtmd does. */
function* addSpansAndMedia(
  tokenizer: Tokenizer,
  { spans, media: files = [] }: Extract<PromptInput, { type: "spans" }>,
  tokens: number[],
  images: PlacedImage[],
  present: number | null,
  origin: ImageOrigin,
): AsyncSteps<void> {
  const { encoder } = tokenizer;
  if (!encoder) throw new Error("The model takes text only.");
  let from = 0;
  for (const [at, { medium }] of spans.entries()) {
    if (medium === undefined) continue;
    yield* addSpans(tokenizer, spans.slice(from, at), tokens, from === 0 ? present : null);
    const file = files[medium];
    if (!file) throw new Error(`The prompt has no medium ${medium}.`);
    let known: KnownImage | undefined;
    yield encoder.read(file.data, file.path, origin).then((read) => void (known = read));
    if (!known) continue;
    checkRows(known, tokenizer.maxRows ?? Infinity, file.path);
    placeImage(known, tokens, images);
    from = at + 1;
  }
  yield* addSpans(tokenizer, spans.slice(from), tokens, from === 0 ? present : null);
}

/** Throws FailureError for rows that attend to later ones and do not fit into one decode. */
function checkRows({ chunks }: KnownImage, max: number, param: string): void {
  for (const chunk of chunks)
    if ("count" in chunk && chunk.nonCausal && chunk.count > max)
      throw invalidRequest(
        `It takes ${chunk.count} tokens that this model reads in one step, and a step has ${max}. Use a smaller one, or --batch-size ${chunk.count}.`,
        param,
        "image_too_large",
      );
}

function* tokenizeAsync(
  { model, lock }: Tokenizer,
  text: string,
  special: boolean,
  continues: boolean,
): AsyncSteps<ArrayLike<number>> {
  let tokens: ArrayLike<number> = [];
  const { ready, release } = lock.acquire();
  try {
    yield ready;
    yield model.tokenizeAsync(text, special, continues).then((read) => void (tokens = read));
  } finally {
    release();
  }
  return tokens;
}

/** The tokens of fill-in-the-middle prompts. */
function infillTokens({
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

/** Texts up to this length, in UTF-16 units, are not split. */
const minSplitLength = 4096;

/** Splits long texts into chunks whose tokens, concatenated, are those of the text. */
export class TextSplitter {
  readonly #vocabulary: Vocabulary;
  #special: { readonly pattern: RegExp; readonly control: ReadonlySet<string> } | undefined;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /**
   * Splits a text before control tokens. llama.cpp splits a text at its special tokens before it looks for others
   * (`tokenizer_st_partition`), so no token spans these positions. A split after a control token would be wrong: some of them consume the
   * white space that follows.
   */
  split(text: string): readonly string[] {
    if (text.length <= minSplitLength) return [text];
    const { pattern, control } = (this.#special ??= specialTexts(this.#vocabulary));
    const chunks: string[] = [];
    let start = 0;
    for (const { 0: found, index } of text.matchAll(pattern)) {
      if (!control.has(found) || index === start) continue;
      chunks.push(text.slice(start, index));
      start = index;
    }
    chunks.push(text.slice(start));
    return chunks;
  }
}

/** All texts at which llama.cpp splits, the longest first, as there; and those that are control tokens. */
function specialTexts(vocabulary: Vocabulary): { pattern: RegExp; control: ReadonlySet<string> } {
  const control = new Set(vocabulary.controlTexts());
  const all = [...new Set([...control, ...vocabulary.userDefinedTexts()])].sort((a, b) => b.length - a.length);
  // A pattern without alternatives would match everywhere.
  const alternatives = all.length === 0 ? ["(?!)"] : all.map(escaped);
  return { pattern: new RegExp(alternatives.join("|"), "g"), control };
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}
