import { type ReaderPlace, callHasBegun } from "../../../../formats/grammar/call-has-begun.ts";
import type { ConstraintPlan, PlannedGrammar } from "../../preparing/constraint-plan.ts";
import { type GrammarAnswer, TokenGrammar, type GrammarVocabulary, TokenTrie } from "./token-grammar.ts";
import { GbnfError } from "../../../../formats/grammar/gbnf-error.ts";
import { invalidRequest } from "../../../../core/failure.ts";
import type { Observe } from "../../../../core/observe.ts";
import { TokenCandidates } from "../c-api/native-sampler.ts";
import type { NativeModel } from "../c-api/native-model.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";
import type { Format } from "../../../../formats/format.ts";

/**
 * Holds one choice to a grammar. The choice's loop asks for `grammar` and `banned` right before each token is drawn and calls `read`
 * after each token was read; in between nothing else runs for this choice. It is made by `openConstraint`, one for each choice.
 */
export interface TokenConstraint {
  /** What binds the next token; undefined: nothing does (not yet, or no longer). Whoever draws a token lets it accept that one. */
  readonly grammar: GrammarAnswer | undefined;

  /** Tokens that the grammar would let pass and that must not come, while it binds. */
  readonly banned: readonly number[];

  /** A token was sampled and its text given to the reader. `bytes`: all that the token represents. */
  read(text: string, bytes: Uint8Array, reader: ReaderPlace): void;

  free(): void;
}

/** undefined: an optional one cannot be kept. Throws FailureError for a client's grammar that cannot be followed. */
export type OpenConstraint = (plan: ConstraintPlan) => TokenConstraint | undefined;

/** Makes constraints for this model's choices. `log` hears of constraints that could not begin. */
export function constraintOpener(model: NativeModel, vocabulary: Vocabulary, log: Observe): OpenConstraint {
  const unseen = new UnseenBytes(vocabulary);
  const candidates = new TokenCandidates(model.api, model.vocabularySize);
  const tokenize = (text: string): readonly number[] => model.tokenize(text, true);
  let around: GrammarVocabulary | undefined;
  /** Choices and requests that ask for the same share a plan, and with it the states of its grammar. */
  const opened = new WeakMap<ConstraintPlan, TokenGrammar>();
  const grammarOf = (plan: ConstraintPlan): TokenGrammar => {
    let grammar = opened.get(plan);
    if (grammar === undefined) {
      around ??= { vocabulary, candidates, tokenize, trie: new TokenTrie(vocabulary) };
      opened.set(plan, (grammar = openGrammar(plan.grammar, around)));
    }
    return grammar;
  };
  return (plan) => {
    try {
      // Also where it begins later: a grammar that cannot be followed is to be an error before the answer begins.
      return new GrammarConstraint(plan, { grammar: grammarOf(plan), unseen, log });
    } catch (error) {
      if (!plan.optional) throw error;
      log(`Calls are not held to their schemas: the grammar cannot be followed: ${String(error)}`, "warn");
      return undefined;
    }
  };
}

/** @throws {FailureError} 400 for a client's grammar that names a token which the model does not have. */
function openGrammar({ gbnf, path }: PlannedGrammar, around: GrammarVocabulary): TokenGrammar {
  try {
    return new TokenGrammar(gbnf, path, around);
  } catch (error) {
    if (!(error instanceof GbnfError)) throw error;
    throw invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_grammar");
  }
}

interface GrammarSurroundings {
  readonly grammar: TokenGrammar;
  readonly unseen: UnseenBytes;
  readonly log: Observe;
}

class GrammarConstraint implements TokenConstraint {
  readonly #plan: ConstraintPlan;
  readonly #around: GrammarSurroundings;
  #answer: GrammarAnswer | undefined;
  #settled: boolean;
  #bytes: Uint8Array = new Uint8Array();
  /** The end of the reasoning so far, long enough to hold its closing marker. */
  #tail = "";

