import type { UserText } from "../user-text.ts";
import { compileBody, type Execute } from "./compile-statement.ts";
import { iterated } from "./operators.ts";
import { parseTemplate } from "./parse-template.ts";
import { pythonText } from "./python-text.ts";
import {
  functionValue,
  integerValue,
  isInteger,
  isList,
  isMapping,
  listValue,
  mappingValue,
  type TemplateFunction,
  runtimeValue,
  Scope,
  separated,
  textValue,
  undefinedValue,
  type Value,
} from "./values.ts";

/** `raise_exception()` of a template: it rejects this conversation with a message of its own. */
export class TemplateRefusal extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TemplateRefusal";
  }
}

/**
 * A Jinja template that renders as in Python, where chat templates are written and tested: printing, comparing, undefined values,
 * string methods and scopes follow Python's rules.
 *
 * This is an implementation of our own because client text must stay recognizable through every operation on it, so that it cannot
 * become special tokens: strings contain marks (see `UserText`), which filters, methods and operators must preserve. Jinja libraries for
 * JavaScript know no marks, and follow JavaScript's rules for printing and comparing.
 */
export class PythonTemplate {
  readonly #execute: Execute;
  /** All literal texts of the template. */
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

/** The global functions. */
const globals: ReadonlyMap<string, Value> = new Map(
  Object.entries<TemplateFunction>({
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

/** Python's `strftime` in the C locale and the local time zone, with the directives that are common in prompts. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (directive, unpadded: string, letter: string) => {
    const part = parts[letter]?.(date);
    if (part === undefined) return directive;
    return unpadded === "" ? part : part.replace(/^0+(?=.)/, "");
  });
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

const two = (number: number): string => String(number).padStart(2, "0");
const day = (date: Date): string => days[date.getDay()] ?? "";
const month = (date: Date): string => months[date.getMonth()] ?? "";

const parts: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => two(date.getFullYear() % 100),
  m: (date) => two(date.getMonth() + 1),
  d: (date) => two(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2),
  B: month,
  b: (date) => month(date).slice(0, 3),
  h: (date) => month(date).slice(0, 3),
  A: day,
  a: (date) => day(date).slice(0, 3),
  H: (date) => two(date.getHours()),
  I: (date) => two(date.getHours() % 12 || 12),
  M: (date) => two(date.getMinutes()),
  S: (date) => two(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  j: (date) => String(dayOfYear(date)).padStart(3, "0"),
  F: (date) => strftime(date, "%Y-%m-%d"),
  T: (date) => strftime(date, "%H:%M:%S"),
  R: (date) => strftime(date, "%H:%M"),
  D: (date) => strftime(date, "%m/%d/%y"),
  c: (date) => strftime(date, "%a %b %e %H:%M:%S %Y"),
  "%": () => "%",
};

function dayOfYear(date: Date): number {
  const days = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 0);
  return days / 86_400_000;
}
