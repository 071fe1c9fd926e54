import type { Args, PlainFormat, Route, RoutedFormat } from "../format.ts";
import { argumentsExpression } from "./arguments-expression.ts";
import { plainCalls } from "./call-frame.ts";
import { anyTool, type CallableTool, type CallContext } from "./call-parts.ts";
import { choice, empty, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import { until } from "./until.ts";

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
