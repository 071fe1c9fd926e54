import { parseExpression, parseFilters, parsePrimary, parseTuple } from "./parse-expression.ts";
import type { Body, Branch, CallBlock, Expression, Parameter, Statement, Syntax, Target } from "./syntax.ts";
import { TokenReader } from "./token-reader.ts";
import { tokenize } from "./tokenize.ts";

/**
 * Parses a template: Jinja's grammar as far as chat templates use it, with loop controls, `do` and transformers' `generation` blocks.
 * Templates that include others (`include`, `extends`, `block` …) and recursive loops are not supported. Throws
 * `TemplateSyntaxError`.
 */
export function parseTemplate(source: string): Syntax {
  const tokens = tokenize(source);
  const parser = new StatementParser(new TokenReader(tokens));
  return {
    body: parser.template(),
    literals: tokens.tokens.flatMap(({ kind, text }) => (kind === "text" || kind === "string" ? text : [])),
  };
}

class StatementParser {
  readonly #tokens: TokenReader;
  /** How many loops are open around the place that is read, within the macro that it is in. */
  #loops = 0;

  constructor(tokens: TokenReader) {
    this.#tokens = tokens;
  }

  template(): Body {
    const body = this.#statements([]);
    this.#tokens.expect("end");
    return body;
  }

  /** The statements up to a tag with one of these names, or to the end of the template. That tag's name is the next token then. */
  #statements(ends: readonly string[]): Body {
    const tokens = this.#tokens;
    const body: Statement[] = [];
    for (;;) {
      if (tokens.is("end")) return body;
      const { kind, text } = tokens.next();
      if (kind === "text") body.push({ kind, text });
      else if (kind === "{{") {
        body.push({ kind: "print", value: parseTuple(tokens) });
        tokens.expect("}}");
      } else {
        if (tokens.is("name", ...ends) && ends.length > 0) return body;
        body.push(tokens.nested(() => this.#statement(ends)));
        tokens.expect("%}");
      }
    }
  }

  /** The statements between a tag and the one that ends it. Reads the tag's `%}` first; the ending tag's name is the next token then. */
  #body(...ends: readonly string[]): Body {
    const tokens = this.#tokens;
    const start = tokens.peek();
    // As in Python, a colon may end the tag.
    tokens.skip("operator", ":");
    tokens.expect("%}");
    const body = this.#statements(ends);
    if (tokens.is("end")) {
      tokens.fail(`this block has no ${ends.map((end) => `'{% ${end} %}'`).join(" or ")}`, start);
    }
    return body;
  }

