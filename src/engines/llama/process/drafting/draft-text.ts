import type { NativeModel } from "../c-api/native-model.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

/** A token with the draft model's probability for it. */
export interface DraftToken {
  readonly token: number;
  readonly confidence: number;
}

/** The text of one answer and its prompt in the draft model's tokens. */
export interface DraftText {
  /**
   * Reads what is new in the tokens of prompt and answer. Returns all of the text in the draft model's tokens; `undefined` if a token has no
   * text, as that of an image. Only tokens at the end differ from those of the last call.
   */
  read(tokens: readonly number[]): readonly number[] | undefined;
  /** The tokens of the answering model for a draft after the text that was read last. */
  translate(draft: readonly DraftToken[]): readonly DraftToken[];
}

/** Both models have the same tokens. */
class SameTokens implements DraftText {
  readonly #size: number;
  #checked = 0;
  #hasOther = false;

  /** `size`: tokens that both vocabularies have. */
  constructor(size: number) {
    this.#size = size;
  }

  read(tokens: readonly number[]): readonly number[] | undefined {
    for (; this.#checked < tokens.length; this.#checked++) {
      const token = tokens[this.#checked] ?? 0;
      if (token < 0 || token >= this.#size) this.#hasOther = true;
    }
    return this.#hasOther ? undefined : tokens;
  }

  translate(draft: readonly DraftToken[]): readonly DraftToken[] {
    const other = draft.findIndex(({ token }) => token >= this.#size);
    return other < 0 ? draft : draft.slice(0, other);
  }
}

export interface TokenizedModel {
  readonly model: Pick<NativeModel, "tokenizeContinuation">;
  readonly vocabulary: Pick<Vocabulary, "bytes" | "size">;
}

/**
 * The models have different tokens: the text is tokenized again in each direction. New text is tokenized as a continuation, except where it
 * is what the draft model itself has drafted.
 */
class OtherTokens implements DraftText {
  readonly #target: TokenizedModel;
  readonly #draft: TokenizedModel;
  readonly #tokens: number[] = [];
  /** Bytes of a character that is not complete. */
  #rest: Uint8Array = new Uint8Array();
  #read = 0;
  #hasOther = false;
  #drafted: readonly number[] = [];

  constructor(target: TokenizedModel, draft: TokenizedModel) {
    this.#target = target;
    this.#draft = draft;
  }

  read(tokens: readonly number[]): readonly number[] | undefined {
    const { vocabulary } = this.#target;
    const parts = [this.#rest];
    for (; this.#read < tokens.length; this.#read++) {
      const token = tokens[this.#read] ?? 0;
      if (token < 0 || token >= vocabulary.size) this.#hasOther = true;
      else parts.push(vocabulary.bytes(token));
    }
    if (this.#hasOther) return undefined;
    let bytes: Uint8Array = Buffer.concat(parts);
    if (this.#rest.length === 0) bytes = this.#takeDrafted(bytes);
    this.#drafted = [];
    const length = completeLength(bytes);
    this.#rest = bytes.slice(length);
    if (length > 0) {
      const text = utf8.decode(bytes.subarray(0, length));
      for (const token of this.#draft.model.tokenizeContinuation(text, true)) this.#tokens.push(token);
    }
    return this.#rest.length > 0 ? undefined : this.#tokens;
  }

  /** Reads the tokens of the last draft that the text continues with. Returns the rest of the text. */
  #takeDrafted(bytes: Uint8Array): Uint8Array {
    let [end, whole] = [0, 0];
    let taken: number[] = [];
    for (const token of this.#drafted) {
      const own = this.#draft.vocabulary.bytes(token);
      if (end + own.length > bytes.length || own.some((byte, at) => bytes[end + at] !== byte)) break;
      end += own.length;
      taken.push(token);
      // A part of a character is read again, with the rest of it.
      if (completeLength(bytes.subarray(0, end)) !== end) continue;
      whole = end;
      this.#tokens.push(...taken);
      taken = [];
    }
    return bytes.subarray(whole);
  }

  translate(draft: readonly DraftToken[]): readonly DraftToken[] {
    const { model, vocabulary } = this.#target;
    this.#drafted = draft.map(({ token }) => token);
    const parts = draft.map(({ token }) => this.#draft.vocabulary.bytes(token));
    const bytes = Buffer.concat(parts);
    const length = completeLength(bytes);
    if (length === 0) return [];
    const translated: DraftToken[] = [];
    let end = 0;
    let drafted = 0;
    let draftedEnd = 0;
    for (const token of model.tokenizeContinuation(utf8.decode(bytes.subarray(0, length)), true)) {
      end += vocabulary.bytes(token).length;
      // A token is as likely as the draft tokens that end in it.
      let confidence = 1;
      while (draftedEnd < end && drafted < draft.length) {
        confidence *= draft[drafted]?.confidence ?? 0;
        draftedEnd += parts[drafted++]?.length ?? 0;
      }
      translated.push({ token, confidence });
    }
    return translated;
  }
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** The number of bytes without an incomplete character at the end. */
function completeLength(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    // A first byte says how many follow: 110…, 1110…, 11110….
    if (byte >= 0xc0) return Math.clz32(~byte << 24) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** llama.cpp's limit for the difference in size of two vocabularies that are used as the same (common/speculative.cpp). */
const maxSizeDifference = 128;
/** A tokenizer that does not keep this text cannot be translated to. */
const probe = 'Hello, World!\n  tabs\tand 12 é ü 世界 {"a": [1]}';

/**
 * Returns a function that makes the `DraftText` of an answer: with the tokens as they are where both vocabularies have the same, otherwise
 * by tokenizing again. Throws an Error of one sentence if the draft model's tokenizer does not keep a text as it is.
 */
export function draftTexts(
  target: TokenizedModel & { readonly vocabulary: Pick<Vocabulary, "entry"> },
  draft: TokenizedModel & { readonly vocabulary: Pick<Vocabulary, "entry"> },
): () => DraftText {
  const common = Math.min(target.vocabulary.size, draft.vocabulary.size);
  if (Math.abs(target.vocabulary.size - draft.vocabulary.size) <= maxSizeDifference) {
    let same = 0;
    while (same < common && target.vocabulary.entry(same) === draft.vocabulary.entry(same)) same++;
    if (same === common) return () => new SameTokens(common);
  }
  for (const { model, vocabulary } of [target, draft]) {
    const bytes = Buffer.concat(model.tokenizeContinuation(probe, false).map((token) => vocabulary.bytes(token)));
    if (bytes.toString() !== probe)
      throw new Error("its tokens differ from the model's, and text cannot be translated between them");
  }
  return () => new OtherTokens(target, draft);
}
