/** A text that is not a valid grammar. */
export class GbnfError extends Error {
  override readonly name = "GbnfError";
}

/** A grammar that cannot be followed within the budget (`GrammarBudget`). */
export class GrammarLoadError extends Error {
  override readonly name = "GrammarLoadError";
}
