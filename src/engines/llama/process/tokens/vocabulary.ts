import { invalidRequest } from "../../../../wire/core/failure.ts";
import { isRow } from "../../vision/prompt-images.ts";

/** Flags of a token (llama.h, `llama_token_attr`). */
const flag = { unknown: 1, unused: 2, control: 8, userDefined: 16, byte: 32 } as const;

const noBytes = new Uint8Array();

/** A loaded model, as far as a vocabulary reads it. */
export interface VocabularySource {
  readonly vocabularySize: number;
  readonly tokens: { readonly bos: number | null; readonly eos: number | null; readonly eot: number | null };
  metadata(key: string): string | null;
  entry(token: number): string;
  attributes(token: number): number;
  endsGeneration(token: number): boolean;
  tokenBytes(token: number): Uint8Array;
}

/**
 * The exact bytes of each token, read from the model's vocabulary. Two spellings are decoded here: the byte-level alphabet of "gpt2"
 * tokenizers, and SentencePiece's `▁` for a space with `<0x0A>` for single bytes. For others, llama.cpp's detokenizer is called.
 */
export class Vocabulary {
  readonly #model: VocabularySource;
  readonly #texts: readonly string[];
  readonly #flags: readonly number[];
  readonly #byteLevel: boolean;
  readonly #sentencePiece: boolean;
  readonly #bytes: (Uint8Array | undefined)[] = [];
  readonly #endsGeneration = new Map<number, boolean>();
  #scans = 0;

  constructor(model: VocabularySource) {
    const all = Array.from({ length: model.vocabularySize }, (_, token) => token);
    const kind = model.metadata("tokenizer.ggml.model") ?? "";
    this.#model = model;
    this.#texts = all.map((token) => model.entry(token));
    this.#flags = all.map((token) => model.attributes(token));
    this.#byteLevel = kind === "gpt2" && !this.#flags.some((flags) => (flags & flag.byte) !== 0);
    this.#sentencePiece = !this.#byteLevel && ["llama", "gpt2", "gemma4", "t5"].includes(kind);
  }

  /** The text of the model's BOS; "" if it has none. */
  get bosText(): string {
    const { bos } = this.#model.tokens;
    return bos === null ? "" : this.entry(bos);
  }

  get size(): number {
    return this.#texts.length;
  }

  /** Number of scans of the whole vocabulary. */
  get scans(): number {
    return this.#scans;
  }

  /** Returns the tokens for which `matches` is true. Scans the whole vocabulary, so cache the result. */
  tokensThat(matches: (token: number) => boolean): readonly number[] {
    this.#scans++;
    return Array.from({ length: this.size }, (_, token) => token).filter(matches);
  }

  /** Control tokens structure a conversation. Their text is visible only where a format reads it. */
  isControl(token: number): boolean {
    return this.#is(token, flag.control | flag.unknown);
  }

  /** The token ends the answer (EOS, EOT and similar tokens). */
  endsGeneration(token: number): boolean {
    let ends = this.#endsGeneration.get(token);
    if (ends === undefined) this.#endsGeneration.set(token, (ends = this.#model.endsGeneration(token)));
    return ends;
  }

  /** All tokens that end an answer. */
  endTokens(): readonly number[] {
    // Only control and user-defined tokens can end an answer, and a vocabulary has few of them.
    const candidates = [this.#model.tokens.eos, this.#model.tokens.eot];
    for (let token = 0; token < this.size; token++)
      if (this.#is(token, flag.control | flag.userDefined)) candidates.push(token);
    return [...new Set(candidates)].filter((token): token is number => token !== null && this.endsGeneration(token));
  }

  /** The texts of all control tokens. */
  controlTexts(): string[] {
    return this.#textsOf(flag.control);
  }

  /** The texts of user-defined tokens, which a tokenizer looks for first. */
  userDefinedTexts(): string[] {
    return this.#textsOf(flag.userDefined);
  }

  #textsOf(flags: number): string[] {
    return this.#texts.filter((text, token) => this.#is(token, flags) && text !== "");
  }

  /** Whether the token has one of these flags. */
  #is(token: number, flags: number): boolean {
    return ((this.#flags[token] ?? 0) & flags) !== 0;
  }

  /** The length of the longest token in UTF-16 units. */
  longestToken(): number {
    return this.#texts.reduce((longest, text) => Math.max(longest, text.length), 1);
  }

  /** The entry of the vocabulary, which is the name of a control token. */
  entry(token: number): string {
    return this.#texts[token] ?? "";
  }

  /** The exact bytes of a token; for a control token, those of its name; none for a row of an image. */
  bytes(token: number): Uint8Array {
    if (isRow(token)) return noBytes;
    return (this.#bytes[token] ??= this.#bytesOf(token));
  }

  #bytesOf(token: number): Uint8Array {
    const text = this.#texts[token] ?? "";
    if (this.#is(token, flag.unused)) return new Uint8Array();
    if (this.#is(token, flag.control | flag.userDefined | flag.unknown)) return utf8.encode(text);
    if (this.#byteLevel) return byteLevelBytes(text);
    if (this.#sentencePiece) {
      const hex = this.#is(token, flag.byte) ? /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1] : undefined;
      return hex === undefined ? utf8.encode(text.replaceAll("\u2581", " ")) : Uint8Array.of(Number.parseInt(hex, 16));
    }
    return this.#model.tokenBytes(token);
  }
}

const utf8 = new TextEncoder();

/** GPT-2's alphabet, inverted: printable Latin-1 characters are their own bytes; U+0100, U+0101, … are the 68 other bytes in order. */
const byteOfCharacter: ReadonlyMap<string, number> = new Map(
  (() => {
    let next = 0x100;
    return Array.from({ length: 256 }, (_, byte): [string, number] => {
      const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      return [String.fromCodePoint(printable ? byte : next++), byte];
    });
  })(),
);

function byteLevelBytes(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of text) {
    const byte = byteOfCharacter.get(character);
    // A few entries were added to vocabularies as plain text.
    if (byte === undefined) bytes.push(...utf8.encode(character));
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

/**
 * Decodes the bytes of tokens as text. A character whose bytes are spread over several tokens is emitted with its last byte. Invalid bytes
 * become U+FFFD, once for each maximal part, as in the WHATWG decoder.
 */
export class TokenDecoder {
  #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** Returns the text that these bytes complete; "" while a character is incomplete. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** Returns the rest at the end of the text. */
  end(): string {
    return this.#decoder.decode();
  }
}

/** The bytes of tokens, including control tokens. Throws FailureError for an id that the model does not have. */
export function bytesOf(vocabulary: Vocabulary, tokens: readonly number[]): Buffer {
  for (const token of tokens) checkToken(vocabulary, token, "tokens");
  return Buffer.concat(tokens.map((token) => vocabulary.bytes(token)));
}

/** Throws FailureError 400 for an id that the model does not have. `param`: the parameter that contains it. */
export function checkToken({ size }: Vocabulary, token: number, param: string): void {
  if (token < size) return;
  throw invalidRequest(`Invalid token id: ${token}. This model has ${size} tokens.`, param, "invalid_value");
}
