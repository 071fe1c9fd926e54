import { compileArguments, compileExpression, compileFilter, type Evaluate } from "./compile-expression.ts";
import { iterated } from "./operators.ts";
import { pythonText } from "./python-text.ts";
import { Scope, type Rendering } from "./scope.ts";
import { mentions } from "./syntax.ts";
import type {
  CallStatement,
  Expression,
  ForStatement,
  MacroStatement,
  Parameter,
  SetStatement,
  Statement,
} from "./syntax.ts";
import {
  booleanValue,
  functionValue,
  integerValue,
  isFunction,
  isNamespace,
  isTrue,
  tupleValue,
  mappingValue,
  separated,
  textValue,
  undefinedValue,
  type Native,
  type Value,
} from "./values.ts";

/** What is written, growing at its end. */
export interface Output {
  text: string;
}

/** How a statement ended: on to the next one, or out of the round or loop that it stands in. */
export type Flow = "next" | "continue" | "break";

/** Runs a statement: writes, sets variables. */
export type Execute = (scope: Scope, out: Output, rendering: Rendering) => Flow;

/** Turns the statements of a body into one. An expression that stands for itself is printed. */
export function compileBody(statements: readonly Statement[]): Execute {
  const compiled = statements.map(compileStatement);
  return (scope, out, rendering) => {
    for (const execute of compiled) {
      const flow = execute(scope, out, rendering);
      if (flow !== "next") return flow;
    }
    return "next";
  };
}

function compileStatement(statement: Statement): Execute {
  switch (statement.type) {
    case "Comment":
      return () => "next";
    case "Break":
      return () => "break";
    case "Continue":
      return () => "continue";
    case "If": {
      const test = compileExpression(statement.test);
      const [body, alternate] = [compileBody(statement.body), compileBody(statement.alternate)];
      return (scope, out, rendering) => (isTrue(test(scope, rendering)) ? body : alternate)(scope, out, rendering);
    }
    case "For":
      return compileFor(statement);
    case "Set":
      return compileSet(statement);
    case "Macro":
      return compileMacro(statement);
    case "CallStatement":
      return compileCallBlock(statement);
    case "FilterStatement": {
      const body = captured(statement.body);
      return printing(compileFilter(statement.filter, (scope, rendering) => body(new Scope(scope), rendering)));
    }
    case "StringLiteral": {
      const { value: text } = statement;
      return (_scope, out) => {
        out.text += text;
        return "next";
      };
    }
    default:
      return printing(compileExpression(statement));
  }
}

function printing(evaluate: Evaluate): Execute {
  return (scope, out, rendering) => {
    out.text += pythonText(evaluate(scope, rendering), rendering.user);
    return "next";
  };
}

/** A body as an expression: the text that it writes. */
function captured(statements: readonly Statement[]): Evaluate {
  const body = compileBody(statements);
  return (scope, rendering) => {
    const out: Output = { text: "" };
    body(scope, out, rendering);
    return textValue(out.text);
  };
}

/** Each round has a scope of its own: what it sets is gone in the next. */
function compileFor({ loopvar, iterable, body, defaultBlock }: ForStatement): Execute {
  const conditional = iterable.type === "SelectExpression" ? iterable : null;
  const items = compileExpression(conditional?.lhs ?? iterable);
  const condition = conditional === null ? null : compileExpression(conditional.test);
  const assign = compileTarget(loopvar);
  const [round, otherwise] = [compileBody(body), compileBody(defaultBlock)];
  // Most of a short round's cost is the making of this value.
  const needsLoop = mentions(body, "loop");
  return (scope, out, rendering) => {
    let values = iterated(items(scope, rendering), rendering.user);
    if (condition !== null) {
      values = values.filter((value) => {
        const inner = new Scope(scope);
        assign(inner, value, rendering);
        return isTrue(condition(inner, rendering));
      });
    }
    if (values.length === 0) return otherwise(new Scope(scope), out, rendering);
    for (let index = 0; index < values.length; index++) {
      const inner = new Scope(scope);
      if (needsLoop) inner.set("loop", loopValue(values, index));
      assign(inner, values[index] ?? undefinedValue, rendering);
      if (round(inner, out, rendering) === "break") break;
    }
    return "next";
  };
}

