import type { Format, Reasoning } from "../../../../text/formats/format.ts";
import { openReasoning } from "../../../../text/formats/reasoning.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

/*
 * Limits of an answer that are enforced token by token: a budget for reasoning, a ban on reasoning, and a budget for strings of JSON.
 */

/** The logit of a token that must come next; larger than any other. */
export const forcedLogit = 10_000;

type Phase = "reasoning" | "content" | "call";

export interface ReasoningBudgetOptions {
  /** Tokens of all reasoning of an answer. */
  readonly tokens: number;
  /** The tokens that close reasoning the first time, the second time, and so on; the last one applies to all further times. */
  readonly closings: readonly (readonly number[])[];
  /** The prompt ends with an opening marker. */
  readonly startsInReasoning: boolean;
}

/** Closes the reasoning of an answer when its budget is used up, by forcing the tokens of the closing marker. */
export class ReasoningBudget {
  readonly #closings: readonly (readonly number[])[];
  #left: number;
  #closed = 0;
  #before: Phase;
  /** The rest of a closing marker. */
  #forced: readonly number[] = [];
  /** The closing marker is complete, but the reader is still in the reasoning phase. */
  #isClosing = false;

  constructor({ tokens, closings, startsInReasoning }: ReasoningBudgetOptions) {
    this.#closings = closings;
    this.#left = tokens;
    this.#before = startsInReasoning ? "reasoning" : "content";
    if (startsInReasoning && tokens <= 0) this.#close();
  }

  /** The token that must come next; `undefined` if any may. */
  get forced(): number | undefined {
    return this.#forced[0];
  }

  /** Reads a sampled token. `phase`: that of the reader after the token. */
  read(token: number, phase: Phase): void {
    const wasReasoning = this.#before === "reasoning";
    this.#before = phase;
    if (phase !== "reasoning") this.#isClosing = false;
    if (this.#forced.length > 0) {
      // A grammar may forbid the marker here; then it is forced again after the next token.
      const isForced = token === this.#forced[0];
      this.#forced = isForced ? this.#forced.slice(1) : [];
      this.#isClosing = isForced && this.#forced.length === 0 && phase === "reasoning";
      return;
    }
    if (phase !== "reasoning" || this.#isClosing) return;
    if (wasReasoning) this.#left--;
    if (this.#left <= 0) this.#close();
  }

  /** Closes the reasoning before its budget is used up. Returns false if the answer is not reasoning, or its reasoning is being closed. */
  end(): boolean {
    if (this.#before !== "reasoning" || this.#isClosing || this.#forced.length > 0) return false;
    this.#close();
    return this.#forced.length > 0;
  }

  #close(): void {
    this.#forced = this.#closings[Math.min(this.#closed, this.#closings.length - 1)] ?? [];
    this.#closed++;
  }
}

/** What a ban needs of the vocabulary. */
type BanVocabulary = Pick<Vocabulary, "tokensThat" | "bytes">;

/**
 * Prevents a model from opening reasoning although the request turns it off, as some models do when a question asks for it ("Think step by
 * step."). It bans each token that would complete an opening marker except for its last character, because a marker that is cut there would
 * be visible. The ban ends with the first visible words, unless the format reads reasoning after them, too.
 */
export class ReasoningBan {
  readonly #openings: ReasoningOpenings;
  readonly #anywhere: boolean;
  /** The end of the text that may become a marker, with bytes as characters. */
  #tail = "";
  #isOver = false;

  constructor(openings: ReasoningOpenings, { anywhere = false }: Reasoning) {
    this.#openings = openings;
    this.#anywhere = anywhere;
  }

  /** Tokens that must not come next. */
  get banned(): readonly number[] {
    return this.#isOver ? [] : this.#openings.after(this.#tail);
  }

  /** Reads the bytes of a sampled token. */
  read(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const text = this.#tail + charactersOf(bytes);
    this.#tail = this.#openings.tailOf(text);
    if (!this.#anywhere && text.slice(0, text.length - this.#tail.length).trim() !== "") this.#isOver = true;
  }
}

/** The tokens that open reasoning in a format of a model. */
class ReasoningOpenings {
  readonly #tokens: BanVocabulary;
  /** Each marker without its last character. */
  readonly #prefixes: readonly string[];
  readonly #after = new Map<string, readonly number[]>();

  constructor(tokens: BanVocabulary, { open }: Reasoning) {
    this.#tokens = tokens;
    const markers = open.map((marker) => charactersOf(new TextEncoder().encode(marker.trim())));
    // A marker of one character has no prefix.
    this.#prefixes = markers.map((marker) => (marker.length > 1 ? marker.slice(0, -1) : marker));
  }

  /** The end of a text that may become a marker. */
  tailOf(text: string): string {
    const maxLength = this.#prefixes.reduce((max, { length }) => Math.max(max, length), 0);
    for (let length = Math.min(maxLength, text.length); length > 0; length--) {
      const tail = text.slice(text.length - length);
      if (this.#prefixes.some((prefix) => prefix.startsWith(tail))) return tail;
    }
    return "";
  }

  /** The tokens that would open reasoning after a text with this end. Scans the vocabulary once for each end. */
  after(tail: string): readonly number[] {
    let found = this.#after.get(tail);
    if (found === undefined) {
      found = this.#tokens.tokensThat((token) => {
        const text = tail + charactersOf(this.#tokens.bytes(token));
        return this.#prefixes.some((prefix) => text.includes(prefix));
      });
      this.#after.set(tail, found);
    }
    return found;
  }
}

/** Creates the ban for an answer; `undefined` if the format has no such marker, or if the prompt itself opens reasoning. */
export type BanReasoning = (format: Format, prefix: string) => ReasoningBan | undefined;

/** Creates bans for the answers of a model, which share the results of vocabulary scans. */
export function reasoningBans(tokens: BanVocabulary): BanReasoning {
  const openings = new WeakMap<Format, ReasoningOpenings>();
  return (format, prefix) => {
    const { reasoning } = format;
    if (format.kind !== "plain" || !reasoning || openReasoning(reasoning, prefix) !== null) return undefined;
    let known = openings.get(format);
    if (!known) openings.set(format, (known = new ReasoningOpenings(tokens, reasoning)));
    return new ReasoningBan(known, reasoning);
  };
}

function charactersOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** Ends strings of JSON that exceed a limit, by forcing the closing quote. */
export class StringBudget {
  readonly #limit: number;
  readonly #quote: number;
  #isInString = false;
  #isEscaped = false;
  #tokens = 0;

  /** `limit`: tokens of one string. `quote`: the token of `"`. */
  constructor(limit: number, quote: number) {
    this.#limit = limit;
    this.#quote = quote;
  }

  /** The token that must come next; `undefined` if any may. It is forced again if a grammar forbids it. */
  get forced(): number | undefined {
    return this.#isInString && !this.#isEscaped && this.#tokens >= this.#limit ? this.#quote : undefined;
  }

  /** Reads the text of a sampled token. `isJson`: the text is part of JSON, and not of reasoning. */
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
