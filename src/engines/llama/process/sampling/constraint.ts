import type { LogListener } from "../../../../wire/core/generation-observer.ts";
import { invalidRequest } from "../../../../wire/core/failure.ts";
import type { Format } from "../../../../text/formats/format.ts";
import { callHasStarted, type ReaderState } from "../../../../text/formats/text-reader.ts";
import { GbnfError } from "../../../../text/formats/grammar/grammar-errors.ts";
import type { ConstraintPlan, PlannedGrammar } from "../../preparing/constraint-plan.ts";
import type { NativeModel } from "../c-api/native-model.ts";
import { TokenCandidates } from "../c-api/native-sampler.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";
import { type AnswerGrammar, type GrammarVocabulary, TokenGrammar, TokenTrie } from "./token-grammar.ts";

/**
 * Constrains one answer by a grammar. The task reads `grammar` and `banned` right before it samples a token, and calls `read` after the
 * token's text was read. Nothing else runs for this answer in between.
 */
export interface TokenConstraint {
  /** The grammar of the next token; `undefined` if there is none yet, or no longer. A sampled token must be passed to its `accept`. */
  readonly grammar: AnswerGrammar | undefined;

  /** Tokens that must not come, although the grammar would allow them. */
  readonly banned: readonly number[];

  /** Reads a sampled token. `text`: what the reader was given of it; `bytes`: all bytes of the token. */
  read(text: string, bytes: Uint8Array, reader: ReaderState): void;

  free(): void;
}

/**
 * Creates the constraint of an answer; `undefined` if an optional one is not possible. Throws FailureError for an invalid grammar of a
 * client.
 */
export type OpenConstraint = (plan: ConstraintPlan) => TokenConstraint | undefined;

/** Returns a function that creates the constraints of a model's answers. `log` reports optional grammars that are not applied. */
export function constraintOpener(model: NativeModel, vocabulary: Vocabulary, log: LogListener): OpenConstraint {
  const hidden = new HiddenBytes(vocabulary);
  const candidates = new TokenCandidates(model.api, model.vocabularySize);
  const tokenize = (text: string): readonly number[] => model.tokenize(text, true);
  let shared: GrammarVocabulary | undefined;
  /** Answers with the same plan share the states of its grammar. */
  const grammars = new WeakMap<ConstraintPlan, TokenGrammar>();
  const grammarOf = (plan: ConstraintPlan): TokenGrammar => {
    let grammar = grammars.get(plan);
    if (grammar === undefined) {
      shared ??= { vocabulary, candidates, tokenize, trie: new TokenTrie(vocabulary) };
      grammars.set(plan, (grammar = openGrammar(plan.grammar, shared)));
    }
    return grammar;
  };
  return (plan) => {
    try {
      // The grammar is also opened where it applies later, so that an invalid one is an error before the answer starts.
      return new GrammarConstraint(plan, grammarOf(plan), hidden, log);
    } catch (error) {
      if (!plan.optional) throw error;
      log(`Calls are not held to their schemas: the grammar cannot be followed: ${String(error)}`, "warn");
      return undefined;
    }
  };
}

/** @throws {FailureError} 400 for a client's grammar that names a token which the model does not have. */
function openGrammar({ gbnf, path }: PlannedGrammar, shared: GrammarVocabulary): TokenGrammar {
  try {
    return new TokenGrammar(gbnf, path, shared);
  } catch (error) {
    if (!(error instanceof GbnfError)) throw error;
    throw invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_grammar");
  }
}

/** Characters of reasoning that are kept: more than any closing marker together with the token that ends it. */
const maxMarkerLength = 400;

class GrammarConstraint implements TokenConstraint {
  readonly #plan: ConstraintPlan;
  readonly #tokenGrammar: TokenGrammar;
  readonly #hidden: HiddenBytes;
  readonly #log: LogListener;
  #grammar: AnswerGrammar | undefined;
  /** The grammar has started, or cannot start. */
  #isDecided: boolean;
  #lastBytes: Uint8Array = new Uint8Array();
  /** The end of the reasoning so far. */
  #tail = "";

