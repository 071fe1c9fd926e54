import type { UserText } from "../user-text.ts";
import { callMethod, integerArgument, textArgument } from "./methods.ts";
import { compare, containsItem, equal, item, iterated, lengthOf } from "./operators.ts";
import { splitLines, strip } from "./python-strings.ts";
import { pythonText, toJson } from "./python-text.ts";
import {
  booleanValue,
  floatValue,
  integerValue,
  isBoolean,
  isFloat,
  isFunction,
  isInteger,
  isList,
  isMapping,
  isNone,
  isNumber,
  isText,
  isTrue,
  isUndefined,
  keyValue,
  listValue,
  parameters,
  textValue,
  tupleValue,
  undefinedValue,
  type Value,
} from "./values.ts";

/** Whether a flag was passed and is true. */
function isSet(flag: Value | undefined): boolean {
  return flag !== undefined && isTrue(flag);
}

type Filter = (value: Value, args: readonly Value[], user: UserText) => Value;

/** Applies one of Jinja's filters, as far as chat templates use them. Undefined counts as empty text and as an empty list. */
export function filter(name: string, value: Value, args: readonly Value[], user: UserText): Value {
  const known = filters.get(name);
  if (known === undefined) throw new ReferenceError(`No filter named '${name}'.`);
  return known(value, args, user);
}

