import type { Format, Reasoning } from "../../../../formats/format.ts";
import { openThought } from "../../../../formats/reading/start.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

/** The bias of a token that must come: beyond what any logit can be. */
export const certain = 10_000;

type Phase = "reasoning" | "content" | "call";

export interface ReasoningBudgetOptions {
  /** How long a choice's thoughts may be together. */
  readonly tokens: number;
  /** The tokens that close a thought: the first time, …, and every further time. */
  readonly closings: readonly (readonly number[])[];
  /** The prompt has begun a thought. */
  readonly startsInReasoning: boolean;
}

/** Closes a choice's thoughts when they have been long enough: then it says which token must come next. */
export class ReasoningBudget {
  readonly #closings: readonly (readonly number[])[];
  #left: number;
  #closed = 0;
  #before: Phase;
  /** What is still to come of a closing. */
  #forced: readonly number[] = [];
  /** A thought was closed, and its reader has not left it yet. */
  #leaving = false;

  constructor({ tokens, closings, startsInReasoning: thinksAlready }: ReasoningBudgetOptions) {
    this.#closings = closings;
    this.#left = tokens;
    this.#before = thinksAlready ? "reasoning" : "content";
    if (thinksAlready && tokens <= 0) this.#close();
  }

  /** The token that must come next; undefined: any. */
  get forced(): number | undefined {
    return this.#forced[0];
  }

  /** A token came; `phase`: where the reader of the text is after it. */
  read(token: number, phase: Phase): void {
    const wasThinking = this.#before === "reasoning";
    this.#before = phase;
    if (phase !== "reasoning") this.#leaving = false;
    if (this.#forced.length > 0) {
      // A grammar may forbid the closing here; then it is tried again after the next token.
      const came = token === this.#forced[0];
      this.#forced = came ? this.#forced.slice(1) : [];
      this.#leaving = came && this.#forced.length === 0 && phase === "reasoning";
      return;
    }
    if (phase !== "reasoning" || this.#leaving) return;
    if (wasThinking) this.#left--;
    if (this.#left <= 0) this.#close();
  }

  #close(): void {
    this.#forced = this.#closings[Math.min(this.#closed, this.#closings.length - 1)] ?? [];
    this.#closed++;
  }
}

/** What a ban needs of the vocabulary. */
type Tokens = Pick<Vocabulary, "tokensThat" | "bytes">;

/**
 * Keeps a model that was told not to think from opening a thought all the same, as some do when a question asks for it ("Think step by
 * step."). Whatever tokens the marker is made of: one may not come that would complete it, but for its last character, since a marker
 * that is cut there would be shown. It ends with the first visible words, unless the format reads thoughts behind them, too.
 */
export class ReasoningBan {
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
export type BanReasoning = (format: Format, prefix: string) => ReasoningBan | undefined;

/** Makes bans for the choices of a model, which share what they know of its vocabulary. */
export function reasoningBans(tokens: Tokens): BanReasoning {
  const openers = new WeakMap<Format, ThoughtOpeners>();
  return (format, prefix) => {
    const { reasoning } = format;
    if (format.kind !== "plain" || !reasoning || openThought(reasoning, prefix) !== null) return undefined;
    let known = openers.get(format);
    if (!known) openers.set(format, (known = new ThoughtOpeners(tokens, reasoning)));
    return new ReasoningBan(known, reasoning);
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

/** Ends strings of JSON that have become too long: then it says that the quote must come next. */
export class StringBudget {
  readonly #limit: number;
  readonly #quote: number;
  #isInString = false;
  #isEscaped = false;
  #tokens = 0;

  /** `limit`: of one string, in tokens. `quote`: the token that says `"`. */
  constructor(limit: number, quote: number) {
    this.#limit = limit;
    this.#quote = quote;
  }

  /** The token that must come next; undefined: any. A grammar that forbids it has its way, and it is tried again. */
  get forced(): number | undefined {
    return this.#isInString && !this.#isEscaped && this.#tokens >= this.#limit ? this.#quote : undefined;
  }

  /** A token came that says `text`. `isJson`: it is part of JSON, and not of a thought. */
  read(text: string, isJson: boolean): void {
    if (!isJson) {
      this.#isInString = false;
      return;
    }
    for (const character of text) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === '"') {
        this.#isInString = !this.#isInString;
        this.#tokens = 0;
      } else if (character === "\\") this.#isEscaped = this.#isInString;
    }
    if (this.#isInString) this.#tokens++;
  }
}
