import { compileArguments, compileExpression, compileFilter, type Evaluate } from "./compile-expression.ts";
import { iterated } from "./operators.ts";
import { pythonText } from "./python-text.ts";
import type {
  Statements,
  Branch,
  CallBlock,
  FilterLink,
  ForStatement,
  MacroStatement,
  MacroParameter,
  SetBlock,
  Statement,
  AssignmentTarget,
} from "./syntax.ts";
import {
  booleanValue,
  functionValue,
  integerValue,
  isFunction,
  isNamespace,
  isTrue,
  mappingValue,
  type TemplateFunction,
  type Rendering,
  Scope,
  separated,
  textValue,
  tupleValue,
  undefinedValue,
  type Value,
} from "./values.ts";

/** The output so far. */
export interface RenderedText {
  text: string;
}

function append(out: RenderedText, text: string, { user }: Rendering): void {
  user.countWritten(text.length);
  out.text += text;
}

/** How a statement ended: execution proceeds with the next statement, or leaves the current iteration or loop. */
export type Flow = "next" | "continue" | "break";

/** Runs a statement: appends to the output and sets variables. */
export type Execute = (scope: Scope, out: RenderedText, rendering: Rendering) => Flow;

/** Compiles a list of statements to one function. */
export function compileBody(statements: Statements): Execute {
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
  switch (statement.kind) {
    case "text": {
      const { text } = statement;
      return (_scope, out) => {
        out.text += text;
        return "next";
      };
    }
    case "print":
      return printing(compileExpression(statement.value));
    case "do": {
      const evaluate = compileExpression(statement.value);
      return (scope, _out, rendering) => {
        evaluate(scope, rendering);
        return "next";
      };
    }
    case "break":
    case "continue": {
      const { kind } = statement;
      return () => kind;
    }
    case "if":
      return compileIf(statement.branches, statement.otherwise);
    case "for":
      return compileFor(statement);
    case "set":
      return compileSet(statement.target, compileExpression(statement.value));
    case "set-block":
      return compileSetBlock(statement);
    case "filter-block":
      return printing(filtered(statement.filters, statement.body));
    case "generation": {
      // Marks the assistant's text for training. Its assignments are local.
      const body = compileBody(statement.body);
      return (scope, out, rendering) => body(new Scope(scope), out, rendering);
    }
    case "macro":
      return compileMacro(statement);
    case "call-block":
      return compileCallBlock(statement);
  }
}

function printing(evaluate: Evaluate): Execute {
  return (scope, out, rendering) => {
    append(out, pythonText(evaluate(scope, rendering), rendering.user), rendering);
    return "next";
  };
}

/** Compiles a body to an expression: its output as text. */
function captured(statements: readonly Statement[]): Evaluate {
  const body = compileBody(statements);
  return (scope, rendering) => {
    const out: RenderedText = { text: "" };
    body(scope, out, rendering);
    return textValue(out.text);
  };
}

/** Compiles a body with filters to an expression, which has a scope of its own. */
function filtered(filters: readonly FilterLink[], body: Statements): Evaluate {
  const text = captured(body);
  const steps = filters.map(compileFilter);
  return (scope, rendering) => {
    const inner = new Scope(scope);
    return steps.reduce((value, step) => step(value, inner, rendering), text(inner, rendering));
  };
}

function compileIf(branches: readonly Branch[], otherwise: Statements): Execute {
  const compiled = branches.map(({ test, body }) => ({ test: compileExpression(test), body: compileBody(body) }));
  const last = compileBody(otherwise);
  return (scope, out, rendering) => {
    for (const { test, body } of compiled) {
      if (isTrue(test(scope, rendering))) return body(scope, out, rendering);
    }
    return last(scope, out, rendering);
  };
}

/** Each iteration has a scope of its own, so its assignments are lost in the next one. */
function compileFor(statement: ForStatement): Execute {
  const items = compileExpression(statement.items);
  const condition = statement.condition === null ? null : compileExpression(statement.condition);
  const assign = compileTarget(statement.target);
  const [round, otherwise] = [compileBody(statement.body), compileBody(statement.otherwise)];
  // To create `loop` takes most of the time of a short iteration.
  const needsLoop = statement.usesLoop;
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

/** The value of `loop` in an iteration. */
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

function compileSet(target: AssignmentTarget, evaluate: Evaluate): Execute {
  const assign = compileTarget(target);
  return (scope, _out, rendering) => {
    assign(scope, evaluate(scope, rendering), rendering);
    return "next";
  };
}

function compileSetBlock({ target, filters, body }: SetBlock): Execute {
  return compileSet(target, filtered(filters, body));
}

type Assign = (scope: Scope, value: Value, rendering: Rendering) => void;

function compileTarget(target: AssignmentTarget): Assign {
  if (target.kind === "name") {
    const { name } = target;
    return (scope, value) => scope.set(name, value);
  }
  if (target.kind === "tuple") {
    const targets = target.targets.map(compileTarget);
    return (scope, value, rendering) => {
      const values = iterated(value, rendering.user);
      if (values.length !== targets.length) {
        throw new RangeError(`${values.length} values cannot be unpacked into ${targets.length} names`);
      }
      for (const [index, assign] of targets.entries()) assign(scope, values[index] ?? undefinedValue, rendering);
    };
  }
  const { namespace, name } = target;
  return (scope, value) => {
    const object = scope.get(namespace);
    if (!isNamespace(object)) throw new TypeError(`cannot assign attribute '${name}' on a non-namespace object`);
    object.value.set(name, value);
  };
}

function compileMacro({ name, parameters, body }: MacroStatement): Execute {
  const make = compileCallable(parameters, body);
  return (scope) => {
    scope.set(name, functionValue(make(scope)));
    return "next";
  };
}

/** `{% call(x) macro(…) %}…{% endcall %}`: the macro may call the body as `caller(…)`. */
function compileCallBlock(block: CallBlock): Execute {
  const macro = compileExpression(block.macro);
  const given = compileArguments(block.args);
  const make = compileCallable(block.parameters, block.body);
  return (scope, out, rendering) => {
    const called = macro(scope, rendering);
    if (!isFunction(called)) throw new TypeError("a call block calls something that is not a macro");
    const [positional, keywords] = separated(given(scope, rendering));
    const caller = [["caller", functionValue(make(scope))] as const];
    const all = [...positional, mappingValue([...(keywords ?? []), ...caller], "keywords")];
    append(out, pythonText(called.value(all, rendering), rendering.user), rendering);
    return "next";
  };
}

/** Compiles a body that is called with arguments. Its scope is that of its definition. */
function compileCallable(parameters: readonly MacroParameter[], body: Statements): (scope: Scope) => TemplateFunction {
  const names = parameters.map(({ name, otherwise }) => ({
    name,
    otherwise: otherwise === null ? null : compileExpression(otherwise),
  }));
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
