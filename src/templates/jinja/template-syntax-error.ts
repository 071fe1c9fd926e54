/** The source of a template has an error: what is wrong, and where. */
export class TemplateSyntaxError extends Error {
  /** Counted from 1. */
  readonly line: number;
  /** In UTF-16 units, counted from 1. */
  readonly column: number;

  /** `offset`: where in the source, in UTF-16 units. */
  constructor(problem: string, source: string, offset: number) {
    const before = source.slice(0, offset).split("\n");
    const column = (before.at(-1) ?? "").length + 1;
    super(`${problem} (line ${before.length}, column ${column})`);
    this.name = "TemplateSyntaxError";
    this.line = before.length;
    this.column = column;
  }
}