  constructor(plan: ConstraintPlan, grammar: TokenGrammar, hidden: HiddenBytes, log: LogListener) {
    this.#plan = plan;
    this.#tokenGrammar = grammar;
    this.#hidden = hidden;
    this.#log = log;
    this.#isDecided = plan.begins === "immediately";
    if (this.#isDecided) this.#grammar = grammar.start() ?? undefined;
  }

  get grammar(): AnswerGrammar | undefined {
    return this.#grammar;
  }

  get banned(): readonly number[] {
    return this.#grammar === undefined ? [] : this.#hidden.banned(this.#plan.format, this.#lastBytes);
  }

  read(text: string, bytes: Uint8Array, reader: ReaderState): void {
    this.#lastBytes = bytes;
    if (this.#isDecided) return;
    if (this.#plan.begins === "after-reasoning") this.#readReasoning(text, reader);
    else if (callHasStarted(this.#plan.format, reader))
      this.#start(reader.openCall ?? "", "a call that began otherwise");
  }

  #readReasoning(text: string, reader: ReaderState): void {
    this.#tail += text;
    if (reader.phase === "reasoning") {
      this.#tail = this.#tail.slice(-maxMarkerLength);
      return;
    }
    this.#start(afterReasoning(this.#plan, this.#tail), "text after the reasoning, in the token that ended it");
  }

  /** Starts the grammar after a text that has been generated. `what`: the text in the log. */
  #start(text: string, what: string): void {
    this.#isDecided = true;
    // White space before a client's own grammar is not part of it.
    const start = this.#plan.grammar.type === "gbnf" && text.trim() === "" ? "" : text;
    this.#grammar = this.#tokenGrammar.start(start) ?? undefined;
    if (this.#grammar) return;
    this.#log(`A grammar could not begin: the model wrote ${what} (${text.length} characters)`, "warn");
  }

  free(): void {
    this.#grammar?.free();
    this.#grammar = undefined;
  }
}

/** The text after the last marker that ended the reasoning. If the opening marker of a call ended it, the text includes that marker. */
function afterReasoning({ format }: ConstraintPlan, tail: string): string {
  const { close = [], endedBy = [] } = format.reasoning ?? {};
  const ends = [...close.map((marker) => endOf(tail, marker)), ...endedBy.map((marker) => tail.lastIndexOf(marker))];
  const end = Math.max(...ends);
  return end < 0 ? "" : tail.slice(end);
}

function endOf(tail: string, marker: string): number {
  const at = tail.lastIndexOf(marker);
  return at < 0 ? -1 : at + marker.length;
}

/** First byte of a character → the smallest valid second byte (Unicode, table 3-7). Other first bytes are left to the grammar. */
const minSecondByte: ReadonlyMap<number, number> = new Map([
  [0xe0, 0xa0],
  [0xf0, 0x90],
]);

/**
 * Tokens that a grammar allows although their visible text is not what the grammar reads:
 *
 * - control tokens: llama.cpp's grammar reads their names, which are not visible (except for those that a format reads);
 * - a second byte of an overlong character (`F0 80`, `E0 80`): the grammar reads the character, a decoder emits replacement characters.
 */
class HiddenBytes {
  readonly #vocabulary: Vocabulary;
  readonly #controls = new WeakMap<Format, readonly number[]>();
  readonly #continuations = new Map<number, readonly number[]>();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Tokens that must not follow a token with these bytes. */
  banned(format: Format, bytes: Uint8Array): readonly number[] {
    const controls = this.#hiddenControls(format);
    const limit = minSecondByte.get(bytes.at(-1) ?? 0);
    return limit === undefined ? controls : [...controls, ...this.#continuationsBelow(limit)];
  }

  #hiddenControls(format: Format): readonly number[] {
    let hidden = this.#controls.get(format);
    if (hidden === undefined) {
      const markers = JSON.stringify(format);
      const vocabulary = this.#vocabulary;
      hidden = vocabulary.tokensThat(
        (token) =>
          vocabulary.isControl(token) &&
          !vocabulary.endsGeneration(token) &&
          !markers.includes(JSON.stringify(vocabulary.entry(token)).slice(1, -1)),
      );
      this.#controls.set(format, hidden);
    }
    return hidden;
  }

  /** Tokens that start with a continuation byte below a limit. */
  #continuationsBelow(limit: number): readonly number[] {
    let found = this.#continuations.get(limit);
    if (found === undefined) {
      found = this.#vocabulary.tokensThat((token) => {
        const first = this.#vocabulary.bytes(token)[0] ?? 0;
        return first >= 0x80 && first < limit;
      });
      this.#continuations.set(limit, found);
    }
    return found;
  }
}
