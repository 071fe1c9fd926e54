import { filter, test } from "./filters.ts";
import { callMethod } from "./methods.ts";
import { arithmetic, binary, item, iterated, slice } from "./operators.ts";
import { pythonText } from "./python-text.ts";
import type { Argument, Chain, TemplateExpression, FilterLink, Link, Operation } from "./syntax.ts";
import {
  booleanValue,
  floatValue,
  integerValue,
  isBoolean,
  isFunction,
  isInteger,
  isMapping,
  isNumber,
  isTrue,
  isUndefined,
  listValue,
  mappingValue,
  none,
  type Rendering,
  type Scope,
  textValue,
  tupleValue,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

/** Evaluates an expression in a scope. */
export type Evaluate = (scope: Scope, rendering: Rendering) => Value;

/** Compiles an expression to a function. */
export function compileExpression(expression: TemplateExpression): Evaluate {
  switch (expression.kind) {
    case "name": {
      const { name } = expression;
      return (scope) => scope.get(name);
    }
    case "text":
      return constant(textValue(expression.text));
    case "integer":
      return constant(integerValue(expression.number));
    case "float":
      return constant(floatValue(expression.number));
    case "constant":
      return constant(expression.value === null ? none : booleanValue(expression.value));
    case "list":
    case "tuple": {
      const items = expression.items.map(compileExpression);
      const make = expression.kind === "list" ? listValue : tupleValue;
      return (scope, rendering) => make(items.map((each) => each(scope, rendering)));
    }
    case "mapping":
      return compileMapping(expression.entries);
    case "chain":
      return compileChain(expression);
    case "not": {
      const operand = compileExpression(expression.operand);
      return (scope, rendering) => booleanValue(!isTrue(operand(scope, rendering)));
    }
    case "sign":
      return compileSign(expression.sign, compileExpression(expression.operand));
    case "and":
    case "or":
      return compileJoined(expression.kind === "or", expression.operands);
    case "arithmetic":
      return compileArithmetic(expression.first, expression.rest);
    case "comparison":
      return compileComparison(expression.first, expression.rest);
    case "choice": {
      const condition = compileExpression(expression.test);
      const chosen = compileExpression(expression.chosen);
      const otherwise =
        expression.otherwise === null ? constant(undefinedValue) : compileExpression(expression.otherwise);
      return (scope, rendering) => (isTrue(condition(scope, rendering)) ? chosen : otherwise)(scope, rendering);
    }
  }
}

function constant(value: Value): Evaluate {
  return () => value;
}

function compileMapping(entries: readonly (readonly [TemplateExpression, TemplateExpression])[]): Evaluate {
  const compiled = entries.map(([key, value]) => [compileExpression(key), compileExpression(value)] as const);
  return (scope, rendering) =>
    mappingValue(
      compiled.map(([key, value]) => {
        const at = key(scope, rendering);
        return [isInteger(at) ? at.value : pythonText(at, rendering.user), value(scope, rendering)];
      }),
    );
}

/** Evaluates one link of a chain. */
type Step = (value: Value, scope: Scope, rendering: Rendering) => Value;

function compileChain({ base, links }: Chain): Evaluate {
  const first = compileExpression(base);
  const steps: Step[] = [];
  for (let at = 0; at < links.length; at++) {
    const link = links[at];
    const next = links[at + 1];
    if (link?.kind === "attribute" && next?.kind === "call") {
      steps.push(compileMethodCall(link.name, next.args));
      at++;
    } else if (link?.kind === "call") steps.push(compileCall(link.args, at === 0 ? base : null));
    else if (link !== undefined) steps.push(compileLink(link));
  }
  const [only] = steps;
  if (steps.length === 1 && only !== undefined) {
    return (scope, rendering) => only(first(scope, rendering), scope, rendering);
  }
  return (scope, rendering) => {
    let value = first(scope, rendering);
    for (const step of steps) value = step(value, scope, rendering);
    return value;
  };
}

function compileLink(link: Exclude<Link, { readonly kind: "call" }>): Step {
  switch (link.kind) {
    case "attribute": {
      const key = textValue(link.name);
      return (value, _scope, rendering) => item(value, key, rendering.user);
    }
    case "item": {
      const key = compileExpression(link.key);
      return (value, scope, rendering) => item(value, key(scope, rendering), rendering.user);
    }
    case "slice": {
      const bounds = link.bounds.map((bound) => (bound === null ? constant(none) : compileExpression(bound)));
      return (value, scope, rendering) =>
        slice(
          value,
          bounds.map((bound) => bound(scope, rendering)),
          rendering.user,
        );
    }
    case "filter":
      return compileFilter(link);
    case "test": {
      const { name, negated } = link;
      const given = compileArguments(link.args);
      return (value, scope, rendering) =>
        booleanValue(test(name, value, given(scope, rendering), rendering.user) !== negated);
    }
  }
}

/** `value.name(…)`: a method of the value, or a function that is its member. */
function compileMethodCall(name: string, args: readonly Argument[]): Step {
  const given = compileArguments(args);
  const key = textValue(name);
  return (target, scope, rendering) => {
    const values = given(scope, rendering);
    const result = callMethod(target, name, values, rendering.user);
    if (result !== null) return result;
    const member = item(target, key, rendering.user);
    if (isFunction(member)) return member.value(values, rendering);
    throw new TypeError(
      isUndefined(target)
        ? `cannot call ${name}() of an undefined value`
        : `'${typeName(target)} object' has no attribute '${name}'`,
    );
  };
}

/** `callee` is for error messages; null if the called value has no name. */
function compileCall(args: readonly Argument[], callee: TemplateExpression | null): Step {
  const given = compileArguments(args);
  const shown = callee?.kind === "name" ? `'${callee.name}'` : "the value";
  return (target, scope, rendering) => {
    if (isFunction(target)) return target.value(given(scope, rendering), rendering);
    throw new TypeError(isUndefined(target) ? `${shown} is undefined` : `${shown} is not a function`);
  };
}

/** Compiles a filter of a chain or block. */
export function compileFilter({ name, args }: FilterLink): Step {
  const given = compileArguments(args);
  return (value, scope, rendering) => filter(name, value, given(scope, rendering), rendering.user);
}

/** Compiles arguments for a `TemplateFunction`: positional ones, then one mapping with the keyword arguments, if there are any. */
export function compileArguments(args: readonly Argument[]): (scope: Scope, rendering: Rendering) => Value[] {
  const parts = args.map((argument) => ({ argument, evaluate: compileExpression(argument.value) }));
  return (scope, rendering) => {
    const values: Value[] = [];
    let keywords: [string | number, Value][] | null = null;
    for (const { argument, evaluate } of parts) {
      const value = evaluate(scope, rendering);
      if (argument.kind === "positional") values.push(value);
      else if (argument.kind === "list") for (const each of iterated(value, rendering.user)) values.push(each);
      else if (argument.kind === "keyword") (keywords ??= []).push([argument.name, value]);
      else if (isMapping(value)) for (const entry of value.value) (keywords ??= []).push(entry);
    }
    if (keywords !== null) values.push(mappingValue(keywords, "keywords"));
    return values;
  };
}

function compileSign(sign: "+" | "-", operand: Evaluate): Evaluate {
  const factor = integerValue(sign === "-" ? -1 : 1);
  return (scope, rendering) => {
    const value = operand(scope, rendering);
    if (!isNumber(value) && !isBoolean(value)) {
      throw new TypeError(`bad operand type for unary ${sign}: '${typeName(value)}'`);
    }
    return arithmetic("*", factor, value);
  };
}

/** `and` and `or`: the first operand whose truth decides, else the last one. */
function compileJoined(decisive: boolean, operands: readonly TemplateExpression[]): Evaluate {
  const compiled = operands.map(compileExpression);
  return (scope, rendering) => {
    let value = undefinedValue;
    for (const operand of compiled) {
      value = operand(scope, rendering);
      if (isTrue(value) === decisive) return value;
    }
    return value;
  };
}

function compileArithmetic(first: TemplateExpression, rest: readonly Operation[]): Evaluate {
  const start = compileExpression(first);
  const operations = compileOperations(rest);
  return (scope, rendering) => {
    let value = start(scope, rendering);
    for (const { operator, operand } of operations) {
      value = binary(operator, value, operand(scope, rendering), rendering.user);
    }
    return value;
  };
}

function compileComparison(first: TemplateExpression, rest: readonly Operation[]): Evaluate {
  const start = compileExpression(first);
  const operations = compileOperations(rest);
  return (scope, rendering) => {
    let left = start(scope, rendering);
    let holds = booleanValue(true);
    for (const { operator, operand } of operations) {
      const right = operand(scope, rendering);
      holds = binary(operator, left, right, rendering.user);
      if (!isTrue(holds)) return holds;
      left = right;
    }
    return holds;
  };
}

function compileOperations(
  operations: readonly Operation[],
): readonly { readonly operator: string; readonly operand: Evaluate }[] {
  return operations.map(({ operator, operand }) => ({ operator, operand: compileExpression(operand) }));
}
