import type { LlamaModel, Token } from "node-llama-cpp";

/** Token types of the GGUF key `tokenizer.ggml.token_type`. */
const tokenType = { unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/**
 * What each token says, in exact bytes, read from the GGUF's own vocabulary: the library's detokenizer answers with text, in which the
 * parts of a split character are already lost. Two spellings cover what there is: the byte-level alphabet of "gpt2" tokenizers, and
 * SentencePiece's `▁` for a space with `<0x0A>` for single bytes. A tokenizer of another kind is asked token by token.
 */
export class Vocabulary {
  readonly #model: LlamaModel;
  readonly #texts: readonly string[];
  readonly #types: readonly number[];
  readonly #byteLevel: boolean;
  readonly #sentencePiece: boolean;
  readonly #bytes: (Uint8Array | undefined)[] = [];
  readonly #endsGeneration = new Map<Token, boolean>();
  #scans = 0;

  constructor(model: LlamaModel) {
    const tokenizer = model.fileInfo.metadata.tokenizer;
    this.#model = model;
    this.#texts = tokenizer.ggml.tokens;
    this.#types = tokenizer.ggml.token_type ?? [];
    this.#byteLevel = tokenizer.ggml.model === "gpt2" && !this.#types.includes(tokenType.byte);
    this.#sentencePiece = !this.#byteLevel && ["llama", "gpt2", "gemma4", "t5"].includes(tokenizer.ggml.model);
  }

  get size(): number {
    return this.#texts.length;
  }

  /** How often all tokens were looked at for a question that a grammar asked. */
  get scans(): number {
    return this.#scans;
  }

  /** The tokens that `matches` is true of. All are looked at: keep the answer. */
  tokensThat(matches: (token: Token) => boolean): readonly Token[] {
    this.#scans++;
    return Array.from({ length: this.size }, (_, token) => token as Token).filter(matches);
  }

  /** Control tokens structure a conversation; their text is shown only where a format reads it. */
  isControl(token: Token): boolean {
    return this.#types[token] === tokenType.control || this.#types[token] === tokenType.unknown;
  }

  /** The turn ends with this token (EOS, EOT and their like). */
  endsGeneration(token: Token): boolean {
    let ends = this.#endsGeneration.get(token);
    if (ends === undefined) this.#endsGeneration.set(token, (ends = this.#model.isEogToken(token)));
    return ends;
  }

  /** All tokens that end a turn. */
  endTokens(): readonly Token[] {
    // Only control and user-defined tokens can be ends, and a vocabulary has few of them.
    const candidates = [this.#model.tokens.eos, this.#model.tokens.eot];
    this.#types.forEach((type, token) => {
      if (type === tokenType.control || type === tokenType.userDefined) candidates.push(token as Token);
    });
    return [...new Set(candidates)].filter((token): token is Token => token !== null && this.endsGeneration(token));
  }

  /** Texts of all control tokens. */
  controlTexts(): string[] {
    return this.#textsOf(tokenType.control);
  }

  /** Texts of the tokens that were added to the vocabulary whole; a tokenizer looks for them first. */
  userDefinedTexts(): string[] {
    return this.#textsOf(tokenType.userDefined);
  }

  #textsOf(type: number): string[] {
    return this.#texts.filter((text, token) => this.#types[token] === type && text !== "");
  }

  /** No token stands for more UTF-16 units of text than this. */
  longestToken(): number {
    return this.#texts.reduce((longest, text) => Math.max(longest, text.length), 1);
  }

  /** The entry itself: a control token's name. */
  entry(token: Token): string {
    return this.#texts[token] ?? "";
  }

  /** The exact bytes that the token stands for, control tokens included. */
  bytes(token: Token): Uint8Array {
    return (this.#bytes[token] ??= this.#bytesOf(token));
  }

  #bytesOf(token: Token): Uint8Array {
    const text = this.#texts[token] ?? "";
    const type = this.#types[token];
    if (type === tokenType.unused) return new Uint8Array();
    if (type === tokenType.control || type === tokenType.userDefined || type === tokenType.unknown)
      return utf8.encode(text);
    if (this.#byteLevel) return byteLevelBytes(text);
    if (this.#sentencePiece) {
      const hex = type === tokenType.byte || type === undefined ? /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1] : undefined;
      return hex === undefined ? utf8.encode(text.replaceAll("\u2581", " ")) : Uint8Array.of(Number.parseInt(hex, 16));
    }
    return utf8.encode(this.#model.detokenize([token], true));
  }
}

const utf8 = new TextEncoder();

/** GPT-2's alphabet, backwards: printable Latin-1 stands for itself, the 68 other bytes for U+0100, U+0101, … in order. */
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
    // Vocabularies hold a few entries that were added as plain text.
    if (byte === undefined) bytes.push(...utf8.encode(character));
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
