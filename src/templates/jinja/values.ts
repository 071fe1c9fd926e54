import { ExactNumber } from "../exact-json.ts";
import { newScope, parseTokens, runProgram, tokensOf, type Scope, type Value } from "./library.ts";

/** A function that templates can call. Keyword arguments come last, as one mapping of type "KeywordArgumentsValue". */
export type Native = (args: readonly Value[], scope: Scope) => Value;

export interface StringValue extends Value {
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
/** Keys are strings, or numbers where a template wrote them so. */
export interface MappingValue extends Value {
  readonly value: Map<string | number, Value>;
}
export interface FunctionValue extends Value {
  readonly value: Native;
}

/** What the library makes of a JavaScript value. */
function sample(value: unknown): Value {
  return newScope().set("value", value);
}

// The library exports no class of its values; they are taken from values that it makes itself.

type Constructor<T> = new (value: T) => Value;
const constructorOf = <T>(value: Value): Constructor<T> => value.constructor as Constructor<T>;

const StringClass = constructorOf<string>(sample(""));
const IntegerClass = constructorOf<number | bigint>(sample(0));
const FloatClass = constructorOf<number>(sample(0.5));
const ListClass = constructorOf<Value[]>(sample([]));
const MappingClass = constructorOf<Map<string | number, Value>>(sample({}));
const FunctionClass = constructorOf<Native>(sample(() => null));
const TupleClass = constructorOf<Value[]>(tupleSample());

export const none: Value = sample(null);
export const undefinedValue: Value = sample(undefined);
const yes = sample(true);
const no = sample(false);

export const textValue = (text: string): Value => new StringClass(text);
export const integerValue = (number: number): Value => new IntegerClass(number);
export const floatValue = (number: number): Value => new FloatClass(number);
export const booleanValue = (truth: boolean): Value => (truth ? yes : no);
export const listValue = (items: Value[]): Value => new ListClass(items);
export const tupleValue = (items: Value[]): Value => new TupleClass(items);
export const functionValue = (native: Native): Value => new FunctionClass(native);

export function mappingValue(entries: Iterable<readonly [string | number, Value]>): Value {
  return new MappingClass(new Map(entries));
}

export const isText = (value: Value): value is StringValue => value.type === "StringValue";
export const isInteger = (value: Value): value is NumberValue => value.type === "IntegerValue";
export const isFloat = (value: Value): value is NumberValue => value.type === "FloatValue";
export const isNumber = (value: Value): value is NumberValue => isInteger(value) || isFloat(value);
export const isBoolean = (value: Value): value is BooleanValue => value.type === "BooleanValue";
export const isList = (value: Value): value is ListValue => value.type === "ArrayValue" || value.type === "TupleValue";
export const isMapping = (value: Value): value is MappingValue =>
  value.type === "ObjectValue" || value.type === "KeywordArgumentsValue";
export const isNamespace = (value: Value): value is MappingValue => value.type === "NamespaceValue";
export const isFunction = (value: Value): value is FunctionValue => value.type === "FunctionValue";
export const isNone = (value: Value): boolean => value.type === "NullValue";
export const isUndefined = (value: Value): boolean => value.type === "UndefinedValue";
export const isTrue = (value: Value): boolean => value.__bool__().value;

/** Any JSON-like value, exact numbers and undefined included, as a runtime value. */
export function runtimeValue(value: unknown): Value {
  if (typeof value === "string") return textValue(value);
  if (typeof value === "number") return Number.isInteger(value) ? integerValue(value) : floatValue(value);
  if (typeof value === "boolean") return booleanValue(value);
  if (value === null) return none;
  if (value === undefined) return undefinedValue;
  if (value instanceof ExactNumber) {
    return typeof value.value === "bigint" ? new IntegerClass(value.value) : floatValue(value.value);
  }
  if (Array.isArray(value)) return listValue(value.map(runtimeValue));
  return mappingValue(Object.entries(value).map(([key, item]) => [key, runtimeValue(item)]));
}

/** A mapping's key as a value. */
export const keyValue = (key: string | number): Value => (typeof key === "number" ? integerValue(key) : textValue(key));

/** What Python calls the type, for error messages. */
export function typeName(value: Value): string {
  if (isText(value)) return "str";
  if (isInteger(value)) return "int";
  if (isFloat(value)) return "float";
  if (isBoolean(value)) return "bool";
  if (value.type === "TupleValue") return "tuple";
  if (isList(value)) return "list";
  if (isMapping(value)) return "dict";
  if (isNone(value)) return "NoneType";
  if (isUndefined(value)) return "Undefined";
  return isFunction(value) ? "function" : "Namespace";
}

/** Positional and keyword arguments by parameter name, in the order of `names`. Unknown keywords are ignored. */
export function parameters(args: readonly Value[], ...names: string[]): (Value | undefined)[] {
  const last = args.at(-1);
  const keywords = last !== undefined && last.type === "KeywordArgumentsValue" && isMapping(last) ? last.value : null;
  const positional = keywords === null ? args : args.slice(0, -1);
  return names.map((name, index) => positional[index] ?? keywords?.get(name));
}

function tupleSample(): Value {
  const scope = newScope();
  runProgram(parseTokens(tokensOf("{% set sample = (1, 2) %}")), scope);
  return scope.lookupVariable("sample");
}
