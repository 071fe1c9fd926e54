import { filter } from "./filters.ts";
import { callMethod } from "./methods.ts";
import { arithmetic, binary, item, iterated, slice } from "./operators.ts";
import { pythonText } from "./python-text.ts";
import type { Rendering, Scope } from "./scope.ts";
import type { Argument, CallExpression, Expression, Filter, MemberExpression } from "./syntax.ts";
import { test } from "./tests.ts";
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
  textValue,
  tupleValue,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

/** Evaluates an expression in a scope. */
export type Evaluate = (scope: Scope, rendering: Rendering) => Value;

/** Turns an expression into a function, so that nothing of its form is looked at again when it is evaluated. */
export function compileExpression(expression: Expression): Evaluate {
  switch (expression.type) {
    case "Identifier": {
      const { value: name } = expression;
      return (scope) => scope.get(name);
    }
    case "StringLiteral":
      return constant(textValue(expression.value));
    case "IntegerLiteral":
      return constant(integerValue(expression.value));
    case "FloatLiteral":
      return constant(floatValue(expression.value));
    case "ArrayLiteral":
    case "TupleLiteral": {
      const items = expression.value.map(compileExpression);
      const make = expression.type === "ArrayLiteral" ? listValue : tupleValue;
      return (scope, rendering) => make(items.map((each) => each(scope, rendering)));
    }
    case "ObjectLiteral":
      return compileMapping(expression.value);
    case "MemberExpression":
      return compileMember(expression);
    case "CallExpression":
      return compileCall(expression);
    case "UnaryExpression":
      return compileUnary(expression.operator.value, compileExpression(expression.argument));
    case "BinaryExpression":
      return compileBinary(
        expression.operator.value,
        compileExpression(expression.left),
        compileExpression(expression.right),
      );
    case "FilterExpression":
      return compileFilter(expression.filter, compileExpression(expression.operand));
    case "TestExpression": {
      const { negate, test: named } = expression;
      return compileTest(named.value, negate, compileExpression(expression.operand), []);
    }
    case "SelectExpression":
      return compileChoice(expression.test, expression.lhs, null);
    case "Ternary":
      return compileChoice(expression.condition, expression.trueExpr, expression.falseExpr);
  }
}

function constant(value: Value): Evaluate {
  return () => value;
}

function compileMapping(entries: ReadonlyMap<Expression, Expression>): Evaluate {
  const compiled = Array.from(entries, ([key, value]) => [compileExpression(key), compileExpression(value)] as const);
  return (scope, rendering) =>
    mappingValue(
      compiled.map(([key, value]) => {
        const at = key(scope, rendering);
        return [isInteger(at) ? at.value : pythonText(at, rendering.user), value(scope, rendering)];
      }),
    );
}

function compileMember({ object, property, computed }: MemberExpression): Evaluate {
  const container = compileExpression(object);
  if (property.type === "SliceExpression") {
    const bounds = [property.start, property.stop, property.step].map((bound) =>
      bound === undefined ? constant(none) : compileExpression(bound),
    );
    return (scope, rendering) =>
      slice(
        container(scope, rendering),
        bounds.map((bound) => bound(scope, rendering)),
        rendering.user,
      );
  }
  const key =
    computed || property.type !== "Identifier" ? compileExpression(property) : constant(textValue(property.value));
  return (scope, rendering) => item(container(scope, rendering), key(scope, rendering), rendering.user);
}

