import type { Args, NamedCall, ObjectCall, PlainFormat, FormatRoute, RoutedFormat } from "../format.ts";
import {
  anyTool,
  type CallableTool,
  type CallGrammarContext,
  callIdExpression,
  callIndexExpression,
  severalCalls,
} from "./call-parts.ts";
import {
  chars,
  choice,
  empty,
  type GrammarExpression,
  never,
  optional,
  repeat,
  sequence,
  literal,
} from "./expression.ts";
import { membersInOrder, propertyValue, type ValueContext, valueExpression } from "./value-expression.ts";
import { anyValue, jsonSyntax, looseSyntax, pythonSyntax } from "./value-syntax.ts";
import { until } from "./strings.ts";
import { codePoints } from "./code-points.ts";
import type { ObjectLimits } from "./schema-shape.ts";
import { type CallAround, taggedArguments } from "./tagged-arguments.ts";

/**
 * The calls of a plain format in its first syntax: section, markers, names, arguments. `opened`: the text may also begin at a call's own
 * opener, without that of its section, as a lazy grammar must allow.
 */
export function plainCalls(context: CallGrammarContext, format: PlainFormat, opened: boolean): GrammarExpression {
  const [call] = format.calls;
  const { section } = format;
  const { gap } = context;
  if (call === undefined) return never;
  const close = literal(section?.close[0] ?? "");
  if (section?.perCall === true) {
    const wrap = (open: GrammarExpression): GrammarExpression =>
      sequence(open, callUnit(context, format, call), gap, close);
    const open = sequence(literal(section.open[0]), gap);
    const further = repeat(sequence(gap, wrap(open)), 0, context.parallel ? null : 0);
    return sequence(wrap(opened ? optional(open) : open), further);
  }
  const calls = severalUnits(context, format, call);
  if (section === undefined) return calls;
  const open = sequence(literal(section.open[0]), gap);
  return opened
    ? choice(sequence(open, calls, gap, close), sequence(calls, optional(sequence(gap, close))))
    : sequence(open, calls, gap, close);
}

/** All calls, each with its own markers, or all in one pair of markers. */
function severalUnits(
  context: CallGrammarContext,
  format: PlainFormat,
  call: ObjectCall | NamedCall,
): GrammarExpression {
  const inOnePair = call.form === "object" ? call.list !== "one" : call.list !== undefined;
  if (inOnePair) return callUnit(context, format, call);
  // Without a marker, a second call would be read as text.
  const parallel = context.parallel && call.open !== undefined;
  return severalCalls({ ...context, parallel }, callUnit(context, format, call), context.gap);
}

/** One call, or one list of calls, with its markers. */
function callUnit(context: CallGrammarContext, format: PlainFormat, call: ObjectCall | NamedCall): GrammarExpression {
  const { grammar } = context;
  const body = call.form === "object" ? objectCalls(context, call) : namedCalls(context, format, call);
  return grammar.define("call", body);
}

function objectCalls(context: CallGrammarContext, call: ObjectCall): GrammarExpression {
  const { grammar, gap } = context;
  const { space } = jsonSyntax(grammar);
  const one = grammar.define(
    "call-object",
    anyTool(context, (tool) => callObject(context, call, tool)),
  );
  const fenced = (calls: GrammarExpression): GrammarExpression =>
    call.fence === true ? sequence(literal("```json\n"), calls, literal("\n```")) : calls;
  const list = {
    one: () => one,
    array: () =>
      sequence(literal("["), space, severalCalls(context, one, sequence(literal(","), space)), space, literal("]")),
    stream: () => severalCalls(context, one, choice(literal("\n"), literal("; "))),
  }[call.list]();
  return marked(call, gap, fenced(list));
}

/**
 * Adds the markers. Where calls may also be bare, the markers are optional. After a bracket the close is optional, because Mistral's models
 * omit it.
 */
function marked(call: ObjectCall | NamedCall, gap: GrammarExpression, body: GrammarExpression): GrammarExpression {
  const closed = call.close === undefined ? empty : sequence(gap, literal(call.close[0]));
  const close = call.list === "array" || call.list === "python" ? optional(closed) : closed;
  if (call.open === undefined) return sequence(body, close);
  const whole = sequence(literal(call.open[0]), gap, body, close);
  return call.bare === undefined ? whole : choice(whole, body);
}

