import { determinised } from "../../../formats/grammar/determinise.ts";
import { GrammarLoadError } from "../../../formats/grammar/gbnf-error.ts";
import { checkLoad } from "../../../formats/grammar/grammar-load.ts";
import { gbnfOfData, type GrammarData } from "../../../formats/grammar/grammar.ts";
import { readGbnf } from "../../../formats/grammar/read-gbnf.ts";

/** llama.cpp's parser calls itself for every open parenthesis; a few thousand more than this overflow its stack, which ends the process. */
const depth = 200;

/** Up to so many ways to read a text at a time cost a sampler little; above, one way is worth some work. */
const fewWays = 100;

/** What may be spent on an automaton (`determinised`): a tenth of a second where it would only be faster, more where all depends on it. */
const worth = { trying: 300_000, saving: 4_000_000 };

export interface GrammarLimits {
  /** Characters, classes and references, with repetitions written out: each takes llama.cpp 8 bytes for each choice of an answer. */
  readonly elements: number;
  /** Characters of the longest token in the model's vocabulary. */
  readonly longestToken: number;
}

export interface BearableGrammar {
  readonly gbnf: string;
  readonly elements: number;
  /** The grammar had to be made anew: this is what it is now. */
  readonly automaton?: GrammarData;
}

/**
 * A grammar whose texts llama.cpp can follow in time that others do not feel: the given one, or where that can be read in too many ways at
 * once, one with the same texts and one way for each.
 *
 * @throws {GbnfError} for what llama.cpp cannot read. @throws {GrammarLoadError} where there is no such grammar.
 */
export function bearableGrammar(gbnf: string, { elements, longestToken }: GrammarLimits): BearableGrammar {
  const limits = { depth, elements };
  const rules = readGbnf(gbnf, limits);
  const automatonWithin = (work: number): BearableGrammar | null => {
    const automaton = determinised(rules, work);
    if (automaton === null) return null;
    const written = gbnfOfData(automaton);
    return { gbnf: written, elements: readGbnf(written, limits).elements, automaton };
  };
  const asItIs = { gbnf, elements: rules.elements };
  try {
    const ways = checkLoad(rules, longestToken);
    return (ways > fewWays && automatonWithin(worth.trying)) || asItIs;
  } catch (error) {
    if (!(error instanceof GrammarLoadError)) throw error;
    const automaton = automatonWithin(worth.saving);
    if (automaton === null) throw error;
    return automaton;
  }
}