function compileCall({ callee, args }: CallExpression): Evaluate {
  const given = compileArguments(args);
  if (callee.type === "MemberExpression" && !callee.computed && callee.property.type === "Identifier") {
    const object = compileExpression(callee.object);
    const { value: name } = callee.property;
    const key = textValue(name);
    return (scope, rendering) => {
      const target = object(scope, rendering);
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
  const called = compileExpression(callee);
  const shown = callee.type === "Identifier" ? `'${callee.value}'` : "the value";
  return (scope, rendering) => {
    const target = called(scope, rendering);
    if (isFunction(target)) return target.value(given(scope, rendering), rendering);
    throw new TypeError(isUndefined(target) ? `${shown} is undefined` : `${shown} is not a function`);
  };
}

/** Arguments in the form that natives take: the positional ones, then one mapping with the keyword arguments, if there are any. */
export function compileArguments(args: readonly Argument[]): (scope: Scope, rendering: Rendering) => Value[] {
  const parts = args.map((argument) => {
    switch (argument.type) {
      case "KeywordArgumentExpression":
        return { kind: "keyword", name: argument.key.value, value: compileExpression(argument.value) } as const;
      case "SpreadExpression":
        return { kind: "list", value: compileExpression(argument.argument) } as const;
      case "KeywordSpreadExpression":
        return { kind: "mapping", value: compileExpression(argument.argument) } as const;
      default:
        return { kind: "positional", value: compileExpression(argument) } as const;
    }
  });
  return (scope, rendering) => {
    const values: Value[] = [];
    let keywords: [string | number, Value][] | null = null;
    for (const part of parts) {
      const value = part.value(scope, rendering);
      if (part.kind === "positional") values.push(value);
      else if (part.kind === "list") values.push(...iterated(value, rendering.user));
      else if (part.kind === "keyword") (keywords ??= []).push([part.name, value]);
      else if (isMapping(value)) (keywords ??= []).push(...value.value);
    }
    if (keywords !== null) values.push(mappingValue(keywords, "keywords"));
    return values;
  };
}

function compileUnary(operator: string, argument: Evaluate): Evaluate {
  if (operator === "not") return (scope, rendering) => booleanValue(!isTrue(argument(scope, rendering)));
  const factor = integerValue(operator === "-" ? -1 : 1);
  return (scope, rendering) => {
    const value = argument(scope, rendering);
    if (!isNumber(value) && !isBoolean(value)) {
      throw new TypeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
    }
    return arithmetic("*", factor, value);
  };
}

function compileBinary(operator: string, left: Evaluate, right: Evaluate): Evaluate {
  if (operator === "and") {
    return (scope, rendering) => {
      const value = left(scope, rendering);
      return isTrue(value) ? right(scope, rendering) : value;
    };
  }
  if (operator === "or") {
    return (scope, rendering) => {
      const value = left(scope, rendering);
      return isTrue(value) ? value : right(scope, rendering);
    };
  }
  return (scope, rendering) => binary(operator, left(scope, rendering), right(scope, rendering), rendering.user);
}

/** A filter on an operand; also the tests with arguments that the parser takes for filters (see syntax.ts). */
export function compileFilter(named: Filter, operand: Evaluate): Evaluate {
  const callee = named.type === "CallExpression" ? named.callee : named;
  const args = named.type === "CallExpression" ? named.args : [];
  const name = callee.type === "Identifier" ? callee.value : "";
  if (name.startsWith("is not ")) return compileTest(name.slice(7), true, operand, args);
  if (name.startsWith("is ")) return compileTest(name.slice(3), false, operand, args);
  const given = compileArguments(args);
  return (scope, rendering) => filter(name, operand(scope, rendering), given(scope, rendering), rendering.user);
}

function compileTest(name: string, negate: boolean, operand: Evaluate, args: readonly Argument[]): Evaluate {
  const given = compileArguments(args);
  return (scope, rendering) => {
    const holds = test(name, operand(scope, rendering), given(scope, rendering), rendering.user);
    return booleanValue(holds !== negate);
  };
}

/** `a if test else b`; without else, undefined. */
function compileChoice(test: Expression, then: Expression, otherwise: Expression | null): Evaluate {
  const [condition, first] = [compileExpression(test), compileExpression(then)];
  const second = otherwise === null ? constant(undefinedValue) : compileExpression(otherwise);
  return (scope, rendering) => (isTrue(condition(scope, rendering)) ? first : second)(scope, rendering);
}
