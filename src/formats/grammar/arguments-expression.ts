import type { Args } from "../format.ts";
import type { CallableTool, CallContext } from "./call-parts.ts";
import { codePoints } from "./code-points.ts";
import { chars, choice, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import { membersInOrder } from "./members-in-order.ts";
import type { ObjectLimits } from "./schema-shape.ts";
import { taggedArguments } from "./tagged-arguments.ts";
import { propertyValue, valueExpression, type ValueContext } from "./value-expression.ts";
import { anyValue, jsonSyntax, looseSyntax, pythonSyntax } from "./value-syntax.ts";

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
