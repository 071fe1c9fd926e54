import type { Vocabulary } from "./vocabulary.ts";

/** Texts up to this length, in UTF-16 units, stay one piece: they take too little time to be worth cutting. */
const shortText = 4096;

/** Cuts long texts into pieces whose tokens, one after another, are those of the text. */
export class TextPieces {
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
  of(text: string): readonly string[] {
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
