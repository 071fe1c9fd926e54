import { newScope, parseTokens, runProgram, tokensOf, type Node, type Token, type Value } from "./library.ts";
import type { UserText } from "../user-text.ts";
import { identifiersIn, pythonSemantics } from "./python-semantics.ts";
import { filter } from "./filters.ts";
import { callMethod } from "./methods.ts";
import { binary, item, iterated, slice } from "./operators.ts";
import { pythonText } from "./python-text.ts";
import { strftime } from "./strftime.ts";
import { test } from "./tests.ts";
import {
  booleanValue,
  functionValue,
  integerValue,
  isFunction,
  isInteger,
  isMapping,
  isText,
  isUndefined,
  listValue,
  mappingValue,
  none,
  runtimeValue,
  textValue,
  typeName,
  undefinedValue,
  type Native,
} from "./values.ts";

/** `raise_exception()` of a template: it refuses this conversation, in its own words. */
export class TemplateRefusal extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TemplateRefusal";
  }
}

/**
 * A Jinja template that renders as in Python, where chat templates are written and tested. The library parses it and runs its
 * statements: blocks, loops, macros, scopes. What values do (operators, filters, tests, methods, printing) follows Python instead of
 * JavaScript: `pythonSemantics` turns each of these in the parsed template into a call of a function given here.
 */
export class PythonTemplate {
  readonly #program: Node;
  readonly #names: readonly string[];
  /** Every text that the template itself can write: between its tags, and quoted. */
  readonly literals: readonly string[];

  /** Throws `SyntaxError` (or the library's `Error`) for a source that is no template. */
  constructor(source: string) {
    const tokens = tokensOf(source);
    this.literals = tokens.flatMap(({ type, value }) => (type === "Text" || type === "StringLiteral" ? value : []));
    this.#program = parseTokens(withTestArguments(tokens));
    pythonSemantics(this.#program);
    this.#names = [...identifiersIn(this.#program)];
  }

  /** `variables` are JSON-like. Throws `TemplateRefusal`, or any error of evaluating. */
  render(variables: Readonly<Record<string, unknown>>, now: Date, user: UserText): string {
    const scope = newScope();
    for (const [name, native] of natives(now, user)) scope.setVariable(name, functionValue(native));
    for (const [name, value] of Object.entries({ True: true, true: true, False: false, false: false })) {
      scope.setVariable(name, booleanValue(value));
    }
    scope.setVariable("None", none);
    scope.setVariable("none", none);
    for (const [name, value] of Object.entries(variables)) {
      if (!scope.variables.has(name)) scope.setVariable(name, runtimeValue(value));
    }
    // The library looks an unknown name up by throwing and catching, which is slow; a name that is undefined is found at once.
    for (const name of this.#names) {
      if (!scope.variables.has(name)) scope.setVariable(name, undefinedValue);
    }
    return runProgram(this.#program, scope);
  }
}

/**
 * What the library's parser does not know, in words that it does: `x is test(y)` becomes a filter named "is test", and
 * `{% do f() %}` an assignment that nobody reads.
 */
function withTestArguments(tokens: readonly Token[]): Token[] {
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
        { type: "Identifier", value: "python done" },
        { type: "Equals", value: "=" },
      );
      at++;
    }
  }
  return rewritten;
}

/** The functions that templates see, and those that `pythonSemantics` calls. */
function natives(now: Date, user: UserText): [name: string, native: Native][] {
  const at = (args: readonly Value[], index: number): Value => args[index] ?? undefinedValue;
  const text = (args: readonly Value[], index: number): string => pythonText(at(args, index), user);
  return [
    ["raise_exception", (args) => fail(new TemplateRefusal(user.plain(text(args, 0))))],
    ["strftime_now", (args) => textValue(strftime(now, text(args, 0)))],
    ["range", (args) => listValue(numbers(args).map(integerValue))],
    ["dict", ([source, ...more]) => merged([source ?? mappingValue([]), ...more])],
    ["python binary", (args) => binary(text(args, 0), at(args, 1), at(args, 2), user)],
    ["python filter", ([name, value, ...args]) => filter(nameOf(name), value ?? undefinedValue, args, user)],
    ["python test", ([name, value, ...args]) => booleanValue(test(nameOf(name), value ?? undefinedValue, args, user))],
    ["python item", (args) => item(at(args, 0), at(args, 1), user)],
    ["python slice", ([value, ...bounds]) => slice(value ?? undefinedValue, bounds, user)],
    ["python each", (args) => listValue(iterated(at(args, 0), user))],
    [
      "python unpacked",
      (args) => listValue(iterated(at(args, 0), user).map((each) => listValue(iterated(each, user)))),
    ],
    ["python print", (args) => (isText(at(args, 0)) ? at(args, 0) : textValue(text(args, 0)))],
    ["python dict", (args) => mappingValue(pairs(args, user))],
    [
      "python method",
      ([object = undefinedValue, name, ...args], scope) => {
        const result = callMethod(object, nameOf(name), args, user);
        if (result !== null) return result;
        const member = item(object, name ?? undefinedValue, user);
        if (isFunction(member)) return member.value(args, scope);
        throw new TypeError(
          isUndefined(object)
            ? `cannot call ${nameOf(name)}() of an undefined value`
            : `'${typeName(object)} object' has no attribute '${nameOf(name)}'`,
        );
      },
    ],
    [
      "python forget",
      (args, scope) => {
        for (const name of args) scope.variables.delete(nameOf(name));
        return none;
      },
    ],
    [
      "python break",
      (_args, scope) => {
        scope.setVariable("python broken", booleanValue(true));
        return none;
      },
    ],
  ];
}

function fail(error: Error): never {
  throw error;
}

function nameOf(value: Value | undefined): string {
  return value !== undefined && isText(value) ? value.value : "";
}

/** Python's `range`. */
function numbers(args: readonly Value[]): number[] {
  const given = args.filter(isInteger).map(({ value }) => value);
  const [start, stop, step] = [given.length > 1 ? (given[0] ?? 0) : 0, given[1] ?? given[0] ?? 0, given[2] ?? 1];
  if (step === 0) throw new RangeError("range() arg 3 must not be zero");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > 100_000) throw new RangeError("the range is too long");
  return Array.from({ length: count }, (_, index) => start + index * step);
}

/** One mapping of several, the later ones winning. */
function merged(mappings: readonly Value[]): Value {
  return mappingValue(mappings.flatMap((mapping) => (isMapping(mapping) ? [...mapping.value] : [])));
}

/** Keys and values in turn, as entries. */
function pairs(args: readonly Value[], user: UserText): [string | number, Value][] {
  const entries: [string | number, Value][] = [];
  for (let index = 0; index < args.length; index += 2) {
    const key = args[index] ?? none;
    entries.push([isInteger(key) ? key.value : pythonText(key, user), args[index + 1] ?? none]);
  }
  return entries;
}
