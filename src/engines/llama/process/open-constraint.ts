import { afterText } from "../../../formats/grammar/after-text.ts";
import { callHasBegun, type ReaderPlace } from "../../../formats/grammar/call-has-begun.ts";
import { gbnfOfData } from "../../../formats/grammar/grammar.ts";
import { invalidRequest } from "../../../generation/failure.ts";
import type { ConstraintPlan, PlannedGrammar } from "../preparing/constraint-plan.ts";
import type { Observe } from "../../../generation/observe.ts";
import { Candidates } from "./c-api/candidates.ts";
import { NativeGrammar } from "./c-api/native-sampler.ts";
import type { NativeModel } from "./c-api/native-model.ts";
import type { OpenConstraint, TokenConstraint } from "./token-constraint.ts";
import { FollowedGrammar, type FollowedAnswer } from "./followed-grammar.ts";
import { TokensByBeginning } from "./tokens-by-beginning.ts";
import { UnseenBytes } from "./unseen-bytes.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Makes constraints for this model's choices. `log` hears of constraints that could not begin. */
export function constraintOpener(model: NativeModel, vocabulary: Vocabulary, log: Observe): OpenConstraint {
  const unseen = new UnseenBytes(vocabulary);
  const candidates = new Candidates(model.api, model.vocabularySize);
  let tokens: TokensByBeginning | undefined;
  /** Choices and requests that ask for the same share a plan, and with it what llama.cpp has made of its grammar. */
  const parsed = new WeakMap<ConstraintPlan, ParsedGrammar>();
  const grammarOf = (plan: ConstraintPlan): ParsedGrammar => {
    let grammar = parsed.get(plan);
    if (grammar === undefined)
      parsed.set(
        plan,
        (grammar = new ParsedGrammar((gbnf) => NativeGrammar.parse(model, gbnf, candidates), plan.grammar)),
      );
    return grammar;
  };
  return (plan) => {
    try {
      // Also where it begins later: a grammar that llama.cpp refuses is to be an error before the answer begins.
      const grammar = grammarOf(plan);
      tokens ??= new TokensByBeginning(vocabulary);
      return new GrammarConstraint(plan, { grammar, tokens, unseen, log });
    } catch (error) {
      if (!plan.optional) throw error;
      log(`Calls are not held to their schemas: llama.cpp cannot read the grammar: ${String(error)}`, "warn");
      return undefined;
    }
  };
}

/** How many texts a grammar is kept for that it goes on from; models begin their calls in one way, or a few. */
const mostBeginnings = 8;

/** A grammar as llama.cpp has it, and as we follow it. */
interface OpenedGrammar {
  /** At its beginning: answers follow copies of it. */
  readonly native: NativeGrammar;
  readonly followed: FollowedGrammar;
}

/** A planned grammar: whole, and as what is left of it behind texts that a model has written. */
class ParsedGrammar {
  readonly whole: OpenedGrammar;
  readonly #read: (gbnf: string) => NativeGrammar | null;
  readonly #planned: PlannedGrammar;
  readonly #rests = new Map<string, OpenedGrammar | null>();

  /** Throws FailureError for a client's grammar that llama.cpp does not take. */
  constructor(read: (gbnf: string) => NativeGrammar | null, planned: PlannedGrammar) {
    this.#read = read;
    this.#planned = planned;
    try {
      this.whole = this.#parse(planned.gbnf);
    } catch (cause) {
      if (planned.type === "ours") throw cause;
      const { path } = planned;
      throw invalidRequest(`Invalid grammar at '${path}': llama.cpp cannot parse it.`, path, "invalid_grammar");
    }
  }

  /** What may follow a text; null: the text begins nothing that the grammar has. */
  after(written: string): OpenedGrammar | null {
    if (written === "" || (this.#planned.type === "gbnf" && written.trim() === "")) return this.whole;
    let rest = this.#rests.get(written);
    if (rest === undefined) {
      if (this.#rests.size === mostBeginnings) this.#rests.clear();
      this.#rests.set(written, (rest = this.#rest(written)));
    }
    return rest;
  }

  #rest(written: string): OpenedGrammar | null {
    if (this.#planned.data === undefined) return null;
    const rest = afterText(this.#planned.data, written);
    return rest && this.#parse(gbnfOfData(rest));
  }

  #parse(gbnf: string): OpenedGrammar {
    const native = this.#read(gbnf);
    if (native === null) throw new Error("llama.cpp cannot parse it");
    return { native, followed: new FollowedGrammar(gbnf, this.#planned.path) };
  }
}

interface GrammarSurroundings {
  readonly grammar: ParsedGrammar;
  readonly tokens: TokensByBeginning;
  readonly unseen: UnseenBytes;
  readonly log: Observe;
}

class GrammarConstraint implements TokenConstraint {
  readonly #plan: ConstraintPlan;
  readonly #around: GrammarSurroundings;
  #native: NativeGrammar | undefined;
  #followed: FollowedAnswer | undefined;
  #settled: boolean;
  #bytes: Uint8Array = new Uint8Array();
  /** The end of the reasoning so far, long enough to hold its closing marker. */
  #tail = "";

  constructor(plan: ConstraintPlan, around: GrammarSurroundings) {
    this.#plan = plan;
    this.#around = around;
    this.#settled = plan.begins === "at-once";
    if (this.#settled) this.#begin(around.grammar.whole);
  }

  get grammar(): NativeGrammar | undefined {
    return this.#native;
  }

  get banned(): readonly number[] {
    return this.#native === undefined ? [] : this.#around.unseen.banned(this.#plan.format, this.#bytes);
  }

  get next(): readonly number[] | undefined {
    return this.#followed?.next(this.#around.tokens);
  }

  read(text: string, bytes: Uint8Array, reader: ReaderPlace): void {
    this.#bytes = bytes;
    this.#followed?.read(bytes);
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
    const rest = this.#around.grammar.after(written);
    if (rest !== null) return this.#begin(rest);
    this.#around.log(`A grammar could not begin: the model wrote ${what} (${written.length} characters)`, "warn");
  }

  #begin({ native, followed }: OpenedGrammar): void {
    this.#native = native.copy();
    this.#followed = followed.follow();
  }

  free(): void {
    this.#native?.free();
    this.#native = undefined;
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
