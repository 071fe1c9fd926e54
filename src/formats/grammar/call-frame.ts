import type { NamedCall, ObjectCall, PlainFormat } from "../format.ts";
import { argumentsExpression } from "./arguments-expression.ts";
import { anyTool, callId, callIndex, severalCalls, type CallableTool, type CallContext } from "./call-parts.ts";
import { choice, empty, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import { valueExpression } from "./value-expression.ts";
import { jsonSyntax } from "./value-syntax.ts";

/**
 * The calls of a plain format, as its first syntax writes them: section, markers, names, arguments. `opened`: the text may also begin
 * at a call's own opener, without its section's, as a lazy grammar must be able to.
 */
export function plainCalls(context: CallContext, format: PlainFormat, opened: boolean): Expression {
  const [call] = format.calls;
  const { section } = format;
  const { gap } = context;
  if (call === undefined) return never;
  const close = text(section?.close[0] ?? "");
  if (section?.perCall === true) {
    const wrap = (open: Expression): Expression => sequence(open, callUnit(context, format, call), gap, close);
    const open = sequence(text(section.open[0]), gap);
    const further = repeat(sequence(gap, wrap(open)), 0, context.parallel ? null : 0);
    return sequence(wrap(opened ? optional(open) : open), further);
  }
  const calls = severalUnits(context, format, call);
  if (section === undefined) return calls;
  const open = sequence(text(section.open[0]), gap);
  return opened
    ? choice(sequence(open, calls, gap, close), sequence(calls, optional(sequence(gap, close))))
    : sequence(open, calls, gap, close);
}

/** All calls, each with its markers, or in one pair of markers. */
function severalUnits(context: CallContext, format: PlainFormat, call: ObjectCall | NamedCall): Expression {
  const inOnePair = call.form === "object" ? call.list !== "one" : call.list !== undefined;
  if (inOnePair) return callUnit(context, format, call);
  // Without a marker, a second call looks like text.
  const parallel = context.parallel && call.open !== undefined;
  return severalCalls({ ...context, parallel }, callUnit(context, format, call), context.gap);
}

/** One call, or one list of calls, with its markers. */
function callUnit(context: CallContext, format: PlainFormat, call: ObjectCall | NamedCall): Expression {
  const { grammar } = context;
  const body = call.form === "object" ? objectCalls(context, call) : namedCalls(context, format, call);
  return grammar.define("call", body);
}

function objectCalls(context: CallContext, call: ObjectCall): Expression {
  const { grammar, gap } = context;
  const { space } = jsonSyntax(grammar);
  const one = grammar.define(
    "call-object",
    anyTool(context, (tool) => callObject(context, call, tool)),
  );
  const fenced = (calls: Expression): Expression =>
    call.fence === true ? sequence(text("```json\n"), calls, text("\n```")) : calls;
  const list = {
    one: () => one,
    array: () => sequence(text("["), space, severalCalls(context, one, sequence(text(","), space)), space, text("]")),
    stream: () => severalCalls(context, one, choice(text("\n"), text("; "))),
  }[call.list]();
  return marked(call, gap, fenced(list));
}

/**
 * `open` and `close` around; where calls may also be bare, the markers are optional. Behind a bracket the close is optional, too:
 * Mistral's models do not write it.
 */
function marked(call: ObjectCall | NamedCall, gap: Expression, body: Expression): Expression {
  const closed = call.close === undefined ? empty : sequence(gap, text(call.close[0]));
  const close = call.list === "array" || call.list === "python" ? optional(closed) : closed;
  if (call.open === undefined) return sequence(body, close);
  const whole = sequence(text(call.open[0]), gap, body, close);
  return call.bare === undefined ? whole : choice(whole, body);
}

/** `{"name": "f", "arguments": {…}}`, with the keys and the id that the format has. */
function callObject({ grammar }: CallContext, call: ObjectCall, tool: CallableTool): Expression {
  const syntax = jsonSyntax(grammar);
  const { space } = syntax;
  const value = valueExpression({ grammar, reader: tool.reader, syntax }, tool.parts, `${tool.name}-arguments`);
  const comma = sequence(text(","), space);
  if (call.name === "key") return sequence(text("{"), space, syntax.key(tool.name), value, space, text("}"));
  const name = sequence(syntax.key(call.name[0]), text(JSON.stringify(tool.name)));
  const both = sequence(name, comma, syntax.key(call.arguments[0]), value);
  const id = call.id === undefined ? never : sequence(syntax.key(call.id), text('"'), callId, text('"'));
  return sequence(
    text("{"),
    space,
    choice(sequence(id, comma, both), sequence(both, optional(sequence(comma, id)))),
    space,
    text("}"),
  );
}

function namedCalls(context: CallContext, format: PlainFormat, call: NamedCall): Expression {
  const { gap } = context;
  const one = anyTool(context, (tool) => namedCall(context, format, call, tool));
  if (call.list === undefined) {
    // The name stands right behind the opener.
    const close = call.close === undefined ? empty : sequence(closeGap(call, gap), text(call.close[0]));
    const whole = sequence(text(call.open?.[0] ?? ""), one, close);
    return call.bare === undefined || call.open === undefined ? whole : choice(whole, one);
  }
  const list =
    call.list === "python"
      ? sequence(text("["), severalCalls(context, one, sequence(text(","), optional(text(" ")))), text("]"))
      : severalCalls(context, one, text("\n"));
  return marked(call, gap, list);
}

/** Tags may stand on lines of their own; JSON stands right before the close, but for a fence. */
function closeGap(call: NamedCall, gap: Expression): Expression {
  return call.args.kind === "tagged" || call.fence === true ? gap : empty;
}

function namedCall(context: CallContext, format: PlainFormat, call: NamedCall, tool: CallableTool): Expression {
  const [headEnd] = call.headEnd;
  const kept = call.headEndKept?.includes(headEnd) === true;
  const closes = [...(call.close ?? []), ...(format.section?.close ?? [])];
  const values = argumentsExpression(context, call.args, tool, closes);
  const body = call.fence === true ? sequence(text("```json\n"), values, optional(text("\n")), text("```")) : values;
  return sequence(
    headExpression(call.head, tool.name),
    text(kept ? "" : headEnd),
    text(call.tagEnd ?? ""),
    body,
    text(call.args.kind === "kwargs" ? ")" : ""),
  );
}

/** The head with its name. An id behind the name is optional. */
export function headExpression(head: string, name: string): Expression {
  const [before = "", behind = ""] = head.split("{name}");
  const after = placeholders(behind);
  return sequence(placeholders(before), text(name), behind.includes("{id}") ? optional(after) : after);
}

function placeholders(pattern: string): Expression {
  return sequence(
    ...pattern
      .split(/(\{id\}|\{index\})/)
      .map((part) => (part === "{id}" ? callId : part === "{index}" ? callIndex : text(part))),
  );
}