const filters: ReadonlyMap<string, Filter> = new Map<string, Filter>(
  Object.entries({
    // Any value
    default: orDefault,
    d: orDefault,
    safe: (value: Value) => value,
    string: (value, _args, user) => textValue(pythonText(value, user)),
    tojson: (value, args, user) => textValue(toJson(value, args, user)),
    length: (value, _args, user) => integerValue(lengthOf(value, user)),
    count: (value, _args, user) => integerValue(lengthOf(value, user)),
    list: (value, _args, user) => listValue([...iterated(value, user)]),
    attr: (value, [name], user) => (name === undefined ? undefinedValue : item(value, name, user)),
    bool: (value: Value) => booleanValue(isTrue(value)),

    // Numbers
    abs: (value: Value) => {
      if (!isNumber(value)) throw new TypeError("abs needs a number");
      return (isInteger(value) ? integerValue : floatValue)(Math.abs(value.value));
    },
    int: (value, args) => {
      const number = Math.trunc(numberIn(value));
      return Number.isNaN(number) ? (parameters(args, "default")[0] ?? integerValue(0)) : integerValue(number);
    },
    float: (value, args) => {
      const number = numberIn(value);
      return Number.isNaN(number) ? (parameters(args, "default")[0] ?? floatValue(0)) : floatValue(number);
    },
    round: (value, args) => {
      const [precision, method] = parameters(args, "precision", "method");
      const scale = 10 ** integerArgument(precision, 0);
      const way = method === undefined ? "common" : textArgument(method, "method");
      const round = way === "floor" ? Math.floor : way === "ceil" ? Math.ceil : Math.round;
      return floatValue(round(numberIn(value) * scale) / scale);
    },

    // Texts
    upper: method("upper"),
    lower: method("lower"),
    title: method("title"),
    capitalize: method("capitalize"),
    replace: method("replace"),
    trim: (value, args, user) => {
      const [chars] = parameters(args, "chars");
      return textValue(
        strip(
          pythonText(value, user),
          chars === undefined || isNone(chars) ? undefined : textArgument(chars, "chars"),
          user,
        ),
      );
    },
    indent: (value, args, user) => {
      const [width, first, blank] = parameters(args, "width", "first", "blank");
      const by = width !== undefined && isText(width) ? width.value : " ".repeat(integerArgument(width, 4));
      // Python's lines, whose ends are also U+2028 and others, become lines of "\n".
      const lines = splitLines(`${pythonText(value, user)}\n`, false).map((line, index) => {
        if (index === 0) return isSet(first) ? by + line : line;
        return line === "" && !isSet(blank) ? line : by + line;
      });
      return textValue(lines.join("\n"));
    },
    join: (value, args, user) => {
      const [separator, attribute] = parameters(args, "d", "attribute");
      const parts = iterated(value, user).map((each) => pythonText(attributeOf(each, attribute, user), user));
      return textValue(parts.join(separator === undefined ? "" : pythonText(separator, user)));
    },
    wordcount: (value, _args, user) =>
      integerValue(user.plain(pythonText(value, user)).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0),
    escape: escaped,
    e: escaped,

    // Lists
    first: (value, _args, user) => iterated(value, user)[0] ?? undefinedValue,
    last: (value, _args, user) => iterated(value, user).at(-1) ?? undefinedValue,
    reverse: (value, _args, user) => {
      const reversed = [...iterated(value, user)].reverse();
      return isText(value) ? textValue(reversed.map((each) => pythonText(each, user)).join("")) : listValue(reversed);
    },
    sum: (value, args, user) => {
      const [attribute, start] = parameters(args, "attribute", "start");
      let sum = start === undefined ? 0 : numberIn(start);
      for (const each of iterated(value, user)) sum += numberIn(attributeOf(each, attribute, user));
      return Number.isInteger(sum) ? integerValue(sum) : floatValue(sum);
    },
    min: (value, _args, user) => sorted(iterated(value, user), undefined, false, user)[0] ?? undefinedValue,
    max: (value, _args, user) => sorted(iterated(value, user), undefined, false, user).at(-1) ?? undefinedValue,
    sort: (value, args, user) => {
      const [reverse, caseSensitive, attribute] = parameters(args, "reverse", "case_sensitive", "attribute");
      const items = sorted(iterated(value, user), attribute, isSet(caseSensitive), user);
      return listValue(isSet(reverse) ? items.reverse() : items);
    },
    unique: (value, args, user) => {
      const [caseSensitive, attribute] = parameters(args, "case_sensitive", "attribute");
      const key = (each: Value): Value => sortKey(attributeOf(each, attribute, user), isSet(caseSensitive), user);
      const kept: Value[] = [];
      for (const each of iterated(value, user)) {
        if (!kept.some((other) => equal(key(other), key(each), user))) kept.push(each);
      }
      return listValue(kept);
    },
    map: (value, args, user) => {
      const [attribute, otherwise] = parameters(args.slice(-1), "", "attribute", "default").slice(1);
      const [name, ...rest] = args;
      return listValue(
        itemsIn(value, user).map((each) => {
          if (attribute === undefined) return filter(textArgument(name, "filter"), each, rest, user);
          const found = attributeOf(each, attribute, user);
          return isUndefined(found) ? (otherwise ?? found) : found;
        }),
      );
    },
    select: (value, args, user) => chosen(value, args, false, true, user),
    reject: (value, args, user) => chosen(value, args, false, false, user),
    selectattr: (value, args, user) => chosen(value, args, true, true, user),
    rejectattr: (value, args, user) => chosen(value, args, true, false, user),
    groupby: (value, args, user) => {
      const [attribute] = parameters(args, "attribute");
      const groups: { key: Value; members: Value[] }[] = [];
      for (const each of sorted(iterated(value, user), attribute, false, user)) {
        const key = attributeOf(each, attribute, user);
        const last = groups.at(-1);
        if (last !== undefined && equal(last.key, key, user)) last.members.push(each);
        else groups.push({ key, members: [each] });
      }
      return listValue(groups.map(({ key, members }) => tupleValue([key, listValue(members)])));
    },

    // Mappings
    items: (value, _args, user) => callMethod(value, "items", [], user) ?? listValue([]),
    dictsort: (value, args, user) => {
      const [caseSensitive, by, reverse] = parameters(args, "case_sensitive", "by", "reverse");
      const at = integerValue(by !== undefined && isText(by) && by.value === "value" ? 1 : 0);
      const pairs = isMapping(value) ? [...value.value].map(([key, each]) => tupleValue([keyValue(key), each])) : [];
      const items = sorted(pairs, at, isSet(caseSensitive), user);
      return listValue(isSet(reverse) ? items.reverse() : items);
    },
  } satisfies Record<string, Filter>),
);

function orDefault(value: Value, args: readonly Value[]): Value {
  const [otherwise, falsyToo] = parameters(args, "default_value", "boolean");
  const missing = isUndefined(value) || (isSet(falsyToo) && !isTrue(value));
  return missing ? (otherwise ?? textValue("")) : value;
}

/** A filter that is a method of Python's str. */
function method(name: string): Filter {
  return (value, args, user) => callMethod(textValue(pythonText(value, user)), name, args, user) ?? undefinedValue;
}

