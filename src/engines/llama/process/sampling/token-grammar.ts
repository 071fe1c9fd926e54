import { GbnfError, GrammarLoadError } from "../../../../formats/grammar/gbnf-error.ts";
import type { TokenPlace } from "../../../../formats/grammar/gbnf-rules.ts";
import { GrammarBudget, GrammarStates, type GrammarState } from "../../../../formats/grammar/grammar-states.ts";
import { readGbnf, type GbnfRules } from "../../../../formats/grammar/read-gbnf.ts";
import { invalidRequest } from "../../../../core/failure.ts";
import type { TokenCandidates } from "../c-api/native-sampler.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

/**
 * What following a grammar may cost all answers that use it, in steps (`GrammarBudget`): about a second of processor time at the beginning,
 * and after each token what takes some 10 ms, divided among the answers, but a millisecond at least. Other clients of the model wait no
 * longer than that.
 */
const steps = { most: 2_000_000, token: 40_000, leastForToken: 4_000 };

/** A walk through the vocabulary looks at this many nodes in the time of one step. */
const nodesPerStep = 4;

/** Where more tokens than this may come, or they are not found in a walk of this length, one is sampled first and then looked up. */
const few = { tokens: 256, nodes: 4_000 };

/** A grammar that no answer uses keeps at most this much of what it has computed (`GrammarStates.size`). */
const keptSize = 20_000;

/** What all grammars of a model share. */
export interface GrammarVocabulary {
  readonly vocabulary: Pick<Vocabulary, "bytes" | "endsGeneration">;
  readonly trie: TokenTrie;
  readonly candidates: TokenCandidates;
  /** The tokens of a text in which control tokens are read by their names. */
  readonly tokenize: (text: string) => readonly number[];
}

/** The tokens that may come in a state, once they were looked for. */
interface KnownTokens {
  /** undefined: they were not counted; null: they are many. */
  few?: readonly number[] | null;
  all?: readonly number[];
}

/**
 * A grammar over the tokens of a model. Answers that follow it share its states. What an answer needs is computed within a budget, so that
 * no grammar holds the model.
 */
export class TokenGrammar {
  readonly around: GrammarVocabulary;
  readonly budget: GrammarBudget = new GrammarBudget(steps.most);
  readonly #path: string;
  readonly #rules: GbnfRules;
  readonly #names = new Map<string, number>();
  #states: GrammarStates;
  #known = new WeakMap<GrammarState, KnownTokens>();
  #answers = 0;