/** `{"name": "f", "arguments": {…}}`, with the format's keys and id. */
function callObject({ grammar }: CallGrammarContext, call: ObjectCall, tool: CallableTool): GrammarExpression {
  const syntax = jsonSyntax(grammar);
  const { space } = syntax;
  const value = valueExpression({ grammar, reader: tool.reader, syntax }, tool.parts, `${tool.name}-arguments`);
  const comma = sequence(literal(","), space);
  if (call.name === "key") return sequence(literal("{"), space, syntax.key(tool.name), value, space, literal("}"));
  const name = sequence(syntax.key(call.name[0]), literal(JSON.stringify(tool.name)));
  const both = sequence(name, comma, syntax.key(call.arguments[0]), value);
  const id =
    call.id === undefined ? never : sequence(syntax.key(call.id), literal('"'), callIdExpression, literal('"'));
  return sequence(
    literal("{"),
    space,
    choice(sequence(id, comma, both), sequence(both, optional(sequence(comma, id)))),
    space,
    literal("}"),
  );
}

function namedCalls(context: CallGrammarContext, format: PlainFormat, call: NamedCall): GrammarExpression {
  const { gap } = context;
  const one = anyTool(context, (tool) => namedCall(context, format, call, tool));
  if (call.list === undefined) {
    // The name directly follows the opener.
    const close = call.close === undefined ? empty : sequence(closeGap(call, gap), literal(call.close[0]));
    const whole = sequence(literal(call.open?.[0] ?? ""), one, close);
    return call.bare === undefined || call.open === undefined ? whole : choice(whole, one);
  }
  const list =
    call.list === "python"
      ? sequence(literal("["), severalCalls(context, one, sequence(literal(","), optional(literal(" ")))), literal("]"))
      : severalCalls(context, one, literal("\n"));
  return marked(call, gap, list);
}

/** Tags may be on lines of their own; JSON directly precedes the close, except in a fence. */
function closeGap(call: NamedCall, gap: GrammarExpression): GrammarExpression {
  return call.args.kind === "tagged" || call.fence === true ? gap : empty;
}

function namedCall(
  context: CallGrammarContext,
  format: PlainFormat,
  call: NamedCall,
  tool: CallableTool,
): GrammarExpression {
  const [headEnd] = call.headEnd;
  const kept = call.headEndKept?.includes(headEnd) === true;
  const values = argumentsExpression(context, call.args, tool, { format, call });
  const body =
    call.fence === true ? sequence(literal("```json\n"), values, optional(literal("\n")), literal("```")) : values;
  return sequence(
    headExpression(call.head, tool.name),
    literal(kept ? "" : headEnd),
    literal(call.tagEnd ?? ""),
    body,
    literal(call.args.kind === "kwargs" ? ")" : ""),
  );
}

/** The head of a call with its name. An id after the name is optional. */
function headExpression(head: string, name: string): GrammarExpression {
  const [before = "", suffix = ""] = head.split("{name}");
  const after = placeholders(suffix);
  return sequence(placeholders(before), literal(name), suffix.includes("{id}") ? optional(after) : after);
}

function placeholders(pattern: string): GrammarExpression {
  return sequence(
    ...pattern
      .split(/(\{id\}|\{index\})/)
      .map((part) => (part === "{id}" ? callIdExpression : part === "{index}" ? callIndexExpression : literal(part))),
  );
}

interface CallRoute {
  readonly header: string;
  readonly to: Args | PlainFormat;
}

/**
 * The calls of a routed format: a header that names the tool, followed by its arguments. `begun`: the part of the first header that the
 * prompt has already written. `lazy`: any spelling of the header is allowed, and where it leads to a format with markers of its own, the
 * text may also begin with those.
 */
export function routedCalls(
  context: CallGrammarContext,
  format: RoutedFormat,
  { begun, lazy }: { begun: string; lazy: boolean },
): GrammarExpression {
  const routes = format.routes.flatMap((route) => callRoutes(route, lazy));
  const call = (prefix: string, role: string): GrammarExpression =>
    anyTool(context, (tool) =>
      choice(
        ...routes.map(({ header, to }) => {
          const written = withoutBegun(header.replace("{name}", tool.name), begun, role);
          return sequence(literal(prefix + written + format.headerEnd), bodyOf(context, to, tool));
        }),
      ),
    );
  const ends = optional(choice(...format.ends.map(literal)));
  const role = /^\w+/.exec(begun)?.[0] ?? "";
  const bodies = lazy ? routes.flatMap(({ to }) => ("id" in to ? [plainCalls(context, to, true)] : [])) : [];
  const first = context.grammar.define("message", choice(call("", ""), ...bodies));
  // A further message also contains its start and role.
  const next = context.grammar.define(
    "next-message",
    sequence(ends, optional(literal("\n")), call(format.start, role)),
  );
  return sequence(first, context.parallel ? repeat(next, 0, null) : empty, ends);
}

