import type { TimedText } from "../../inspect/inspected-request.ts";
import type { PackedText, PackedTexts } from "./packed-texts.ts";
import type { Page } from "./paged-tape.ts";
import { rounded } from "./rounded.ts";

/** Pieces of a text. */
export class TextPage implements Page<string, TimedText> {
  readonly #packedTexts: PackedTexts;
  readonly #times: number[] = [];
  /** As they came, while they are not packed. */
  #texts: string[] = [];
  /** All in one, and how long each is. */
  #packed: { readonly text: PackedText; readonly lengths: readonly number[] } | undefined;
  bytes = 0;
  characters = 0;

  constructor(packedTexts: PackedTexts) {
    this.#packedTexts = packedTexts;
  }

  get pieces(): number {
    return this.#times.length;
  }

  get isFull(): boolean {
    return this.#packed !== undefined;
  }

  add(ms: number, text: string, bytes: number): void {
    this.#times.push(ms);
    this.#texts.push(text);
    this.bytes += bytes;
    this.characters += text.length;
  }

  close(): void {
    if (this.#packed) return;
    const text = this.#packedTexts.pack(this.#texts.join(""), this.bytes);
    if (!text) return;
    this.#packed = { text, lengths: this.#texts.map(({ length }) => length) };
    this.#texts = [];
  }

  letGo(): void {
    this.#packed?.text.letGo();
    this.#texts = [];
  }

  shown(): TimedText[] {
    return this.#unpacked().map((text, at) => ({ ms: rounded(this.#times[at]), text }));
  }

  #unpacked(): readonly string[] {
    if (!this.#packed) return this.#texts;
    const text = this.#packed.text.read();
    let end = 0;
    return this.#packed.lengths.map((length) => text.slice(end, (end += length)));
  }
}
