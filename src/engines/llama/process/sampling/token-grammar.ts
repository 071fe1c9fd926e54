import { invalidRequest } from "../../../../wire/core/failure.ts";
import { GbnfError, GrammarLoadError } from "../../../../text/formats/grammar/grammar-errors.ts";
import { type GbnfRules, readGbnf, type TokenPosition } from "../../../../text/formats/grammar/read-gbnf.ts";
import { GrammarBudget, type GrammarState, GrammarStates } from "../../../../text/formats/grammar/grammar-states.ts";
import type { TokenCandidates } from "../c-api/native-sampler.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

/**
 * The cost of a grammar for all answers that use it, in steps (`GrammarBudget`): about a second of CPU time at the start, and about 10 ms
 * after each token, divided among the answers, but a millisecond at least. Other clients of the model do not wait longer than that.
 */
const budgetSteps = { max: 2_000_000, token: 40_000, minToken: 4_000 };

/** Nodes of the vocabulary that a walk visits in the time of one step. */
const nodesPerStep = 4;

/** Where more tokens are allowed, or a walk visits more nodes, a token is sampled first and checked afterwards. */
const narrow = { tokens: 256, nodes: 4_000 };

/** An unused grammar keeps its computed states up to this size (`GrammarStates.size`). */
const maxUnusedSize = 20_000;

/** What all grammars of a model share. */
export interface GrammarVocabulary {
  readonly vocabulary: Pick<Vocabulary, "bytes" | "endsGeneration">;
  readonly trie: TokenTrie;
  readonly candidates: TokenCandidates;
  /** Tokenizes a text in which control tokens are read by their names. */
  readonly tokenize: (text: string) => readonly number[];
}

/** The allowed tokens of a state, as far as they were computed. */
interface AllowedTokens {
  /** `null` if there are too many to list. */
  narrow?: readonly number[] | null;
  all?: readonly number[];
}

/**
 * A grammar over the tokens of a model. Answers that use it share its states. The computation has a budget, so that no grammar can block
 * the model.
 */
export class TokenGrammar {
  readonly shared: GrammarVocabulary;
  readonly budget: GrammarBudget = new GrammarBudget(budgetSteps.max);
  readonly #path: string;
  readonly #rules: GbnfRules;
  readonly #names = new Map<string, number>();
  #states: GrammarStates;
  #allowed = new WeakMap<GrammarState, AllowedTokens>();
  #answers = 0;

