/** A text that is not a grammar, or not one that can be followed. */
export class GbnfError extends Error {
  override readonly name = "GbnfError";
}

/** A grammar whose texts cannot be followed within the budget (`GrammarBudget`). */
export class GrammarLoadError extends Error {
  override readonly name = "GrammarLoadError";
}
