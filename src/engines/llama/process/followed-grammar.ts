import { FailureError } from "../../../generation/failure.ts";
import { GrammarLoadError } from "../../../formats/grammar/gbnf-error.ts";
import { charactersOf } from "../../../formats/grammar/gbnf-rules.ts";
import { mostStacks, ParseStacks, tooManyWays, type ParseStack } from "../../../formats/grammar/parse-stacks.ts";
import { readGbnf, type GbnfRules } from "../../../formats/grammar/read-gbnf.ts";
import type { TokensByBeginning } from "./tokens-by-beginning.ts";
import { TokenText } from "./token-text.ts";

/** So many different stacks are remembered, some hundred bytes each. No answer comes near, but for those that nest without end. */
const mostRemembered = 300_000;
/** Where more characters may come, any token may. */
const fewCharacters = 128;

/**
 * Follows answers by their grammar beside llama.cpp, whose time for each token grows with the ways to read the answer so far. How many
 * those become, the preparing thread could see only for the next few characters: things that stand in each other may double them
 * whenever one more begins.
 */
export class FollowedGrammar {
  readonly #rules: GbnfRules;
  readonly #path: string;

  /** `path`: where in the request the grammar stands. */
  constructor(gbnf: string, path: string) {
    this.#rules = readGbnf(gbnf, { depth: Infinity, elements: Infinity });
    this.#path = path;
  }

  /** Follows one answer from its beginning. */
  follow(): FollowedAnswer {
    return new FollowedAnswer(this.#rules, this.#path);
  }
}

/** One answer by its grammar: the ways to read it so far. */
export class FollowedAnswer {
  readonly #path: string;
  readonly #text = new TokenText();
  readonly #stacks: ParseStacks;
  #ways: Iterable<ParseStack>;
  /** So many bytes are missing to the end of a character. */
  #missing = 0;
  /** Which text a token of the model stands for is not known here. */
  readonly #namesTokens: boolean;
  /** llama.cpp may have read otherwise what is not UTF-8. */
  #isUnsure = false;

  constructor({ root, hasTokens }: GbnfRules, path: string) {
    this.#path = path;
    this.#namesTokens = hasTokens;
    this.#stacks = new ParseStacks(() => {
      if (this.#stacks.size > mostRemembered) throw new GrammarLoadError(tooManyWays);
    });
    this.#ways = hasTokens ? [] : this.#stacks.from(root);
  }

  /** A token of these bytes came. Throws FailureError when the answer must end. */
  read(bytes: Uint8Array): void {
    if (this.#namesTokens) return;
    try {
      for (const character of this.#text.push(bytes)) {
        if (character === replacement) this.#isUnsure = true;
        const next = this.#stacks.read(this.#ways, character.codePointAt(0) ?? 0);
        if (next.size > mostStacks) throw new GrammarLoadError(tooManyWays);
        this.#ways = next;
      }
    } catch (error) {
      throw error instanceof GrammarLoadError ? this.#failure(error) : error;
    }
    for (const byte of bytes)
      this.#missing = this.#missing > 0 && byte < 0xc0 ? this.#missing - 1 : byteLength(byte) - 1;
  }

  /**
   * The tokens that may come next, by their first characters: all that the grammar allows are among them. undefined: they are many, or it
   * is not known.
   */
  next(tokens: TokensByBeginning): readonly number[] | undefined {
    if (this.#namesTokens || this.#isUnsure || this.#missing > 0) return undefined;
    try {
      return this.#few(tokens);
    } catch (error) {
      // It is for `read` to say so, if such a token comes.
      if (error instanceof GrammarLoadError) return undefined;
      throw error;
    }
  }

  #few(tokens: TokensByBeginning): readonly number[] | undefined {
    const secondBytes = this.#nextBytes();
    if (!secondBytes) return undefined;
    const found = [...tokens.ends];
    for (const [first, seconds] of secondBytes)
      for (const some of tokens.beginning(first, seconds)) {
        if (found.length + some.length > tokens.most) return undefined;
        found.push(...some);
      }
    return found;
  }

  /** The bytes that the next token may begin with, each with those that may follow it (undefined: any); undefined: they are many. */
  #nextBytes(): ReadonlyMap<number, ReadonlySet<number> | undefined> | undefined {
    const bytes = new Map<number, Set<number> | undefined>();
    for (const way of this.#ways) {
      const characters = nextCharacters(way);
      if (!characters) return undefined;
      const behind = firstBytes(this.#stacks.after(way));
      for (const character of characters) {
        const first = firstByte(character);
        const known = bytes.has(first) ? bytes.get(first) : new Set<number>();
        // Of a character of several bytes any token may come that begins like it.
        const seconds = character < 0x80 && behind ? known : undefined;
        for (const second of behind ?? []) seconds?.add(second);
        bytes.set(first, seconds);
      }
      if (bytes.size > fewCharacters) return undefined;
    }
    return bytes;
  }

  #failure({ message }: GrammarLoadError): FailureError {
    return new FailureError({
      message: `The answer cannot go on by the grammar at '${this.#path}': ${message}.`,
      status: 400,
      kind: "invalid-request",
      param: this.#path,
      code: "invalid_grammar",
    });
  }
}

const replacement = "\ufffd";

/** The characters that a way goes on with; undefined: they are many. */
function nextCharacters({ place }: ParseStack): readonly number[] | undefined {
  const characters: number[] = [];
  for (const [first, last] of place ? charactersOf(place) : []) {
    if (last - first >= fewCharacters - characters.length) return undefined;
    for (let character = first; character <= last; character++) characters.push(character);
  }
  return characters;
}

/** The first bytes of what these ways go on with; undefined: they are many. */
function firstBytes(ways: Iterable<ParseStack>): ReadonlySet<number> | undefined {
  const bytes = new Set<number>();
  for (const way of ways) {
    const characters = nextCharacters(way);
    if (!characters) return undefined;
    for (const character of characters) bytes.add(firstByte(character));
  }
  return bytes;
}

/** Of a code point in UTF-8. */
function firstByte(codePoint: number): number {
  if (codePoint < 0x80) return codePoint;
  if (codePoint < 0x800) return 0xc0 | (codePoint >> 6);
  return codePoint < 0x10000 ? 0xe0 | (codePoint >> 12) : 0xf0 | (codePoint >> 18);
}

/** How many bytes a character has that begins with this one. */
function byteLength(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}