  /**
   * @param path the request parameter that contains the grammar. @throws {GbnfError} for a grammar that is malformed, or names a token that
   * the model does not have.
   */
  constructor(gbnf: string, path: string, shared: GrammarVocabulary) {
    this.shared = shared;
    this.#path = path;
    this.#rules = readGbnf(gbnf, { depth: Infinity, elements: Infinity });
    this.#states = new GrammarStates(this.#rules.root);
    for (const name of this.#rules.tokenNames) this.#names.set(name, tokenNamed(name, shared));
  }

  /** Starts an answer that begins with this text; `null` if the grammar does not allow that. */
  start(text = ""): AnswerGrammar | null {
    const state = this.limited("Invalid grammar at", () => {
      const start = this.#states.start(this.budget);
      return start?.read(new TextEncoder().encode(text), this.budget) ?? null;
    });
    if (state === null) return null;
    this.#answers++;
    return new AnswerGrammar(this, state);
  }

  /** Runs `work`, and throws FailureError 400 if it exceeds the budget. */
  limited<T>(what: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof GrammarLoadError)) throw error;
      throw invalidRequest(`${what} '${this.#path}': ${error.message}.`, this.#path, "invalid_grammar");
    }
  }

  /** Whether a place in the grammar that names a token, or any token except one, allows this token. As in llama.cpp, "any" means text. */
  matches(token: number): (place: TokenPosition) => boolean {
    return ({ name, negated }) => {
      const isNamed = this.#names.get(name) === token;
      return negated ? !isNamed && isText(this.shared.vocabulary.bytes(token)) : isNamed;
    };
  }

  /** Is called when an answer accepted a token. */
  accepted(): void {
    this.budget.refill(Math.max(budgetSteps.minToken, budgetSteps.token / this.#answers));
  }

  /** Is called when an answer ended. */
  ended(): void {
    this.#answers--;
    if (this.#answers > 0) return;
    this.budget.refill(budgetSteps.max);
    if (this.#states.size <= maxUnusedSize) return;
    this.#states = new GrammarStates(this.#rules.root);
    this.#allowed = new WeakMap();
  }

  /** The allowed tokens of a state except ends; `null` if there are many. */
  narrow(state: GrammarState): readonly number[] | null {
    const allowed = this.#allowedIn(state);
    if (allowed.narrow === undefined) {
      let nodes = 0;
      allowed.narrow = this.#search(state, (found) => found <= narrow.tokens && ++nodes <= narrow.nodes);
    }
    return allowed.narrow;
  }

  /** All allowed tokens of a state except ends. */
  all(state: GrammarState): readonly number[] {
    const allowed = this.#allowedIn(state);
    allowed.all ??= allowed.narrow ?? this.#search(state, () => true) ?? [];
    return allowed.all;
  }

  #allowedIn(state: GrammarState): AllowedTokens {
    let allowed = this.#allowed.get(state);
    if (!allowed) this.#allowed.set(state, (allowed = {}));
    return allowed;
  }

  #search(state: GrammarState, visit: (found: number) => boolean): readonly number[] | null {
    let nodes = 0;
    const found = this.shared.trie.walk<GrammarState>(
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

  /** The tokens that the grammar allows by name in a state. */
  #namedIn({ tokenPositions: tokenPlaces }: GrammarState): ReadonlySet<number> {
    const named = new Set<number>();
    for (const { place } of tokenPlaces) {
      const token = this.#names.get(place.name);
      if (!place.negated && token !== undefined) named.add(token);
      if (!place.negated) continue;
      for (const other of this.shared.trie.tokens) if (this.matches(other)(place)) named.add(other);
    }
    return named;
  }
}

/** The state of one answer in a grammar. */
export class AnswerGrammar {
  readonly #grammar: TokenGrammar;
  #state: GrammarState;

  constructor(grammar: TokenGrammar, state: GrammarState) {
    this.#grammar = grammar;
    this.#state = state;
  }

  /** Few tokens are allowed next, so that it is faster to consider only those. */
  get isNarrow(): boolean {
    return this.#limited(() => this.#grammar.narrow(this.#state)) !== null;
  }

  /** Whether a token may come next. */
  allows(token: number): boolean {
    const { vocabulary } = this.#grammar.shared;
    if (vocabulary.endsGeneration(token)) return this.#state.mayEnd;
    return this.#limited(() => this.#after(token)) !== null;
  }

  /** The tokens that may come next and are not banned (`-Infinity`). Valid until the next call of any method. */
  among(logits: Float32Array): TokenCandidates {
    const { candidates, trie } = this.#grammar.shared;
    const tokens = this.#limited(() => this.#grammar.narrow(this.#state) ?? this.#grammar.all(this.#state));
    candidates.set(logits, this.#state.mayEnd ? [...tokens, ...trie.ends] : tokens);
    return candidates;
  }

  /** Accepts an allowed token that does not end the answer. Throws FailureError 400 if the grammar exceeds its budget. */
  accept(token: number): void {
    const state = this.#limited(() => this.#after(token));
    if (state === null) throw new Error(`The grammar does not allow the token ${token}.`);
    this.#state = state;
    this.#grammar.accepted();
  }

  free(): void {
    this.#grammar.ended();
  }

  #after(token: number): GrammarState | null {
    const bytes = this.#grammar.shared.vocabulary.bytes(token);
    const read = bytes.includes(0) ? nothing : bytes;
    return this.#state.readToken(read, this.#grammar.matches(token), this.#grammar.budget);
  }

  #limited<T>(work: () => T): T {
    return this.#grammar.limited("The answer cannot go on by the grammar at", work);
  }
}

const nothing = new Uint8Array();

/** The bytes are complete characters in UTF-8. */
function isText(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** `[12]` is a token's number, other names are its text. Like llama.cpp, throws GbnfError if the text is not a single token. */
function tokenNamed(name: string, { tokenize }: GrammarVocabulary): number {
  const id = /^\[(\d+)\]$/.exec(name)?.[1];
  if (id !== undefined) return Number(id);
  const [token, ...more] = tokenize(`<${name}>`);
  if (token === undefined || more.length > 0) throw new GbnfError(`'<${name}>' is not a single token of this model`);
  return token;
}

/** Bytes of the longest token in the trie; no vocabulary has a longer one. */
const maxTokenBytes = 65_535;

/**
 * The tokens of a vocabulary as a trie of their bytes, in arrays in depth-first order: each node has a byte, and the index of the node that
 * follows its subtree. It does not contain tokens that end an answer, tokens without bytes, and tokens with a NUL, which llama.cpp's
 * grammars do not read.
 */
export class TokenTrie {
  /** Tokens that are allowed wherever a text may end. */
  readonly ends: readonly number[];
  /** In the order of their bytes. */
  readonly tokens: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #depths: Uint16Array;
  /** The node after the subtree of each node. */
  readonly #after: Int32Array;
  /** Index in `tokens` of the first token of each node; the tokens end where those of the next node start. */
  readonly #firstTokens: Int32Array;

  constructor(vocabulary: Pick<Vocabulary, "size" | "bytes" | "endTokens">) {
    this.ends = vocabulary.endTokens();
    const ends = new Set(this.ends);
    const tokens: { readonly token: number; readonly bytes: Uint8Array }[] = [];
    let maxNodes = 1;
    for (let token = 0; token < vocabulary.size; token++) {
      const bytes = vocabulary.bytes(token);
      if (ends.has(token) || bytes.length === 0 || bytes.length > maxTokenBytes || bytes.includes(0)) continue;
      tokens.push({ token, bytes });
      maxNodes += bytes.length;
    }
    tokens.sort((one, other) => Buffer.compare(one.bytes, other.bytes));
    const bytesOfNodes = new Uint8Array(maxNodes);
    const depths = new Uint16Array(maxNodes);
    const firstTokens = new Int32Array(maxNodes + 1);
    let count = 1;
    let before: Uint8Array = nothing;
    for (const [at, { bytes }] of tokens.entries()) {
      let depth = 0;
      while (depth < before.length && bytes[depth] === before[depth]) depth++;
      for (; depth < bytes.length; depth++) {
        bytesOfNodes[count] = bytes[depth] ?? 0;
        depths[count] = depth + 1;
        firstTokens[count++] = at;
      }
      before = bytes;
    }
    firstTokens[count] = tokens.length;
    // Inner nodes without tokens start where the next node does. A node's own tokens precede those of its subtree.
    this.#bytes = bytesOfNodes.slice(0, count);
    this.#depths = depths.slice(0, count);
    this.#firstTokens = firstTokens.slice(0, count + 1);
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
   * Collects the tokens whose bytes `next` leads through, starting with `start`. `visit` is called for each visited node with the number of
   * tokens so far; if it returns false, the walk ends and the result is `null`.
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
