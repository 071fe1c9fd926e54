import type { UserText } from "../user-text.ts";
import { compileBody, type Execute } from "./compile-statement.ts";
import { iterated } from "./operators.ts";
import { parseTemplate } from "./parse-template.ts";
import { pythonText } from "./python-text.ts";
import { Scope } from "./scope.ts";
import { strftime } from "./strftime.ts";
import {
  functionValue,
  integerValue,
  isInteger,
  isList,
  isMapping,
  listValue,
  mappingValue,
  runtimeValue,
  separated,
  textValue,
  undefinedValue,
  type Native,
  type Value,
} from "./values.ts";

/** `raise_exception()` of a template: it refuses this conversation, in its own words. */
export class TemplateRefusal extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TemplateRefusal";
  }
}

/**
 * A Jinja template that renders as in Python, where chat templates are written and tested: printing, comparing, undefined values,
 * string methods and scopes follow Python's rules. Text of the client stays recognisable until the end, through every operation on it
 * (see UserText).
 */
export class PythonTemplate {
  readonly #execute: Execute;
  /** Every text that the template itself can write. */
  readonly literals: readonly string[];

  /** Throws `TemplateSyntaxError`. */
  constructor(source: string) {
    const { body, literals } = parseTemplate(source);
    this.literals = literals;
    this.#execute = compileBody(body);
  }

  /** `variables` are JSON-like. Throws `TemplateRefusal`, or any error of evaluating. */
  render(variables: Readonly<Record<string, unknown>>, now: Date, user: UserText): string {
    const scope = new Scope(null);
    for (const [name, value] of Object.entries(variables)) scope.set(name, runtimeValue(value));
    for (const [name, value] of globals) scope.set(name, value);
    const out = { text: "" };
    this.#execute(scope, out, { user, now });
    return out.text;
  }
}

/** The functions that every template sees. */
const globals: ReadonlyMap<string, Value> = new Map(
  Object.entries<Native>({
    raise_exception: ([message = undefinedValue], { user }) => {
      throw new TemplateRefusal(user.plain(pythonText(message, user)));
    },
    strftime_now: ([format = undefinedValue], { now, user }) => textValue(strftime(now, pythonText(format, user))),
    range: (args) => listValue(numbers(args).map(integerValue)),
    dict: (args, { user }) => mappingValue(entriesOf(args, user)),
    namespace: (args, { user }) => mappingValue(entriesOf(args, user), "namespace"),
  }).map(([name, native]) => [name, functionValue(native)] as const),
);

/** Python's `range`. */
function numbers(args: readonly Value[]): number[] {
  const given = args.filter(isInteger).map(({ value }) => value);
  const [start, stop, step] = [given.length > 1 ? (given[0] ?? 0) : 0, given[1] ?? given[0] ?? 0, given[2] ?? 1];
  if (step === 0) throw new RangeError("range() arg 3 must not be zero");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > 100_000) throw new RangeError("the range is too long");
  return Array.from({ length: count }, (_, index) => start + index * step);
}

/** The entries of mappings, of lists of pairs and of keyword arguments, the later ones winning. */
function entriesOf(args: readonly Value[], user: UserText): [string | number, Value][] {
  const [positional, keywords] = separated(args);
  const entries = positional.flatMap((source) => {
    if (isMapping(source)) return [...source.value];
    return iterated(source, user).map((pair): [string | number, Value] => {
      const [key = undefinedValue, value = undefinedValue] = isList(pair) ? pair.value : [];
      return [isInteger(key) ? key.value : pythonText(key, user), value];
    });
  });
  return [...entries, ...(keywords ?? [])];
}