  /**
   * @param path where in the request the grammar is. @throws {GbnfError} for a grammar that is malformed, or names a token that the model
   * does not have.
   */
  constructor(gbnf: string, path: string, around: GrammarVocabulary) {
    this.around = around;
    this.#path = path;
    this.#rules = readGbnf(gbnf, { depth: Infinity, elements: Infinity });
    this.#states = new GrammarStates(this.#rules.root);
    for (const name of this.#rules.tokenNames) this.#names.set(name, tokenNamed(name, around));
  }

  /** Begins an answer; null: the grammar does not allow an answer that begins with this text. */
  begin(written = ""): GrammarAnswer | null {
    const state = this.within("Invalid grammar at", () => {
      const start = this.#states.start(this.budget);
      return start?.read(new TextEncoder().encode(written), this.budget) ?? null;
    });
    if (state === null) return null;
    this.#answers++;
    return new GrammarAnswer(this, state);
  }

  /** Turns what goes beyond the budget into the 400 of the request. */
  within<T>(what: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof GrammarLoadError)) throw error;
      throw invalidRequest(`${what} '${this.#path}': ${error.message}.`, this.#path, "invalid_grammar");
    }
  }

  /** Whether a place that names a token, or any token but that one, takes this token. As in llama.cpp, "any" are those that are text. */
  matches(token: number): (place: TokenPlace) => boolean {
    return ({ name, negated }) => {
      const isNamed = this.#names.get(name) === token;
      return negated ? !isNamed && isText(this.around.vocabulary.bytes(token)) : isNamed;
    };
  }

  /** An answer took a token. */
  accepted(): void {
    this.budget.refill(Math.max(steps.leastForToken, steps.token / this.#answers));
  }

  ended(): void {
    this.#answers--;
    if (this.#answers > 0) return;
    this.budget.refill(steps.most);
    if (this.#states.size <= keptSize) return;
    this.#states = new GrammarStates(this.#rules.root);
    this.#known = new WeakMap();
  }

  /** The tokens that may come in a state, but ends; null: they are many. */
  few(state: GrammarState): readonly number[] | null {
    const known = this.#knownIn(state);
    if (known.few === undefined) {
      let nodes = 0;
      known.few = this.#tokensIn(state, (found) => found <= few.tokens && ++nodes <= few.nodes);
    }
    return known.few;
  }

  /** All tokens that may come in a state, but ends. */
  all(state: GrammarState): readonly number[] {
    const known = this.#knownIn(state);
    known.all ??= known.few ?? this.#tokensIn(state, () => true) ?? [];
    return known.all;
  }

  #knownIn(state: GrammarState): KnownTokens {
    let known = this.#known.get(state);
    if (!known) this.#known.set(state, (known = {}));
    return known;
  }

  #tokensIn(state: GrammarState, visit: (found: number) => boolean): readonly number[] | null {
    let nodes = 0;
    const found = this.around.trie.walk<GrammarState>(
      state,
      (at, byte) => at.next(byte, this.budget),
      (count) => {
        if (++nodes % nodesPerStep === 0) this.budget.spend(1);
        return visit(count);
      },
    );
    if (found === null) return null;
    const named = this.#namedIn(state);
    const all = named.size === 0 ? found : [...new Set([...found, ...named])];
    this.#states.grow(all.length);
    return visit(all.length) ? all : null;
  }

  /** The tokens that a grammar names, or all but one. */
  #namedIn({ tokenPlaces }: GrammarState): ReadonlySet<number> {
    const named = new Set<number>();
    for (const { place } of tokenPlaces) {
      const token = this.#names.get(place.name);
      if (!place.negated && token !== undefined) named.add(token);
      if (!place.negated) continue;
      for (const other of this.around.trie.tokens) if (this.matches(other)(place)) named.add(other);
    }
    return named;
  }
}

/** One answer by its grammar. */
export class GrammarAnswer {
  readonly #grammar: TokenGrammar;
  #state: GrammarState;

  constructor(grammar: TokenGrammar, state: GrammarState) {
    this.#grammar = grammar;
    this.#state = state;
  }

  /** Few tokens may come next: it pays to look at those only. */
  get isNarrow(): boolean {
    return this.#follow(() => this.#grammar.few(this.#state)) !== null;
  }

  /** The token may come next. */
  allows(token: number): boolean {
    const { vocabulary } = this.#grammar.around;
    if (vocabulary.endsGeneration(token)) return this.#state.mayEnd;
    return this.#follow(() => this.#after(token)) !== null;
  }

  /** The tokens that may come next and are not banned (`-Infinity`): valid until anything else is asked. */
  among(logits: Float32Array): TokenCandidates {
    const { candidates, trie } = this.#grammar.around;
    const tokens = this.#follow(() => this.#grammar.few(this.#state) ?? this.#grammar.all(this.#state));
    candidates.set(logits, this.#state.mayEnd ? [...tokens, ...trie.ends] : tokens);
    return candidates;
  }

  /** A token came, which is allowed and does not end the answer. Throws FailureError, 400, where the grammar costs too much to follow. */
  accept(token: number): void {
    const state = this.#follow(() => this.#after(token));
    if (state === null) throw new Error(`The grammar does not allow the token ${token}.`);
    this.#state = state;
    this.#grammar.accepted();
  }

  free(): void {
    this.#grammar.ended();
  }

  #after(token: number): GrammarState | null {
    const bytes = this.#grammar.around.vocabulary.bytes(token);
    const read = bytes.includes(0) ? nothing : bytes;
    return this.#state.readToken(read, this.#grammar.matches(token), this.#grammar.budget);
  }

  #follow<T>(work: () => T): T {
    return this.#grammar.within("The answer cannot go on by the grammar at", work);
  }
}

const nothing = new Uint8Array();

