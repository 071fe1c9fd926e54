import { FailureError } from "../../../generation/failure.ts";
import { GrammarLoadError } from "../../../formats/grammar/gbnf-error.ts";
import { mostStacks, ParseStacks, tooManyWays, type ParseStack } from "../../../formats/grammar/parse-stacks.ts";
import { readGbnf, type GbnfRules } from "../../../formats/grammar/read-gbnf.ts";
import { TokenText } from "./token-text.ts";

/** So many different stacks are remembered, some hundred bytes each. No answer comes near, but for those that nest without end. */
const mostRemembered = 300_000;

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

  /** Follows one answer: the function is to be called with the bytes of each token. It throws FailureError when the answer must end. */
  follow(): (bytes: Uint8Array) => void {
    const { root, hasTokens } = this.#rules;
    // Which text a token stands for is not known here.
    if (hasTokens) return () => {};
    const text = new TokenText();
    const stacks = new ParseStacks(() => {
      if (stacks.size > mostRemembered) throw new GrammarLoadError(tooManyWays);
    });
    let ways: Iterable<ParseStack> = stacks.from(root);
    return (bytes) => {
      try {
        for (const character of text.push(bytes)) {
          const next = stacks.read(ways, character.codePointAt(0) ?? 0);
          if (next.size > mostStacks) throw new GrammarLoadError(tooManyWays);
          ways = next;
        }
      } catch (error) {
        throw error instanceof GrammarLoadError ? this.#failure(error) : error;
      }
    };
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
