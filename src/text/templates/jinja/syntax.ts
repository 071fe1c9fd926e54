/** A parsed template, which compile-statement.ts and compile-expression.ts compile to functions. */
export interface Syntax {
  readonly body: Statements;
  /** All literal texts: between tags, and quoted. */
  readonly literals: readonly string[];
}

export type Statements = readonly Statement[];

export type Statement =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "print" | "do"; readonly value: TemplateExpression }
  | { readonly kind: "break" | "continue" }
  | { readonly kind: "if"; readonly branches: readonly Branch[]; readonly otherwise: Statements }
  | ForStatement
  | { readonly kind: "set"; readonly target: AssignmentTarget; readonly value: TemplateExpression }
  | SetBlock
  | { readonly kind: "filter-block"; readonly filters: readonly FilterLink[]; readonly body: Statements }
  | { readonly kind: "generation"; readonly body: Statements }
  | MacroStatement
  | CallBlock;

/** An `if` or `elif` with its body. */
export interface Branch {
  readonly test: TemplateExpression;
  readonly body: Statements;
}

export interface ForStatement {
  readonly kind: "for";
  readonly target: AssignmentTarget;
  readonly items: TemplateExpression;
  /** `for x in xs if condition`. */
  readonly condition: TemplateExpression | null;
  readonly body: Statements;
  readonly otherwise: Statements;
  /** The body, or one inside it, mentions `loop`. */
  readonly usesLoop: boolean;
}

/** `{% set name %}…{% endset %}`. */
export interface SetBlock {
  readonly kind: "set-block";
  readonly target: AssignmentTarget;
  readonly filters: readonly FilterLink[];
  readonly body: Statements;
}

export interface MacroStatement {
  readonly kind: "macro";
  readonly name: string;
  readonly parameters: readonly MacroParameter[];
  readonly body: Statements;
}

/** `{% call(parameters) macro(args) %}…{% endcall %}`. */
export interface CallBlock {
  readonly kind: "call-block";
  readonly macro: TemplateExpression;
  readonly args: readonly Argument[];
  readonly parameters: readonly MacroParameter[];
  readonly body: Statements;
}

export interface MacroParameter {
  readonly name: string;
  readonly otherwise: TemplateExpression | null;
}

/** The left side of an assignment. */
export type AssignmentTarget =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "tuple"; readonly targets: readonly AssignmentTarget[] }
  | { readonly kind: "member"; readonly namespace: string; readonly name: string };

/**
 * Chains of operators and of links (members, calls, filters) are lists, so the depth of the tree is that of the brackets and blocks in the
 * source.
 */
export type TemplateExpression =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "integer" | "float"; readonly number: number }
  | { readonly kind: "constant"; readonly value: boolean | null }
  | { readonly kind: "list" | "tuple"; readonly items: readonly TemplateExpression[] }
  | {
      readonly kind: "mapping";
      readonly entries: readonly (readonly [key: TemplateExpression, value: TemplateExpression])[];
    }
  | Chain
  | { readonly kind: "not"; readonly operand: TemplateExpression }
  | { readonly kind: "sign"; readonly sign: "+" | "-"; readonly operand: TemplateExpression }
  | { readonly kind: "and" | "or"; readonly operands: readonly TemplateExpression[] }
  /** From the left: `1 - 2 + 3`. */
  | { readonly kind: "arithmetic"; readonly first: TemplateExpression; readonly rest: readonly Operation[] }
  /** As in Python, `a < b < c` is `a < b and b < c`. */
  | { readonly kind: "comparison"; readonly first: TemplateExpression; readonly rest: readonly Operation[] }
  /** `chosen if test else otherwise`. */
  | {
      readonly kind: "choice";
      readonly test: TemplateExpression;
      readonly chosen: TemplateExpression;
      readonly otherwise: TemplateExpression | null;
    };

export interface Operation {
  readonly operator: string;
  readonly operand: TemplateExpression;
}

/** A value and its links, from left to right: `base.name[key](args) | filter is test`. */
export interface Chain {
  readonly kind: "chain";
  readonly base: TemplateExpression;
  readonly links: readonly Link[];
}

export type Link =
  | { readonly kind: "attribute"; readonly name: string }
  | { readonly kind: "item"; readonly key: TemplateExpression }
  | { readonly kind: "slice"; readonly bounds: readonly (TemplateExpression | null)[] }
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
  | { readonly kind: "positional" | "list" | "mapping"; readonly value: TemplateExpression }
  | { readonly kind: "keyword"; readonly name: string; readonly value: TemplateExpression };
