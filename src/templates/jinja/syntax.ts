import { parse, tokenize } from "@huggingface/jinja";

// The syntax tree that @huggingface/jinja makes of a template, as far as it is used. The library's own types do not resolve under
// `nodenext`, so what it exports counts as `any`; it is given its types here, once.

export type Statement =
  | Expression
  | { readonly type: "Comment" | "Break" | "Continue" }
  | IfStatement
  | ForStatement
  | SetStatement
  | MacroStatement
  | CallStatement
  | { readonly type: "FilterStatement"; readonly filter: Filter; readonly body: readonly Statement[] };

export interface IfStatement {
  readonly type: "If";
  readonly test: Expression;
  readonly body: readonly Statement[];
  readonly alternate: readonly Statement[];
}

export interface ForStatement {
  readonly type: "For";
  readonly loopvar: Expression;
  /** A SelectExpression where the loop has a condition: `for x in xs if …`. */
  readonly iterable: Expression;
  readonly body: readonly Statement[];
  readonly defaultBlock: readonly Statement[];
}

export interface SetStatement {
  readonly type: "Set";
  readonly assignee: Expression;
  /** null: the body's text is assigned. */
  readonly value: Expression | null;
  readonly body: readonly Statement[];
}

export interface MacroStatement {
  readonly type: "Macro";
  readonly name: Identifier;
  readonly args: readonly Parameter[];
  readonly body: readonly Statement[];
}

export interface CallStatement {
  readonly type: "CallStatement";
  readonly call: CallExpression;
  readonly callerArgs: readonly Parameter[] | null;
  readonly body: readonly Statement[];
}

export type Expression =
  | Identifier
  | { readonly type: "StringLiteral"; readonly value: string }
  | { readonly type: "IntegerLiteral" | "FloatLiteral"; readonly value: number }
  | { readonly type: "ArrayLiteral" | "TupleLiteral"; readonly value: readonly Expression[] }
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Expression, Expression> }
  | MemberExpression
  | CallExpression
  | { readonly type: "UnaryExpression"; readonly operator: Token; readonly argument: Expression }
  | BinaryExpression
  | { readonly type: "FilterExpression"; readonly operand: Expression; readonly filter: Filter }
  | {
      readonly type: "TestExpression";
      readonly operand: Expression;
      readonly negate: boolean;
      readonly test: Identifier;
    }
  | { readonly type: "SelectExpression"; readonly lhs: Expression; readonly test: Expression }
  | {
      readonly type: "Ternary";
      readonly condition: Expression;
      readonly trueExpr: Expression;
      readonly falseExpr: Expression;
    };

export interface Identifier {
  readonly type: "Identifier";
  readonly value: string;
}

export interface MemberExpression {
  readonly type: "MemberExpression";
  readonly object: Expression;
  readonly property: Expression | Slice;
  /** `object[property]`, not `object.property`. */
  readonly computed: boolean;
}

export interface Slice {
  readonly type: "SliceExpression";
  readonly start?: Expression;
  readonly stop?: Expression;
  readonly step?: Expression;
}

export interface CallExpression {
  readonly type: "CallExpression";
  readonly callee: Expression;
  readonly args: readonly Argument[];
}

export interface BinaryExpression {
  readonly type: "BinaryExpression";
  readonly operator: Token;
  readonly left: Expression;
  readonly right: Expression;
}

export type Filter = Identifier | CallExpression;
export type Parameter = Identifier | KeywordArgument;
export type Argument =
  | Expression
  | KeywordArgument
  | { readonly type: "SpreadExpression" | "KeywordSpreadExpression"; readonly argument: Expression };

export interface KeywordArgument {
  readonly type: "KeywordArgumentExpression";
  readonly key: Identifier;
  readonly value: Expression;
}

export interface Token {
  readonly type: string;
  readonly value: string;
}

export interface Syntax {
  readonly body: readonly Statement[];
  /** Every text that the template itself can write: between its tags, and quoted. */
  readonly literals: readonly string[];
}

/** Parses a template, white space cut as chat templates expect it. Throws what the library throws for a source that is none. */
export function parseTemplate(source: string): Syntax {
  const tokens = tokenize(source, { lstrip_blocks: true, trim_blocks: true }) as readonly Token[];
  return {
    body: (parse(inKnownWords(tokens)) as { readonly body: readonly Statement[] }).body,
    literals: tokens.flatMap(({ type, value }) => (type === "Text" || type === "StringLiteral" ? value : [])),
  };
}

/** Whether a name is looked up anywhere in this part of a tree. */
export function mentions(part: unknown, name: string): boolean {
  if (typeof part !== "object" || part === null) return false;
  if ("type" in part && part.type === "Identifier" && "value" in part && part.value === name) return true;
  const inner: Iterable<unknown> = part instanceof Map ? [...part].flat() : Object.values(part);
  for (const each of inner) if (mentions(each, name)) return true;
  return false;
}

/**
 * What the library's parser does not know, in words that it does: `x is test(y)` becomes a filter named "is test", and
 * `{% do f() %}` an assignment that nobody reads.
 */
function inKnownWords(tokens: readonly Token[]): Token[] {
  const rewritten: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    if (token === undefined) break;
    const named = (offset: number, name?: string): boolean => {
      const other = tokens[at + offset];
      return other?.type === "Identifier" && (name === undefined || other.value === name);
    };
    if (token.type === "Identifier" && token.value === "is") {
      const negated = named(1, "not");
      const name = tokens[at + (negated ? 2 : 1)];
      if (name?.type === "Identifier" && tokens[at + (negated ? 3 : 2)]?.type === "OpenParen") {
        rewritten.push(
          { type: "Pipe", value: "|" },
          { type: "Identifier", value: `is ${negated ? "not " : ""}${name.value}` },
        );
        at += negated ? 2 : 1;
        continue;
      }
    }
    rewritten.push(token);
    if (token.type === "OpenStatement" && named(1, "do")) {
      rewritten.push(
        { type: "Identifier", value: "set" },
        { type: "Identifier", value: "done by do" },
        { type: "Equals", value: "=" },
      );
      at++;
    }
  }
  return rewritten;
}
