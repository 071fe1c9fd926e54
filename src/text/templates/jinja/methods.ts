import type { UserText } from "../user-text.ts";
import { equal, iterated, item, lookUp } from "./operators.ts";
import { pythonText } from "./python-text.ts";
import * as strings from "./python-strings.ts";
import {
  booleanValue,
  integerValue,
  isInteger,
  isList,
  isMapping,
  isNone,
  isText,
  isTrue,
  keyValue,
  listValue,
  mappingValue,
  none,
  parameters,
  separated,
  textValue,
  tupleValue,
  typeName,
  type ListValue,
  type MappingValue,
  type Value,
} from "./values.ts";

/** Calls a method of a Python str, list or dict. Returns null if the value has no such method. */
export function callMethod(object: Value, name: string, args: readonly Value[], user: UserText): Value | null {
  if (isText(object)) return stringMethods.get(name)?.(object.value, args, user) ?? null;
  if (isMapping(object)) return mappingMethods.get(name)?.(object, args, user) ?? null;
  if (isList(object)) return listMethods.get(name)?.(object, args, user) ?? null;
  return null;
}

type Method<T> = (object: T, args: readonly Value[], user: UserText) => Value;

/** A map, since names must not refer to JavaScript's own members of objects. */
function methodTable<T>(methods: Readonly<Record<string, Method<T>>>): ReadonlyMap<string, Method<T>> {
  return new Map(Object.entries(methods));
}

const stringMethods: ReadonlyMap<string, Method<string>> = methodTable<string>({
  strip: (text, args, user) => textValue(strings.strip(text, characters(args), user)),
  lstrip: (text, args, user) => textValue(strings.stripStart(text, characters(args), user)),
  rstrip: (text, args, user) => textValue(strings.stripEnd(text, characters(args), user)),
  upper: (text, _args, user) => textValue(user.change(text, (part) => part.toUpperCase())),
  lower: (text, _args, user) => textValue(user.change(text, (part) => part.toLowerCase())),
  title: (text, _args, user) => textValue(user.change(text, strings.titleCase)),
  capitalize: (text, _args, user) => textValue(user.change(text, strings.capitalize)),
  split: (text, args, user) => texts(strings.splitText(text, ...cutting(args), user)),
  rsplit: (text, args, user) => texts(strings.splitText(text, ...cutting(args), user, true)),
  splitlines: (text, [keep]) => texts(strings.splitLines(text, keep !== undefined && isTrue(keep))),
  partition: (text, args, user) => {
    const [before = "", after] = strings.splitText(text, textArgument(args[0], "separator"), 1, user);
    const separator = after === undefined ? "" : textArgument(args[0], "separator");
    return tupleValue([before, separator, after ?? ""].map(textValue));
  },
  replace: (text, args, user) => {
    const [old, by, limit] = parameters(args, "old", "new", "count");
    return textValue(
      strings.replace(text, textArgument(old, "old"), textArgument(by, "new"), integerArgument(limit, -1), user),
    );
  },
  startswith: (text, [start], user) =>
    booleanValue(oneOrMore(start).some((each) => strings.startsWith(text, textArgument(each, "prefix"), user))),
  endswith: (text, [end], user) =>
    booleanValue(oneOrMore(end).some((each) => strings.endsWith(text, textArgument(each, "suffix"), user))),
  removeprefix: (text, [start], user) => {
    const prefix = textArgument(start, "prefix");
    if (!strings.startsWith(text, prefix, user)) return textValue(text);
    return textValue(user.characters(text).slice(user.characters(prefix).length).join(""));
  },
  removesuffix: (text, [end], user) => {
    const suffix = textArgument(end, "suffix");
    if (suffix === "" || !strings.endsWith(text, suffix, user)) return textValue(text);
    return textValue(user.characters(text).slice(0, -user.characters(suffix).length).join(""));
  },
  find: (text, [part], user) => integerValue(strings.find(text, textArgument(part, "sub"), false, user)),
  rfind: (text, [part], user) => integerValue(strings.find(text, textArgument(part, "sub"), true, user)),
  index: (text, [part], user) => {
    const at = strings.find(text, textArgument(part, "sub"), false, user);
    if (at === -1) throw new RangeError("substring not found");
    return integerValue(at);
  },
  count: (text, [part], user) => integerValue(strings.count(text, textArgument(part, "sub"), user)),
  join: (text, [parts], user) =>
    textValue((parts === undefined ? [] : iterated(parts, user)).map((part) => textArgument(part, "item")).join(text)),
  format: (text, args, user) => {
    const [positional, keywords] = separated(args);
    const named = [...(keywords ?? [])].map(([key, value]) => [String(key), pythonText(value, user)] as const);
    return textValue(
      strings.format(
        text,
        positional.map((value) => pythonText(value, user)),
        new Map(named),
      ),
    );
  },
  isdigit: (text, _args, user) => booleanValue(/^\p{Nd}+$/u.test(user.plain(text))),
  isalpha: (text, _args, user) => booleanValue(/^\p{L}+$/u.test(user.plain(text))),
  isalnum: (text, _args, user) => booleanValue(/^[\p{L}\p{N}]+$/u.test(user.plain(text))),
  isspace: (text, _args, user) => booleanValue(text !== "" && strings.strip(text, undefined, user) === ""),
  isupper: (text, _args, user) =>
    booleanValue(hasCase(user.plain(text)) && user.plain(text) === user.plain(text).toUpperCase()),
  islower: (text, _args, user) =>
    booleanValue(hasCase(user.plain(text)) && user.plain(text) === user.plain(text).toLowerCase()),
  zfill: (text, [width]) => textValue(text.padStart(integerArgument(width, 0), "0")),
});

