import { ExactNumber } from "../exact-json.ts";
import type { UserText } from "../user-text.ts";

type ValueType =
  | "text"
  | "integer"
  | "float"
  | "boolean"
  | "none"
  | "undefined"
  | "list"
  | "tuple"
  | "mapping"
  | "keywords"
  | "namespace"
  | "function";

/** A value of a template at run time, with its Python type: JavaScript does not distinguish 1 from 1.0 or a tuple from a list. */
export class Value {
  readonly type: ValueType;
  readonly value: unknown;

  constructor(type: ValueType, value: unknown) {
    this.type = type;
    this.value = value;
  }
}

/** A function that templates can call. Keyword arguments come last, as one mapping of type "keywords". */
export type TemplateFunction = (args: readonly Value[], rendering: Rendering) => Value;

export interface TextValue extends Value {
  readonly value: string;
}
export interface BooleanValue extends Value {
  readonly value: boolean;
}
export interface NumberValue extends Value {
  readonly value: number;
}
export interface ListValue extends Value {
  readonly value: Value[];
}
/** Keys are strings, or numbers if the template wrote numbers. */
export interface MappingValue extends Value {
  readonly value: Map<string | number, Value>;
}
export interface FunctionValue extends Value {
  readonly value: TemplateFunction;
}

export const none: Value = new Value("none", null);
export const undefinedValue: Value = new Value("undefined", undefined);
const yes = new Value("boolean", true);
const no = new Value("boolean", false);

export const booleanValue = (truth: boolean): Value => (truth ? yes : no);
export const textValue = (text: string): Value => new Value("text", text);
/** A bigint keeps integers beyond 2^53 exact. */
export const integerValue = (number: number | bigint): Value => new Value("integer", number);
export const floatValue = (number: number): Value => new Value("float", number);
export const listValue = (items: Value[]): Value => new Value("list", items);
export const tupleValue = (items: Value[]): Value => new Value("tuple", items);
export const functionValue = (native: TemplateFunction): Value => new Value("function", native);

export function mappingValue(
  entries: Iterable<readonly [string | number, Value]>,
  type: "mapping" | "keywords" | "namespace" = "mapping",
): MappingValue {
  return new Value(type, new Map(entries)) as MappingValue;
}

export const isText = (value: Value): value is TextValue => value.type === "text";
export const isInteger = (value: Value): value is NumberValue => value.type === "integer";
export const isFloat = (value: Value): value is NumberValue => value.type === "float";
export const isNumber = (value: Value): value is NumberValue => isInteger(value) || isFloat(value);
export const isBoolean = (value: Value): value is BooleanValue => value.type === "boolean";
export const isList = (value: Value): value is ListValue => value.type === "list" || value.type === "tuple";
export const isMapping = (value: Value): value is MappingValue => value.type === "mapping" || isKeywords(value);
export const isKeywords = (value: Value): value is MappingValue => value.type === "keywords";
export const isNamespace = (value: Value): value is MappingValue => value.type === "namespace";
export const isFunction = (value: Value): value is FunctionValue => value.type === "function";
export const isNone = (value: Value): boolean => value.type === "none";
export const isUndefined = (value: Value): boolean => value.type === "undefined";

/** Python's truth of a value: empty values, zero and undefined are false. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.value.length > 0;
  if (isMapping(value)) return value.value.size > 0;
  return Boolean(value.value);
}

/** Converts a JSON-like value, which may contain exact numbers and undefined. */
export function runtimeValue(value: unknown): Value {
  if (typeof value === "string") return textValue(value);
  if (typeof value === "number") return Number.isInteger(value) ? integerValue(value) : floatValue(value);
  if (typeof value === "boolean") return booleanValue(value);
  if (value === null) return none;
  if (value === undefined) return undefinedValue;
  if (value instanceof ExactNumber) {
    return typeof value.value === "bigint" ? integerValue(value.value) : floatValue(value.value);
  }
  if (Array.isArray(value)) return listValue(value.map(runtimeValue));
  return mappingValue(Object.entries(value).map(([key, item]) => [key, runtimeValue(item)]));
}

/** A mapping's key as a value. */
export const keyValue = (key: string | number): Value => (typeof key === "number" ? integerValue(key) : textValue(key));

/** Python's name of the type, for error messages. */
export function typeName({ type }: Value): string {
  return pythonNames[type];
}

const pythonNames: Readonly<Record<ValueType, string>> = {
  text: "str",
  integer: "int",
  float: "float",
  boolean: "bool",
  none: "NoneType",
  undefined: "Undefined",
  list: "list",
  tuple: "tuple",
  mapping: "dict",
  keywords: "dict",
  namespace: "Namespace",
  function: "function",
};

/** Positional and keyword arguments by parameter name, in the order of `names`. Unknown keywords are ignored. */
export function parameters(args: readonly Value[], ...names: string[]): (Value | undefined)[] {
  const [positional, keywords] = separated(args);
  return names.map((name, index) => positional[index] ?? keywords?.get(name));
}

/** Positional arguments, and keyword arguments if there are any. */
export function separated(
  args: readonly Value[],
): [positional: readonly Value[], keywords: ReadonlyMap<string | number, Value> | null] {
  const last = args.at(-1);
  return last !== undefined && isKeywords(last) ? [args.slice(0, -1), last.value] : [args, null];
}

/** Variables, with a parent scope. */
export class Scope {
  readonly #variables = new Map<string, Value>();
  readonly #parent: Scope | null;

  constructor(parent: Scope | null) {
    this.#parent = parent;
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value);
  }

  get(name: string): Value {
    return this.#variables.get(name) ?? this.#parent?.get(name) ?? undefinedValue;
  }
}

/** The context of one rendering. */
export interface Rendering {
  readonly user: UserText;
  readonly now: Date;
}