/** Reasoning before the calls: a message of its own, after which the next header is begun as in the prompt. */
export function routedReasoning(context: CallGrammarContext, format: RoutedFormat, begun: string): GrammarExpression {
  const header = format.routes.find((route) => route.to === "reasoning")?.write?.[0];
  const [end] = format.ends;
  if (header === undefined || end === undefined) return never;
  return sequence(
    literal(withoutBegun(header, begun, "") + format.headerEnd),
    until(context.grammar, end),
    literal(format.start + begun),
  );
}

/** A message of visible text before what follows. */
export function routedContent(format: RoutedFormat, begun: string, content: GrammarExpression): GrammarExpression {
  const header = format.routes.find((route) => route.to === "content")?.write?.[0];
  if (header === undefined) return content;
  const ends = optional(choice(...format.ends.map(literal)));
  return sequence(literal(withoutBegun(header, begun, "") + format.headerEnd), content, ends);
}

function callRoutes({ write, to }: FormatRoute, any: boolean): readonly CallRoute[] {
  if (typeof to === "string" || write === undefined) return [];
  const headers = any ? write : write.slice(0, 1);
  return headers.map((header) => ({ header, to }));
}

function bodyOf(context: CallGrammarContext, to: Args | PlainFormat, tool: CallableTool): GrammarExpression {
  const one = { ...context, tools: [tool], parallel: false };
  return "id" in to ? plainCalls(one, to, false) : argumentsExpression(one, to, tool);
}

/** The header without the part that the prompt has written. `role` precedes it in a further message. */
function withoutBegun(header: string, begun: string, role: string): string {
  const rest = begun !== "" && header.startsWith(begun) ? header.slice(begun.length) : header;
  return role + (role === "" || !header.startsWith(role) ? rest : header.slice(role.length));
}

/** The arguments of a call of this tool. `around`: the call, whose markers decide what raw values may contain. */
function argumentsExpression(
  context: CallGrammarContext,
  args: Args,
  tool: CallableTool,
  around?: CallAround,
): GrammarExpression {
  const { grammar } = context;
  const hint = `${tool.name}-arguments`;
  switch (args.kind) {
    case "json":
      return valueExpression({ grammar, reader: tool.reader, syntax: jsonSyntax(grammar) }, tool.parts, hint);
    case "loose":
      return valueExpression(
        { grammar, reader: tool.reader, syntax: looseSyntax(grammar, args.quotes[0]) },
        tool.parts,
        hint,
      );
    case "kwargs":
      return keywordArguments({ grammar, reader: tool.reader, syntax: pythonSyntax(grammar) }, tool, hint);
    case "tagged":
      return taggedArguments(context, args, tool, around);
  }
}

const keyword = /^[\p{L}_][\p{L}\p{N}_-]*$/u;
const keywordStart = chars(codePoints("az", "AZ", "_"));
const keywordRest = chars(codePoints("az", "AZ", "09", "_"));

/** `a=1, b="x"`. A property whose name is not a Python keyword argument cannot be written. */
function keywordArguments(context: ValueContext, tool: CallableTool, hint: string): GrammarExpression {
  const between = sequence(literal(","), optional(literal(" ")));
  return choice(
    ...context.reader.shapes(tool.parts).map(({ object: limits }) => {
      const names = [...new Set([...limits.properties.keys(), ...limits.required])];
      const members = names.map((name) => ({
        expression: keyword.test(name)
          ? sequence(literal(`${name}=`), propertyValue(context, limits, name, hint))
          : never,
        required: limits.required.has(name),
      }));
      return membersInOrder(context, { members, other: otherKeyword(context, limits), between, limits, hint });
    }),
  );
}

/** A keyword argument of an object whose properties are not described. */
function otherKeyword({ grammar, syntax }: ValueContext, limits: ObjectLimits): GrammarExpression {
  const isOpen = limits.properties.size === 0 && !limits.closed && limits.required.size === 0;
  if (!isOpen || limits.additional !== undefined) return never;
  return sequence(keywordStart, repeat(keywordRest, 0, 63), literal("="), anyValue(grammar, syntax));
}
