import type { Format, Reasoning } from "../../../formats/format.ts";
import { openThought } from "../../../formats/reading/start.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** What a ban needs of the vocabulary. */
type Tokens = Pick<Vocabulary, "tokensThat" | "bytes">;

/**
 * Keeps a model that was told not to think from opening a thought all the same, as some do when a question asks for it ("Think step by
 * step."). Whatever tokens the marker is made of: one may not come that would complete it, but for its last character, since a marker
 * that is cut there would be shown. It ends with the first visible words, unless the format reads thoughts behind them, too.
 */
export class ThoughtBan {
  readonly #openers: ThoughtOpeners;
  readonly #anywhere: boolean;
  /** What was written, as far as it matters: bytes as characters. */
  #tail = "";
  #isOver = false;

  constructor(openers: ThoughtOpeners, { anywhere = false }: Reasoning) {
    this.#openers = openers;
    this.#anywhere = anywhere;
  }

  /** Tokens that must not come next. */
  get banned(): readonly number[] {
    return this.#isOver ? none : this.#openers.after(this.#tail);
  }

  /** A token of these bytes came. */
  read(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const written = this.#tail + charactersOf(bytes);
    this.#tail = this.#openers.tailOf(written);
    if (!this.#anywhere && written.slice(0, written.length - this.#tail.length).trim() !== "") this.#isOver = true;
  }
}

/** Which tokens open a thought, of one model and format. */
class ThoughtOpeners {
  readonly #tokens: Tokens;
  /** All of each marker but its last character. */
  readonly #beginnings: readonly string[];
  readonly #after = new Map<string, readonly number[]>();

  constructor(tokens: Tokens, { open }: Reasoning) {
    this.#tokens = tokens;
    this.#beginnings = open.map((marker) => charactersOf(new TextEncoder().encode(marker.trim()))).map(withoutLast);
  }

  /** The end of a text that may become a marker. */
  tailOf(text: string): string {
    const longest = this.#beginnings.reduce((most, { length }) => Math.max(most, length), 0);
    for (let length = Math.min(longest, text.length); length > 0; length--) {
      const tail = text.slice(text.length - length);
      if (this.#beginnings.some((beginning) => beginning.startsWith(tail))) return tail;
    }
    return "";
  }

  /** The tokens that would open a thought behind such an end. All tokens are looked at, once for each. */
  after(tail: string): readonly number[] {
    let found = this.#after.get(tail);
    if (found === undefined) {
      found = this.#tokens.tokensThat((token) => {
        const text = tail + charactersOf(this.#tokens.bytes(token));
        return this.#beginnings.some((beginning) => text.includes(beginning));
      });
      this.#after.set(tail, found);
    }
    return found;
  }
}

/** The ban for one choice; undefined: the format has no such marker, or the prompt's end has opened a thought itself. */
export type BanThought = (format: Format, prefix: string) => ThoughtBan | undefined;

/** Makes bans for the choices of a model, which share what they know of its vocabulary. */
export function thoughtBans(tokens: Tokens): BanThought {
  const openers = new WeakMap<Format, ThoughtOpeners>();
  return (format, prefix) => {
    const { reasoning } = format;
    if (format.kind !== "plain" || !reasoning || openThought(reasoning, prefix) !== null) return undefined;
    let known = openers.get(format);
    if (!known) openers.set(format, (known = new ThoughtOpeners(tokens, reasoning)));
    return new ThoughtBan(known, reasoning);
  };
}

const none: readonly number[] = [];

function charactersOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** A marker of one character has no beginning that is not it. */
function withoutLast(marker: string): string {
  return marker.length > 1 ? marker.slice(0, -1) : marker;
}
