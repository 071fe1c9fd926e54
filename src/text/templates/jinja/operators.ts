import type { UserText } from "../user-text.ts";
import { pythonText } from "./python-text.ts";
import {
  isBoolean,
  isInteger,
  isList,
  isMapping,
  isNamespace,
  isNone,
  isNumber,
  isText,
  isUndefined,
  keyValue,
  listValue,
  textValue,
  tupleValue,
  integerValue,
  floatValue,
  booleanValue,
  typeName,
  undefinedValue,
  type MappingValue,
  type Value,
} from "./values.ts";

/** Python's `==`: by value, at any depth; True equals 1; undefined equals only undefined. */
export function equal(a: Value, b: Value, user: UserText): boolean {
  if (isText(a) && isText(b)) return a.value === b.value || user.plain(a.value) === user.plain(b.value);
  const left = numberOf(a);
  const right = numberOf(b);
  if (left !== null && right !== null) return left === right;
  if (isList(a) && isList(b)) {
    if (a.type !== b.type || a.value.length !== b.value.length) return false;
    return a.value.every((item, index) => equal(item, b.value[index] ?? undefinedValue, user));
  }
  if (isMapping(a) && isMapping(b)) {
    if (a.value.size !== b.value.size) return false;
    return [...a.value].every(([key, item]) => {
      const other = lookUp(b, keyValue(key), user);
      return other !== undefined && equal(item, other, user);
    });
  }
  if (isNone(a) || isUndefined(a)) return a.type === b.type;
  return a === b || (a.type === b.type && a.value === b.value);
}

/** Python's `item in container`; false for undefined. */
export function containsItem(container: Value, item: Value, user: UserText): boolean {
  if (isUndefined(container)) return false;
  if (isText(container)) {
    if (isUndefined(item)) return false;
    if (!isText(item)) throw new TypeError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    return user.plain(container.value).includes(user.plain(item.value));
  }
  if (isList(container)) return container.value.some((member) => equal(member, item, user));
  if (isMapping(container) || isNamespace(container)) return lookUp(container, item, user) !== undefined;
  throw new TypeError(`argument of type '${typeName(container)}' is not iterable`);
}

/**
 * Returns a negative number, zero or a positive number if `a` sorts before, with or after `b`. Throws for values that Python cannot order.
 */
