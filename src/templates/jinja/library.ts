import { Environment as LibraryEnvironment, Interpreter, parse, tokenize } from "@huggingface/jinja";

// What is used of @huggingface/jinja, with types: its own do not resolve under `nodenext`, so that everything would be `any`.

export interface Token {
  readonly type: string;
  readonly value: string;
}

/** A node of the syntax tree. Members are nodes, lists or maps of nodes, tokens, or plain data. */
export interface Node {
  readonly type: string;
  [member: string]: unknown;
}

/** A value at run time. */
export interface Value {
  readonly type: string;
  readonly value: unknown;
  __bool__(): { readonly value: boolean };
}

/** A scope of variables. */
export interface Scope {
  readonly variables: Map<string, Value>;
  /** Declares a variable with a JSON-like value, or with a function of such. Throws when the name is taken. */
  set(name: string, value: unknown): Value;
  setVariable(name: string, value: Value): Value;
  lookupVariable(name: string): Value;
}

export function newScope(): Scope {
  return new LibraryEnvironment() as Scope;
}

/** The template's tags and texts, white space cut as chat templates expect it (`trim_blocks`, `lstrip_blocks`). */
export function tokensOf(source: string): Token[] {
  return tokenize(source, { lstrip_blocks: true, trim_blocks: true }) as Token[];
}

export function parseTokens(tokens: readonly Token[]): Node {
  return parse([...tokens]) as Node;
}

/** The text that a program writes. */
export function runProgram(program: Node, scope: Scope): string {
  return (new Interpreter(scope).run(program) as { value: string }).value;
}