function escaped(value: Value, _args: readonly Value[], user: UserText): Value {
  const entities: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&#34;",
    "'": "&#39;",
  };
  return textValue(
    user.change(pythonText(value, user), (part) => part.replace(/[&<>"']/g, (character) => entities[character] ?? "")),
  );
}

/** The items for `select`, `map` and similar filters, which treat None as empty. */
function itemsIn(value: Value, user: UserText): Value[] {
  return isNone(value) ? [] : iterated(value, user);
}

/** `select`, `reject` and, by an attribute of each item, `selectattr` and `rejectattr`. */
function chosen(value: Value, args: readonly Value[], byAttribute: boolean, keep: boolean, user: UserText): Value {
  const attribute = byAttribute ? args[0] : undefined;
  const [name, ...against] = byAttribute ? args.slice(1) : args;
  return listValue(
    itemsIn(value, user).filter((each) => {
      const looked = attributeOf(each, attribute, user);
      const holds = name === undefined ? isTrue(looked) : test(textArgument(name, "test"), looked, against, user);
      return holds === keep;
    }),
  );
}

/** Returns the value at a dotted path, or the value itself without a path. */
function attributeOf(value: Value, path: Value | undefined, user: UserText): Value {
  if (path === undefined || isNone(path)) return value;
  if (isInteger(path)) return item(value, path, user);
  return textArgument(path, "attribute")
    .split(".")
    .reduce(
      (at, part) => item(at, /^\d+$/.test(part) && isList(at) ? integerValue(Number(part)) : textValue(part), user),
      value,
    );
}

function sorted(values: readonly Value[], path: Value | undefined, caseSensitive: boolean, user: UserText): Value[] {
  return values
    .map((value) => ({ value, key: sortKey(attributeOf(value, path, user), caseSensitive, user) }))
    .sort((a, b) => compare(a.key, b.key, user))
    .map(({ value }) => value);
}

function sortKey(value: Value, caseSensitive: boolean, user: UserText): Value {
  if (!isText(value)) return value;
  const plain = user.plain(value.value);
  return textValue(caseSensitive ? plain : plain.toLowerCase());
}

/** Converts a value as `int` and `float` do; NaN if it is not a number. */
function numberIn(value: Value): number {
  if (isNumber(value)) return value.value;
  if (isBoolean(value)) return Number(value.value);
  if (!isText(value)) return Number.NaN;
  const text = value.value.trim().replaceAll("_", "");
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
}

type Test = (value: Value, args: readonly Value[], user: UserText) => boolean;

/** Applies one of Jinja's tests: after `is`, or by name in `select` and similar filters. */
export function test(name: string, value: Value, args: readonly Value[], user: UserText): boolean {
  const known = tests.get(name);
  if (known === undefined) throw new ReferenceError(`No test named '${name}'.`);
  return known(value, args, user);
}

const against =
  (holds: (value: Value, other: Value, user: UserText) => boolean): Test =>
  (value, [other], user) =>
    other !== undefined && holds(value, other, user);

const equals = against(equal);
const differs = against((value, other, user) => !equal(value, other, user));
const less = against((value, other, user) => compare(value, other, user) < 0);
const lessOrEqual = against((value, other, user) => compare(value, other, user) <= 0);
const greater = against((value, other, user) => compare(value, other, user) > 0);
const greaterOrEqual = against((value, other, user) => compare(value, other, user) >= 0);
const divisible = (value: Value, by: number): boolean => isInteger(value) && value.value % by === 0;

const tests: ReadonlyMap<string, Test> = new Map<string, Test>(
  Object.entries({
    defined: (value) => !isUndefined(value),
    undefined: isUndefined,
    none: isNone,
    true: (value) => isBoolean(value) && value.value,
    false: (value) => isBoolean(value) && !value.value,
    boolean: isBoolean,
    string: isText,
    integer: isInteger,
    float: isFloat,
    number: (value) => isNumber(value) || isBoolean(value),
    mapping: isMapping,
    sequence: (value) => isList(value) || isText(value) || isMapping(value) || isUndefined(value),
    iterable: (value) => isList(value) || isText(value) || isMapping(value) || isUndefined(value),
    callable: isFunction,
    odd: (value) => isInteger(value) && value.value % 2 !== 0,
    even: (value) => divisible(value, 2),
    divisibleby: (value, [by]) => by !== undefined && isInteger(by) && divisible(value, by.value),
    lower: (value, _args, user) => isText(value) && user.plain(value.value) === user.plain(value.value).toLowerCase(),
    upper: (value, _args, user) => isText(value) && user.plain(value.value) === user.plain(value.value).toUpperCase(),
    in: against((value, container, user) => containsItem(container, value, user)),
    sameas: against((value, other) => value === other || (value.type === other.type && value.value === other.value)),
    eq: equals,
    equalto: equals,
    "==": equals,
    ne: differs,
    "!=": differs,
    lt: less,
    lessthan: less,
    "<": less,
    le: lessOrEqual,
    "<=": lessOrEqual,
    gt: greater,
    greaterthan: greater,
    ">": greater,
    ge: greaterOrEqual,
    ">=": greaterOrEqual,
  }),
);
