import { TemplateSyntaxError } from "./template-syntax-error.ts";
import type { Token, TokenKind, Tokens } from "./tokenize.ts";

/** How deep blocks and brackets may be nested. Python's own compiler allows 200 brackets. */
const deepest = 200;

/** A template's tokens, read from the first to the last. */
export class TokenReader {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;
  #loopMentions = 0;

  constructor({ source, tokens }: Tokens) {
    this.#source = source;
    this.#tokens = tokens;
  }

  /** The next token, or one after it. The last token is always `end`, however far one looks. */
  peek(offset = 0): Token {
    return this.#tokens[Math.min(this.#at + offset, this.#tokens.length - 1)] ?? endOfNothing;
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    if (token.kind === "name" && token.text === "loop") this.#loopMentions++;
    return token;
  }

  /** How often the name `loop` has been read so far. */
  get loopMentions(): number {
    return this.#loopMentions;
  }

  /** Whether the next token is of this kind, and says one of these texts where some are given. */
  is(kind: TokenKind, ...texts: readonly string[]): boolean {
    const token = this.peek();
    return token.kind === kind && (texts.length === 0 || texts.includes(token.text));
  }

  /** Takes the next token where it is this one. */
  skip(kind: TokenKind, text: string): boolean {
    const found = this.is(kind, text);
    if (found) this.next();
    return found;
  }

  /** Takes the next token, which must be of this kind. */
  expect(kind: TokenKind, text?: string): Token {
    if (this.peek().kind !== kind || (text !== undefined && this.peek().text !== text)) {
      this.fail(`expected ${text === undefined ? (described[kind] ?? `'${kind}'`) : `'${text}'`}, got ${this.shown()}`);
    }
    return this.next();
  }

  /** Parses something that stands inside of something else. */
  nested<T>(parse: () => T): T {
    if (++this.#depth > deepest) this.fail(`blocks and brackets are nested more than ${deepest} levels deep`);
    const parsed = parse();
    this.#depth--;
    return parsed;
  }

  /** The next token, in words. */
  shown(): string {
    const { kind, text } = this.peek();
    return kind === "end" ? "the end of the template" : kind === "string" ? "a string" : `'${text}'`;
  }

  fail(problem: string, { start }: Token = this.peek()): never {
    throw new TemplateSyntaxError(problem, this.#source, start);
  }
}

const endOfNothing: Token = { kind: "end", text: "", start: 0 };

const described: Partial<Record<TokenKind, string>> = { name: "a name", end: "the end of the template" };
