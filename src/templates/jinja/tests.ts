import type { UserText } from "../user-text.ts";
import { compare, contains, equal } from "./operators.ts";
import {
  isBoolean,
  isFloat,
  isFunction,
  isInteger,
  isList,
  isMapping,
  isNone,
  isNumber,
  isText,
  isUndefined,
  type Value,
} from "./values.ts";

type Test = (value: Value, args: readonly Value[], user: UserText) => boolean;

/** Jinja's tests: those after `is`, and those that `select` and similar filters take by name. */
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
    in: against((value, container, user) => contains(container, value, user)),
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