export function compare(a: Value, b: Value, user: UserText): number {
  const left = numberOf(a);
  const right = numberOf(b);
  if (left !== null && right !== null) return left - right;
  if (isText(a) && isText(b)) return compareTexts(user.plain(a.value), user.plain(b.value));
  if (isList(a) && isList(b)) {
    for (const [index, item] of a.value.entries()) {
      const other = b.value[index];
      if (other === undefined) return 1;
      const order = compare(item, other, user);
      if (order !== 0) return order;
    }
    return a.value.length - b.value.length;
  }
  throw new TypeError(`'<' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Python's `+`, which also joins texts and lists. */
export function add(a: Value, b: Value): Value {
  if (isText(a) && isText(b)) return textValue(a.value + b.value);
  if (isList(a) && isList(b))
    return a.type === "tuple" ? tupleValue([...a.value, ...b.value]) : listValue([...a.value, ...b.value]);
  return arithmetic("+", a, b);
}

/** The arithmetic operators on numbers; `*` also repeats texts and lists. */
export function arithmetic(operator: string, a: Value, b: Value): Value {
  const left = numberOf(a);
  const right = numberOf(b);
  if (left === null || right === null) {
    if (operator === "*" && isText(a) && right !== null) return textValue(a.value.repeat(Math.max(0, right)));
    if (operator === "*" && isList(a) && right !== null) {
      return listValue(Array.from({ length: Math.max(0, right) }, () => a.value).flat());
    }
    if (isUndefined(a) || isUndefined(b)) throw new TypeError(`cannot compute ${operator} with an undefined value`);
    throw new TypeError(`unsupported operand type(s) for ${operator}: '${typeName(a)}' and '${typeName(b)}'`);
  }
  if (right === 0 && ["/", "//", "%"].includes(operator)) throw new RangeError("division by zero");
  const result = computed(operator, left, right);
  const whole = operator !== "/" && Number.isInteger(result) && isWhole(a) && isWhole(b);
  return whole ? integerValue(result) : floatValue(result);
}

function computed(operator: string, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "//":
      return Math.floor(a / b);
    case "%":
      return a - b * Math.floor(a / b);
    default:
      return a ** b;
  }
}

/** The values of `for … in`: items, keys or characters; none for undefined. */
export function iterated(value: Value, user: UserText): Value[] {
  if (isUndefined(value)) return [];
  if (isList(value)) return value.value;
  if (isMapping(value)) return [...value.value.keys()].map(keyValue);
  if (isText(value)) return user.characters(value.value).map(textValue);
  throw new TypeError(`'${typeName(value)}' object is not iterable`);
}

/** The number of items, keys or characters; 0 for undefined. */
export function lengthOf(value: Value, user: UserText): number {
  if (isText(value)) return Array.from(user.plain(value.value)).length;
  if (isMapping(value)) return value.value.size;
  if (isList(value) || isUndefined(value)) return iterated(value, user).length;
  throw new TypeError(`object of type '${typeName(value)}' has no len()`);
}

/** `container[key]` and `container.key`; undefined if there is no such item. */
export function item(container: Value, key: Value, user: UserText): Value {
  if (isMapping(container) || isNamespace(container)) return lookUp(container, key, user) ?? undefinedValue;
  if (isInteger(key) || isBoolean(key)) {
    if (isList(container)) return container.value.at(Number(key.value)) ?? undefinedValue;
    if (isText(container)) {
      const character = user.characters(container.value).at(Number(key.value));
      return character === undefined ? undefinedValue : textValue(character);
    }
  }
  return undefinedValue;
}

/** Looks up a key, marked or not, in a mapping. */
export function lookUp(mapping: MappingValue, key: Value, user: UserText): Value | undefined {
  if (isText(key)) {
    for (const spelling of user.spellings(key.value)) {
      const found = mapping.value.get(spelling);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const number = numberOf(key);
  return number === null ? undefined : mapping.value.get(number);
}

/** Python's `value[start:stop:step]`. */
export function slice(value: Value, bounds: readonly (Value | undefined)[], user: UserText): Value {
  const [start, stop, step] = bounds.map((bound) => {
    if (bound === undefined || isUndefined(bound) || isNone(bound)) return undefined;
    if (!isInteger(bound)) throw new TypeError("slice indices must be integers or None");
    return bound.value;
  });
  if (isText(value)) return textValue(sliced(user.characters(value.value), start, stop, step ?? 1).join(""));
  if (isUndefined(value)) return listValue([]);
  if (!isList(value)) throw new TypeError(`'${typeName(value)}' object is not subscriptable`);
  const items = sliced(value.value, start, stop, step ?? 1);
  return value.type === "tuple" ? tupleValue(items) : listValue(items);
}

function sliced<T>(items: readonly T[], start: number | undefined, stop: number | undefined, step: number): T[] {
  if (step === 0) throw new RangeError("slice step cannot be zero");
  const { length } = items;
  if (step === 1) return items.slice(start, stop);
  const [first, last] = step > 0 ? [0, length] : [-1, length - 1];
  const within = (at: number): number => Math.min(Math.max(at < 0 ? at + length : at, first), last);
  const from = start === undefined ? (step > 0 ? 0 : length - 1) : within(start);
  const to = stop === undefined ? (step > 0 ? length : -1) : within(stop);
  const taken: T[] = [];
  for (let at = from; step > 0 ? at < to : at > to; at += step) taken.push(items[at] as T);
  return taken;
}

/** Evaluates a binary operator, except `and` and `or`. */
export function binary(operator: string, a: Value, b: Value, user: UserText): Value {
  switch (operator) {
    case "==":
      return booleanValue(equal(a, b, user));
    case "!=":
      return booleanValue(!equal(a, b, user));
    case "in":
      return booleanValue(containsItem(b, a, user));
    case "not in":
      return booleanValue(!containsItem(b, a, user));
    case "<":
      return booleanValue(compare(a, b, user) < 0);
    case "<=":
      return booleanValue(compare(a, b, user) <= 0);
    case ">":
      return booleanValue(compare(a, b, user) > 0);
    case ">=":
      return booleanValue(compare(a, b, user) >= 0);
    case "~":
      return textValue(pythonText(a, user) + pythonText(b, user));
    case "+":
      return add(a, b);
    default:
      return arithmetic(operator, a, b);
  }
}

function numberOf(value: Value): number | null {
  if (isNumber(value)) return value.value;
  return isBoolean(value) ? Number(value.value) : null;
}

function isWhole(value: Value): boolean {
  return isInteger(value) || isBoolean(value);
}
