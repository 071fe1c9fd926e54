/** A text that llama.cpp does not take as a grammar, or would not survive. */
export class GbnfError extends Error {
  override readonly name = "GbnfError";
}

/** A grammar that llama.cpp takes, but whose texts it could not follow in reasonable time. */
export class GrammarLoadError extends Error {
  override readonly name = "GrammarLoadError";
}