const mappingMethods: ReadonlyMap<string, Method<MappingValue>> = methodTable<MappingValue>({
  get: (mapping, [key, otherwise], user) => (key && lookUp(mapping, key, user)) ?? otherwise ?? none,
  items: (mapping) => listValue([...mapping.value].map(([key, value]) => tupleValue([keyValue(key), value]))),
  keys: (mapping) => listValue([...mapping.value.keys()].map(keyValue)),
  values: (mapping) => listValue([...mapping.value.values()]),
  copy: (mapping) => mappingValue(mapping.value),
  update: (mapping, args) => {
    for (const source of args) {
      if (isMapping(source)) for (const [key, value] of source.value) mapping.value.set(key, value);
    }
    return none;
  },
  pop: (mapping, [key, otherwise], user) => {
    const found = key === undefined ? undefined : lookUp(mapping, key, user);
    if (key === undefined || found === undefined) return missing(otherwise, "key");
    for (const spelling of isText(key) ? user.spellings(key.value) : [Number(key.value)])
      mapping.value.delete(spelling);
    return found;
  },
  setdefault: (mapping, [key, otherwise], user) => {
    const found = key === undefined ? undefined : lookUp(mapping, key, user);
    if (found !== undefined || key === undefined) return found ?? none;
    mapping.value.set(isInteger(key) ? key.value : pythonText(key, user), otherwise ?? none);
    return otherwise ?? none;
  },
});

const listMethods: ReadonlyMap<string, Method<ListValue>> = methodTable<ListValue>({
  append: (list, [value]) => {
    if (value !== undefined) list.value.push(value);
    return none;
  },
  extend: (list, [values], user) => {
    for (const value of values === undefined ? [] : [...iterated(values, user)]) list.value.push(value);
    return none;
  },
  insert: (list, [at, value]) => {
    if (value !== undefined) list.value.splice(integerArgument(at, 0), 0, value);
    return none;
  },
  pop: (list, [at], user) => {
    const place = integerArgument(at, -1);
    const found = item(list, integerValue(place), user);
    if (found.type === "undefined") throw new RangeError("pop index out of range");
    list.value.splice(place, 1);
    return found;
  },
  index: (list, [value], user) => {
    const at = list.value.findIndex((each) => value !== undefined && equal(each, value, user));
    if (at === -1) throw new RangeError("the value is not in the list");
    return integerValue(at);
  },
  count: (list, [value], user) =>
    integerValue(list.value.filter((each) => value !== undefined && equal(each, value, user)).length),
  reverse: (list) => {
    list.value.reverse();
    return none;
  },
  copy: (list) => listValue([...list.value]),
});

function missing(otherwise: Value | undefined, what: string): Value {
  if (otherwise === undefined) throw new RangeError(`no such ${what}`);
  return otherwise;
}

const texts = (parts: readonly string[]): Value => listValue(parts.map(textValue));

/** The `chars` of `strip`. */
function characters([chars]: readonly Value[]): string | undefined {
  return chars === undefined || isNone(chars) ? undefined : textArgument(chars, "chars");
}

/** The `sep` and `maxsplit` of `split`. */
function cutting(args: readonly Value[]): [separator: string | null, limit: number] {
  const [separator, limit] = parameters(args, "sep", "maxsplit");
  return [
    separator === undefined || isNone(separator) ? null : textArgument(separator, "sep"),
    integerArgument(limit, -1),
  ];
}

function oneOrMore(value: Value | undefined): readonly Value[] {
  if (value === undefined) return [];
  return isList(value) ? value.value : [value];
}

/** Returns a text argument. Throws `TypeError` for other types, as Python does. */
export function textArgument(value: Value | undefined, name: string): string {
  if (value !== undefined && isText(value)) return value.value;
  throw new TypeError(`${name} must be str, not ${value === undefined ? "missing" : typeName(value)}`);
}

export function integerArgument(value: Value | undefined, otherwise: number): number {
  return value !== undefined && isInteger(value) ? value.value : otherwise;
}

function hasCase(text: string): boolean {
  return text.toLowerCase() !== text.toUpperCase();
}
