/** A template, parsed: what compile-statement.ts and compile-expression.ts turn into functions. */
export interface Syntax {
  readonly body: Body;
  /** Every text that the template itself can write: between its tags, and quoted. */
  readonly literals: readonly string[];
}

export type Body = readonly Statement[];

export type Statement =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "print" | "do"; readonly value: Expression }
  | { readonly kind: "break" | "continue" }
  | { readonly kind: "if"; readonly branches: readonly Branch[]; readonly otherwise: Body }
  | ForStatement
  | { readonly kind: "set"; readonly target: Target; readonly value: Expression }
  | SetBlock
  | { readonly kind: "filter-block"; readonly filters: readonly FilterLink[]; readonly body: Body }
  | { readonly kind: "generation"; readonly body: Body }
  | MacroStatement
  | CallBlock;

/** An `if` or `elif` with its body. */
export interface Branch {
  readonly test: Expression;
  readonly body: Body;
}

export interface ForStatement {
  readonly kind: "for";
  readonly target: Target;
  readonly items: Expression;
  /** `for x in xs if condition`: only these items are gone through. */
  readonly condition: Expression | null;
  readonly body: Body;
  readonly otherwise: Body;
  /** The body, or one inside of it, speaks of `loop`. */
  readonly usesLoop: boolean;
}

/** `{% set name %}…{% endset %}`. */
export interface SetBlock {
  readonly kind: "set-block";
  readonly target: Target;
  readonly filters: readonly FilterLink[];
  readonly body: Body;
}

export interface MacroStatement {
  readonly kind: "macro";
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly body: Body;
}

/** `{% call(parameters) macro(args) %}…{% endcall %}`. */
export interface CallBlock {
  readonly kind: "call-block";
  readonly macro: Expression;
  readonly args: readonly Argument[];
  readonly parameters: readonly Parameter[];
  readonly body: Body;
}

export interface Parameter {
  readonly name: string;
  readonly otherwise: Expression | null;
}

/** What can stand left of an assignment. */
export type Target =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "tuple"; readonly targets: readonly Target[] }
  | { readonly kind: "member"; readonly namespace: string; readonly name: string };

/**
 * Chains of operators and of links (members, calls, filters) are lists, not trees. So the tree is only as deep as brackets and blocks
 * are nested in the source, however long its chains are.
 */
export type Expression =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "integer" | "float"; readonly number: number }
  | { readonly kind: "constant"; readonly value: boolean | null }
  | { readonly kind: "list" | "tuple"; readonly items: readonly Expression[] }
  | { readonly kind: "mapping"; readonly entries: readonly (readonly [key: Expression, value: Expression])[] }
  | Chain
  | { readonly kind: "not"; readonly operand: Expression }
  | { readonly kind: "sign"; readonly sign: "+" | "-"; readonly operand: Expression }
  | { readonly kind: "and" | "or" | "concatenation"; readonly operands: readonly Expression[] }
  /** From the left: `1 - 2 + 3`. */
  | { readonly kind: "arithmetic"; readonly first: Expression; readonly rest: readonly Operation[] }
  /** As in Python, `a < b < c` is `a < b and b < c`. */
  | { readonly kind: "comparison"; readonly first: Expression; readonly rest: readonly Operation[] }
  /** `chosen if test else otherwise`. */
  | {
      readonly kind: "choice";
      readonly test: Expression;
      readonly chosen: Expression;
      readonly otherwise: Expression | null;
    };

export interface Operation {
  readonly operator: string;
  readonly operand: Expression;
}

/** A value and its links, from left to right: `base.name[key](args) | filter is test`. */
export interface Chain {
  readonly kind: "chain";
  readonly base: Expression;
  readonly links: readonly Link[];
}

export type Link =
  | { readonly kind: "attribute"; readonly name: string }
  | { readonly kind: "item"; readonly key: Expression }
  | { readonly kind: "slice"; readonly bounds: readonly (Expression | null)[] }
  | { readonly kind: "call"; readonly args: readonly Argument[] }
  | FilterLink
  | {
      readonly kind: "test";
      readonly name: string;
      readonly negated: boolean;
      readonly args: readonly Argument[];
    };

export interface FilterLink {
  readonly kind: "filter";
  readonly name: string;
  readonly args: readonly Argument[];
}

export type Argument =
  | { readonly kind: "positional" | "list" | "mapping"; readonly value: Expression }
  | { readonly kind: "keyword"; readonly name: string; readonly value: Expression };