  /** The same for a body that one tag ends, whose name is read, too. */
  #block(end: string): Body {
    const body = this.#body(end);
    this.#tokens.next();
    return body;
  }

  #statement(ends: readonly string[]): Statement {
    const tokens = this.#tokens;
    const tag = tokens.expect("name");
    switch (tag.text) {
      case "if":
        return this.#if();
      case "for":
        return this.#for();
      case "set":
        return this.#set();
      case "macro": {
        const name = tokens.expect("name").text;
        const parameters = this.#parameters();
        return { kind: "macro", name, parameters, body: this.#apart(() => this.#block("endmacro")) };
      }
      case "call":
        return this.#call();
      case "filter": {
        const filters = parseFilters(tokens);
        return { kind: "filter-block", filters, body: this.#block("endfilter") };
      }
      case "generation":
        return { kind: "generation", body: this.#block("endgeneration") };
      case "do":
        return { kind: "do", value: parseTuple(tokens) };
      case "break":
      case "continue":
        if (this.#loops === 0) tokens.fail(`'${tag.text}' outside of a loop`, tag);
        return { kind: tag.text };
      default: {
        const expected = ends.length === 0 ? "" : `; expected ${ends.map((end) => `'${end}'`).join(" or ")}`;
        return tokens.fail(`unknown tag '${tag.text}'${expected}`, tag);
      }
    }
  }

  #if(): Statement {
    const tokens = this.#tokens;
    const branches: Branch[] = [];
    for (;;) {
      const test = parseTuple(tokens, false);
      branches.push({ test, body: this.#body("elif", "else", "endif") });
      const { text } = tokens.next();
      if (text === "elif") continue;
      return { kind: "if", branches, otherwise: text === "else" ? this.#block("endif") : [] };
    }
  }

  #for(): Statement {
    const tokens = this.#tokens;
    const target = this.#target(false);
    tokens.expect("name", "in");
    const items = parseTuple(tokens, false);
    const condition = tokens.skip("name", "if") ? parseExpression(tokens) : null;
    if (tokens.is("name", "recursive")) tokens.fail("recursive loops are not supported");
    const mentions = tokens.loopMentions;
    this.#loops++;
    const body = this.#body("endfor", "else");
    this.#loops--;
    const usesLoop = tokens.loopMentions > mentions;
    const otherwise = tokens.next().text === "else" ? this.#block("endfor") : [];
    return { kind: "for", target, items, condition, body, otherwise, usesLoop };
  }

  #set(): Statement {
    const tokens = this.#tokens;
    const target = this.#target(true);
    if (tokens.skip("operator", "=")) return { kind: "set", target, value: parseTuple(tokens) };
    const filters = tokens.skip("operator", "|") ? parseFilters(tokens) : [];
    return { kind: "set-block", target, filters, body: this.#block("endset") };
  }

  #call(): CallBlock {
    const tokens = this.#tokens;
    const parameters = tokens.is("operator", "(") ? this.#parameters() : [];
    const start = tokens.peek();
    const called = parseExpression(tokens);
    const call = called.kind === "chain" ? called.links.at(-1) : undefined;
    if (called.kind !== "chain" || call?.kind !== "call") return tokens.fail("a call block needs a call", start);
    const links = called.links.slice(0, -1);
    const macro: Expression = links.length === 0 ? called.base : { ...called, links };
    return { kind: "call-block", macro, args: call.args, parameters, body: this.#apart(() => this.#block("endcall")) };
  }

  /** The body of a macro or call block cannot end a loop around it. */
  #apart<T>(parse: () => T): T {
    const loops = this.#loops;
    this.#loops = 0;
    const parsed = parse();
    this.#loops = loops;
    return parsed;
  }

  #parameters(): Parameter[] {
    const tokens = this.#tokens;
    const parameters: Parameter[] = [];
    tokens.expect("operator", "(");
    while (!tokens.is("operator", ")")) {
      if (parameters.length > 0) tokens.expect("operator", ",");
      const name = tokens.expect("name").text;
      const otherwise = tokens.skip("operator", "=") ? parseExpression(tokens) : null;
      if (otherwise === null && parameters.at(-1)?.otherwise) {
        tokens.fail(`'${name}' needs a default, as the parameter before it has one`);
      }
      parameters.push({ name, otherwise });
    }
    tokens.next();
    return parameters;
  }

  /** A name, or several. `members`: also those of a namespace. */
  #target(members: boolean): Target {
    const tokens = this.#tokens;
    const targets: Target[] = [];
    let several = false;
    do {
      if (several && tokens.is("%}")) break;
      targets.push(this.#oneTarget(members));
      several ||= tokens.is("operator", ",");
    } while (tokens.skip("operator", ","));
    const [first] = targets;
    return several || first === undefined ? { kind: "tuple", targets } : first;
  }

  #oneTarget(members: boolean): Target {
    const tokens = this.#tokens;
    const start = tokens.peek();
    const target = this.#asTarget(parsePrimary(tokens));
    if (target === null) return tokens.fail("this cannot be assigned to", start);
    if (!members || target.kind !== "name" || !tokens.skip("operator", ".")) return target;
    return { kind: "member", namespace: target.name, name: tokens.expect("name").text };
  }

  /** null: it cannot be assigned to. */
  #asTarget(expression: Expression): Target | null {
    if (expression.kind === "name") return expression;
    if (expression.kind !== "tuple") return null;
    const targets = expression.items.map((item) => this.#asTarget(item));
    return targets.every((target) => target !== null) ? { kind: "tuple", targets } : null;
  }
}
