import { FailureError } from "../../../generation/failure.ts";
import { GrammarLoadError } from "../../../formats/grammar/gbnf-error.ts";
import { mostStacks, ParseStacks, tooManyWays, type ParseStack } from "../../../formats/grammar/parse-stacks.ts";
import { readGbnf } from "../../../formats/grammar/read-gbnf.ts";
import { TokenText } from "./token-text.ts";

/** So many different stacks are remembered, some hundred bytes each. No answer comes near, but for those that nest without end. */
const mostRemembered = 300_000;

/**
 * Follows answers by their grammar beside llama.cpp, whose time for each token grows with the ways to read the answer so far. How many
 * those become, the preparing thread could see only for the next few characters: things that stand in each other may double them
 * whenever one more begins. Choices share one, and with it what it has found out.
 */
export class FollowedGrammar {
  readonly #start: readonly ParseStack[] | null;
  readonly #stacks = new ParseStacks(() => {
    if (this.#stacks.size > mostRemembered) throw new GrammarLoadError(tooManyWays);
  });
  readonly #path: string;

  /** `path`: where in the request the grammar stands. */
  constructor(gbnf: string, path: string) {
    this.#path = path;
    const { root, hasTokens } = readGbnf(gbnf, { depth: Infinity, elements: Infinity });
    this.#start = hasTokens ? null : this.#stacks.from(root);
  }

  /** Follows one answer: the function is to be called with the bytes of each token. It throws FailureError when it must end. */
  follow(): (bytes: Uint8Array) => void {
    const text = new TokenText();
    let ways: Iterable<ParseStack> | null = this.#start;
    return (bytes) => {
      if (ways === null) return;
      for (const character of text.push(bytes)) ways = this.#read(ways, character);
    };
  }

  #read(ways: Iterable<ParseStack>, character: string): Iterable<ParseStack> {
    try {
      const next = this.#stacks.read(ways, character.codePointAt(0) ?? 0);
      if (next.size > mostStacks) throw new GrammarLoadError(tooManyWays);
      return next;
    } catch (error) {
      if (!(error instanceof GrammarLoadError)) throw error;
      throw new FailureError({
        message: `The answer cannot go on by the grammar at '${this.#path}': ${error.message}.`,
        status: 400,
        kind: "invalid-request",
        param: this.#path,
        code: "invalid_grammar",
      });
    }
  }
}
