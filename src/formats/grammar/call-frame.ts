import type { Args, NamedCall, ObjectCall, PlainFormat, Route, RoutedFormat } from "../format.ts";
import { anyTool, type CallableTool, type CallContext, callId, callIndex, severalCalls } from "./call-parts.ts";
import { chars, choice, empty, type Expression, never, optional, repeat, sequence, text } from "./expression.ts";
import { membersInOrder, propertyValue, type ValueContext, valueExpression } from "./value-expression.ts";
import { anyValue, jsonSyntax, looseSyntax, pythonSyntax } from "./value-syntax.ts";
import { until } from "./strings.ts";
import { codePoints } from "./code-points.ts";
import type { ObjectLimits } from "./schema-shape.ts";
import { taggedArguments } from "./tagged-arguments.ts";

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

interface CallRoute {
  readonly header: string;
  readonly to: Args | PlainFormat;
}

/**
 * The calls of a routed format: a header that names the tool, then its arguments. `begun` is the part of the first header that the
 * prompt has already written; `lazy`: a header may have any known spelling, and where it leads to a format with markers of its own, the
 * reader's record of a call begins with those.
 */
export function routedCalls(
  context: CallContext,
  format: RoutedFormat,
  { begun, lazy }: { begun: string; lazy: boolean },
): Expression {
  const routes = format.routes.flatMap((route) => callRoutes(route, lazy));
  const call = (prefix: string, role: string): Expression =>
    anyTool(context, (tool) =>
      choice(
        ...routes.map(({ header, to }) => {
          const written = withoutBegun(header.replace("{name}", tool.name), begun, role);
          return sequence(text(prefix + written + format.headerEnd), bodyOf(context, to, tool));
        }),
      ),
    );
  const ends = optional(choice(...format.ends.map(text)));
  const role = /^\w+/.exec(begun)?.[0] ?? "";
  const bodies = lazy ? routes.flatMap(({ to }) => ("id" in to ? [plainCalls(context, to, true)] : [])) : [];
  const first = context.grammar.define("message", choice(call("", ""), ...bodies));
  // A message that follows has its start and role written out.
  const next = context.grammar.define("next-message", sequence(ends, optional(text("\n")), call(format.start, role)));
  return sequence(first, context.parallel ? repeat(next, 0, null) : empty, ends);
}

/** A thought in front: a message of its own, after which the next header is begun as the prompt had begun the first. */
export function routedThought(context: CallContext, format: RoutedFormat, begun: string): Expression {
  const header = format.routes.find((route) => route.to === "reasoning")?.write?.[0];
  const [end] = format.ends;
  if (header === undefined || end === undefined) return never;
  return sequence(
    text(withoutBegun(header, begun, "") + format.headerEnd),
    until(context.grammar, end),
    text(format.start + begun),
  );
}

/** A message of visible text in front of what follows. */
export function routedContent(format: RoutedFormat, begun: string, content: Expression): Expression {
  const header = format.routes.find((route) => route.to === "content")?.write?.[0];
  if (header === undefined) return content;
  const ends = optional(choice(...format.ends.map(text)));
  return sequence(text(withoutBegun(header, begun, "") + format.headerEnd), content, ends);
}

function callRoutes({ write, to }: Route, any: boolean): readonly CallRoute[] {
  if (typeof to === "string" || write === undefined) return [];
  const headers = any ? write : write.slice(0, 1);
  return headers.map((header) => ({ header, to }));
}

function bodyOf(context: CallContext, to: Args | PlainFormat, tool: CallableTool): Expression {
  const one = { ...context, tools: [tool], parallel: false };
  return "id" in to ? plainCalls(one, to, false) : argumentsExpression(one, to, tool, []);
}

/** The header less what the prompt has written of it; `role` stands in front where a message begins anew. */
function withoutBegun(header: string, begun: string, role: string): string {
  const rest = begun !== "" && header.startsWith(begun) ? header.slice(begun.length) : header;
  return role + (role === "" || !header.startsWith(role) ? rest : header.slice(role.length));
}

/** The arguments of a call of this tool. `closes`: what ends the call, which raw values must not hold. */
export function argumentsExpression(
  context: CallContext,
  args: Args,
  tool: CallableTool,
  closes: readonly string[],
): Expression {
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
      return taggedArguments(context, args, tool, closes);
  }
}

const keyword = /^[\p{L}_][\p{L}\p{N}_-]*$/u;
const keywordStart = chars(codePoints("az", "AZ", "_"));
const keywordRest = chars(codePoints("az", "AZ", "09", "_"));

/** `a=1, b="x"`. A property whose name is no Python keyword argument cannot be written. */
function keywordArguments(context: ValueContext, tool: CallableTool, hint: string): Expression {
  const between = sequence(text(","), optional(text(" ")));
  return choice(
    ...context.reader.shapes(tool.parts).map(({ object: limits }) => {
      const names = [...new Set([...limits.properties.keys(), ...limits.required])];
      const members = names.map((name) => ({
        expression: keyword.test(name) ? sequence(text(`${name}=`), propertyValue(context, limits, name, hint)) : never,
        required: limits.required.has(name),
      }));
      return membersInOrder(context, { members, other: otherKeyword(context, limits), between, limits, hint });
    }),
  );
}

/** A keyword of an object of which nothing else is said. */
function otherKeyword({ grammar, syntax }: ValueContext, limits: ObjectLimits): Expression {
  const isOpen = limits.properties.size === 0 && !limits.closed && limits.required.size === 0;
  if (!isOpen || limits.additional !== undefined) return never;
  return sequence(keywordStart, repeat(keywordRest, 0, 63), text("="), anyValue(grammar, syntax));
}