/** What `loop` says in a round. */
function loopValue(values: readonly Value[], index: number): Value {
  const { length } = values;
  return mappingValue([
    ["index", integerValue(index + 1)],
    ["index0", integerValue(index)],
    ["revindex", integerValue(length - index)],
    ["revindex0", integerValue(length - index - 1)],
    ["first", booleanValue(index === 0)],
    ["last", booleanValue(index === length - 1)],
    ["length", integerValue(length)],
    ["previtem", values[index - 1] ?? undefinedValue],
    ["nextitem", values[index + 1] ?? undefinedValue],
    ["cycle", functionValue((args) => args[index % Math.max(1, args.length)] ?? undefinedValue)],
  ]);
}

function compileSet({ assignee, value, body }: SetStatement): Execute {
  const assigned = value === null ? captured(body) : compileExpression(value);
  // `{% set name | filter %}…{% endset %}` filters the text.
  const target = assignee.type === "FilterExpression" ? assignee.operand : assignee;
  const inner: Evaluate = value === null ? (scope, rendering) => assigned(new Scope(scope), rendering) : assigned;
  const evaluate = assignee.type === "FilterExpression" ? compileFilter(assignee.filter, inner) : inner;
  const assign = compileTarget(target);
  return (scope, _out, rendering) => {
    assign(scope, evaluate(scope, rendering), rendering);
    return "next";
  };
}

/** What can stand left of an assignment: a name, several names, or a member of a namespace. */
function compileTarget(target: Expression): (scope: Scope, value: Value, rendering: Rendering) => void {
  if (target.type === "Identifier") {
    const { value: name } = target;
    return (scope, value) => scope.set(name, value);
  }
  if (target.type === "TupleLiteral") {
    const targets = target.value.map(compileTarget);
    return (scope, value, rendering) => {
      const values = iterated(value, rendering.user);
      if (values.length !== targets.length) {
        throw new RangeError(`${values.length} values cannot be unpacked into ${targets.length} names`);
      }
      for (const [index, assign] of targets.entries()) assign(scope, values[index] ?? undefinedValue, rendering);
    };
  }
  if (target.type === "MemberExpression" && target.property.type === "Identifier") {
    const object = compileExpression(target.object);
    const { value: name } = target.property;
    return (scope, value, rendering) => {
      const namespace = object(scope, rendering);
      if (!isNamespace(namespace)) throw new TypeError(`cannot assign attribute '${name}' on a non-namespace object`);
      namespace.value.set(name, value);
    };
  }
  throw new SyntaxError("this cannot be assigned to");
}

function compileMacro({ name, args, body }: MacroStatement): Execute {
  const make = compileCallable(args, body);
  return (scope) => {
    scope.set(name.value, functionValue(make(scope)));
    return "next";
  };
}

/** `{% call(x) macro(…) %}…{% endcall %}`: the macro may call the body as `caller(…)`. */
function compileCallBlock({ call, callerArgs, body }: CallStatement): Execute {
  const macro = compileExpression(call.callee);
  const given = compileArguments(call.args);
  const make = compileCallable(callerArgs ?? [], body);
  return (scope, out, rendering) => {
    const called = macro(scope, rendering);
    if (!isFunction(called)) throw new TypeError("a call block calls something that is no macro");
    const [positional, keywords] = separated(given(scope, rendering));
    const caller = [["caller", functionValue(make(scope))] as const];
    const all = [...positional, mappingValue([...(keywords ?? []), ...caller], "keywords")];
    out.text += pythonText(called.value(all, rendering), rendering.user);
    return "next";
  };
}

/** A body that is called with arguments; it sees what is around its definition. */
function compileCallable(declared: readonly Parameter[], body: readonly Statement[]): (scope: Scope) => Native {
  const names = declared.map((parameter) => {
    if (parameter.type === "Identifier") return { name: parameter.value, otherwise: null };
    return { name: parameter.key.value, otherwise: compileExpression(parameter.value) };
  });
  const known = new Set([...names.map(({ name }) => name), "caller"]);
  const text = captured(body);
  return (scope) => (args, rendering) => {
    const inner = new Scope(scope);
    const [positional, keywords] = separated(args);
    for (const [index, { name, otherwise }] of names.entries()) {
      inner.set(name, positional[index] ?? keywords?.get(name) ?? otherwise?.(inner, rendering) ?? undefinedValue);
    }
    inner.set("varargs", tupleValue(positional.slice(names.length)));
    inner.set("kwargs", mappingValue([...(keywords ?? [])].filter(([name]) => !known.has(String(name)))));
    inner.set("caller", keywords?.get("caller") ?? undefinedValue);
    return text(inner, rendering);
  };
}
