import { GbnfError } from "../../../formats/grammar/gbnf-error.ts";
import { callHasBegun, type ReaderPlace } from "../../../formats/grammar/call-has-begun.ts";
import { invalidRequest } from "../../../core/failure.ts";
import type { ConstraintPlan, PlannedGrammar } from "../preparing/constraint-plan.ts";
import type { Observe } from "../../../core/observe.ts";
import { Candidates } from "./c-api/candidates.ts";
import type { NativeModel } from "./c-api/native-model.ts";
import type { OpenConstraint, TokenConstraint } from "./token-constraint.ts";
import { TokenGrammar, type GrammarAnswer, type GrammarVocabulary } from "./token-grammar.ts";
import { TokenTrie } from "./token-trie.ts";
import { UnseenBytes } from "./unseen-bytes.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Makes constraints for this model's choices. `log` hears of constraints that could not begin. */
export function constraintOpener(model: NativeModel, vocabulary: Vocabulary, log: Observe): OpenConstraint {
  const unseen = new UnseenBytes(vocabulary);
  const candidates = new Candidates(model.api, model.vocabularySize);
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