  constructor(plan: ConstraintPlan, around: GrammarSurroundings) {
    this.#plan = plan;
    this.#around = around;
    this.#settled = plan.begins === "at-once";
    if (this.#settled) this.#answer = around.grammar.begin() ?? undefined;
  }

  get grammar(): GrammarAnswer | undefined {
    return this.#answer;
  }

  get banned(): readonly number[] {
    return this.#answer === undefined ? [] : this.#around.unseen.banned(this.#plan.format, this.#bytes);
  }

  read(text: string, bytes: Uint8Array, reader: ReaderPlace): void {
    this.#bytes = bytes;
    if (this.#settled) return;
    if (this.#plan.begins === "after-reasoning") this.#readThought(text, reader);
    else if (callHasBegun(this.#plan.format, reader)) this.#goOn(reader.openCall ?? "", "a call that began otherwise");
  }

  #readThought(text: string, reader: ReaderPlace): void {
    this.#tail += text;
    if (reader.phase === "reasoning") {
      this.#tail = this.#tail.slice(-longestMarker);
      return;
    }
    this.#goOn(behindThought(this.#plan, this.#tail), "text behind the reasoning, in the token that ended it");
  }

  /** Binds from behind a text that has already come. */
  #goOn(written: string, what: string): void {
    this.#settled = true;
    // White space in front of a client's own grammar is not part of it.
    const begun = this.#plan.grammar.type === "gbnf" && written.trim() === "" ? "" : written;
    this.#answer = this.#around.grammar.begin(begun) ?? undefined;
    if (this.#answer) return;
    this.#around.log(`A grammar could not begin: the model wrote ${what} (${written.length} characters)`, "warn");
  }

  free(): void {
    this.#answer?.free();
    this.#answer = undefined;
  }
}

/** Longer than any closing marker together with the token that ends it. */
const longestMarker = 400;

/** What stands behind the last marker that ended the thought. A call's opener that ends it is not part of it. */
function behindThought({ format }: ConstraintPlan, tail: string): string {
  const { close = [], endedBy = [] } = format.reasoning ?? {};
  const ends = [...close.map((marker) => endOf(tail, marker)), ...endedBy.map((marker) => tail.lastIndexOf(marker))];
  const end = Math.max(...ends);
  return end < 0 ? "" : tail.slice(end);
}

function endOf(tail: string, marker: string): number {
  const at = tail.lastIndexOf(marker);
  return at < 0 ? -1 : at + marker.length;
}

/**
 * Tokens that a grammar lets pass though what they show is not what it read:
 *
 * - control tokens: llama.cpp's grammar reads their names, while nothing of them is shown (except of those that a format reads);
 * - a second byte that makes a character longer than it must be (`F0 80`, `E0 80`): the grammar reads the character, a decoder shows
 *   replacement characters.
 */
export class UnseenBytes {
  readonly #vocabulary: Vocabulary;
  readonly #controls = new WeakMap<Format, readonly number[]>();
  readonly #continuing = new Map<number, readonly number[]>();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** What must not follow a token of these bytes. */
  banned(format: Format, bytes: Uint8Array): readonly number[] {
    const controls = this.#hiddenControls(format);
    const limit = overlongBelow.get(bytes.at(-1) ?? 0);
    return limit === undefined ? controls : [...controls, ...this.#continuations(limit)];
  }

  #hiddenControls(format: Format): readonly number[] {
    let hidden = this.#controls.get(format);
    if (hidden === undefined) {
      const written = JSON.stringify(format);
      hidden = this.#vocabulary.tokensThat(
        (token) =>
          this.#vocabulary.isControl(token) &&
          !this.#vocabulary.endsGeneration(token) &&
          !written.includes(JSON.stringify(this.#vocabulary.entry(token)).slice(1, -1)),
      );
      this.#controls.set(format, hidden);
    }
    return hidden;
  }

  /** Tokens that begin with a continuation byte below a limit. */
  #continuations(limit: number): readonly number[] {
    let found = this.#continuing.get(limit);
    if (found === undefined) {
      found = this.#vocabulary.tokensThat((token) => {
        const first = this.#vocabulary.bytes(token)[0] ?? 0;
        return first >= 0x80 && first < limit;
      });
      this.#continuing.set(limit, found);
    }
    return found;
  }
}

/** First byte of a character → the least second byte that it needs (Unicode, table 3-7); the others are left to the grammar. */
const overlongBelow: ReadonlyMap<number, number> = new Map([
  [0xe0, 0xa0],
  [0xf0, 0x90],
]);