/** The bytes are UTF-8, and no character is cut. */
function isText(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** `[12]`: by its number; else by its text. Throws GbnfError where the text is no single token of the model, as llama.cpp does. */
function tokenNamed(name: string, { tokenize }: GrammarVocabulary): number {
  const id = /^\[(\d+)\]$/.exec(name)?.[1];
  if (id !== undefined) return Number(id);
  const [token, ...more] = tokenize(`<${name}>`);
  if (token === undefined || more.length > 0) throw new GbnfError(`'<${name}>' is not a single token of this model`);
  return token;
}

/**
 * The tokens of a vocabulary by their bytes, as a tree in the order of a walk from the root: each node has the byte that leads to it and
 * the node that follows all below it. Tokens that end a turn, tokens without bytes, and tokens with a NUL, which no grammar of llama.cpp
 * reads, are not in it.
 */
export class TokenTrie {
  /** Tokens that may come wherever a text may end. */
  readonly ends: readonly number[];
  readonly #bytes: Uint8Array;
  readonly #depths: Uint16Array;
  /** The node that follows all nodes below this one. */
  readonly #after: Int32Array;
  /** The tokens of a node are `tokens` from here to where those of the next node begin. */
  readonly #firstTokens: Int32Array;
  /** In the order of their bytes. */
  readonly tokens: Int32Array;

  constructor(vocabulary: Pick<Vocabulary, "size" | "bytes" | "endTokens">) {
    this.ends = vocabulary.endTokens();
    const ends = new Set(this.ends);
    const tokens: { readonly token: number; readonly bytes: Uint8Array }[] = [];
    let nodes = 1;
    for (let token = 0; token < vocabulary.size; token++) {
      const bytes = vocabulary.bytes(token);
      if (ends.has(token) || bytes.length === 0 || bytes.length > longest || bytes.includes(0)) continue;
      tokens.push({ token, bytes });
      nodes += bytes.length;
    }
    tokens.sort((one, other) => Buffer.compare(one.bytes, other.bytes));
    const bytesOfNodes = new Uint8Array(nodes);
    const depths = new Uint16Array(nodes);
    const firstTokens = new Int32Array(nodes + 1);
    let count = 1;
    let before = new Uint8Array();
    for (const [at, { bytes }] of tokens.entries()) {
      let depth = 0;
      while (depth < before.length && bytes[depth] === before[depth]) depth++;
      for (; depth < bytes.length; depth++) {
        bytesOfNodes[count] = bytes[depth] ?? 0;
        depths[count] = depth + 1;
        firstTokens[count++] = at;
      }
      before = bytes as Uint8Array<ArrayBuffer>;
    }
    firstTokens[count] = tokens.length;
    // The root and nodes on the way have no tokens: theirs begin where those of the next node do. A node's own tokens come first.
    this.#bytes = bytesOfNodes.slice(0, count);
    this.#depths = depths.slice(0, count);
    this.#firstTokens = Int32Array.from({ length: count + 1 }, (_, node) => firstTokens[node] ?? 0);
    this.tokens = Int32Array.from(tokens, ({ token }) => token);
    this.#after = new Int32Array(count);
    const open: number[] = [];
    for (let node = 0; node < count; node++) {
      const depth = this.#depths[node] ?? 0;
      while (open.length > 0 && (this.#depths[open.at(-1) ?? 0] ?? 0) >= depth) this.#after[open.pop() ?? 0] = node;
      open.push(node);
    }
    for (const node of open) this.#after[node] = count;
  }

  /**
   * Collects the tokens whose bytes `next` leads through, from `start` on. `visit` is called for each node that is looked at, and ends the
   * walk where it returns false: then the result is null.
   */
  walk<State>(
    start: State,
    next: (state: State, byte: number) => State | null,
    visit: (found: number) => boolean,
  ): number[] | null {
    const found: number[] = [];
    const states: State[] = [start];
    const count = this.#bytes.length;
    for (let node = 1; node < count;) {
      if (!visit(found.length)) return null;
      const depth = this.#depths[node] ?? 0;
      const state = next(states[depth - 1] as State, this.#bytes[node] ?? 0);
      if (state === null) {
        node = this.#after[node] ?? count;
        continue;
      }
      states[depth] = state;
      const last = this.#firstTokens[node + 1] ?? 0;
      for (let at = this.#firstTokens[node] ?? 0; at < last; at++) found.push(this.tokens[at] ?? 0);
      node++;
    }
    return found;
  }
}

/** Bytes of the longest token that is looked at: no vocabulary has a longer one. */
const longest = 65_535;
