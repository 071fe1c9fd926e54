import type { Format, PlainFormat } from "../format.ts";
import type { JsonSchema, Tool } from "../../core/message.ts";
import { plainCalls, routedCalls, routedContent, routedThought } from "./call-frame.ts";
import { callableTool, type CallableTool, type CallContext, callGap } from "./call-parts.ts";
import { codePoints, complement, everyCodePoint, oneCodePoint, subtract, union } from "./code-points.ts";
import { chars, choice, empty, type Expression, isNever, optional, repeat, sequence, text } from "./expression.ts";
import { SchemaReader } from "./flatten-schema.ts";
import { Grammar, GrammarError } from "./grammar.ts";
import { type Gap, SchemaError } from "./schema-error.ts";
import { until } from "./strings.ts";
import { valueExpression } from "./value-expression.ts";
import { jsonSyntax } from "./value-syntax.ts";

export interface CallGrammarOptions {
  /**
   * - forced: the text is calls (after a thought, where `mayThink`), and nothing else;
   * - lazy: the grammar begins where a call begins, with its opener or the opener of its section;
   * - either: calls, or a text that does not begin as one: for formats whose calls are recognised only when the text is complete (`isToldByWhole`).
   */
  readonly mode: "forced" | "lazy" | "either";
  /** False: one call at most. */
  readonly parallel: boolean;
  /** Not with "forced": whose arguments need not follow their schema. */
  readonly isFree?: (tool: Tool) => boolean;
  /**
   * What may stand in front: a thought, which the model may open (its template knows thoughts, and the prompt has neither opened nor
   * closed one); or white space, where the grammar begins to bind at the end of a thought. Default: neither.
   */
  readonly front?: "thought" | "end-of-thought";
  /** The end of the rendered prompt: what it has begun of a header (routed formats) is not written again. */
  readonly prefix?: string;
  /** An answer in JSON is as good as a call: `response_format` with tools that need not be called. */
  readonly orAnswer?: { readonly schema: JsonSchema; readonly path: string };
  /** The path of a tool's parameters in the request; index as in `tools`. */
  readonly pathOf?: (index: number) => string;
}

export interface CallGrammar {
  /** The grammar, whose start is the rule `root`. */
  readonly gbnf: string;
  /** Assertions of the schemas that the grammar does not enforce. */
  readonly widened: readonly Gap[];
  /** Whether every text of the grammar satisfies the schemas. */
  readonly exact: boolean;
}

/**
 * The texts in which a model of this format calls these tools, made from the description that its
 * answers are read with, so that grammar and reader cannot disagree. Names are literals, arguments follow the tools' schemas
 * (`schemaAnswer` describes how), and parameters are in the order of the schema.
 *
 * A format without calls cannot be forced to make one: use `generic-json` with `toolInstruction`.
 *
 * @throws {SchemaError} if a schema is malformed, allows nothing, or the format cannot write what it demands.
 */
export function callGrammar(format: Format, tools: readonly Tool[], options: CallGrammarOptions): CallGrammar {
  const grammar = new Grammar();
  const pathOf = options.pathOf ?? ((index: number): string => `tools[${index}].function.parameters`);
  const callable = tools.map((tool, i) =>
    callableTool(tool, i, pathOf(i), options.mode !== "forced" && options.isFree?.(tool) === true),
  );
  const context: CallContext = { grammar, tools: callable, parallel: options.parallel, gap: callGap(grammar) };
  for (const tool of callable) checkWritable(context, format, tool);
  const readers = callable.map((tool) => tool.reader);
  let root = callsOf(context, format, options);
  if (options.orAnswer !== undefined) {
    const { schema, path } = options.orAnswer;
    const reader = new SchemaReader(schema, path, "answer");
    const answer = valueExpression({ grammar, reader, syntax: jsonSyntax(grammar) }, [{ schema, path }], "answer");
    readers.push(reader);
    root = choice(root, contentOf(format, answer, options));
  }
  return {
    gbnf: grammar.toGbnf(options.mode === "lazy" ? root : withThought(context, format, root, options)),
    widened: readers.flatMap((reader) => reader.gaps),
    exact: readers.every((reader) => reader.gaps.length === 0 && !reader.sawOneOf),
  };
}

/**
 * Visible text that is `answer`, in a format: behind a thought where the model may open one, and behind the header that a routed
 * format writes.
 */
export function answerGrammar(
  format: Format,
  build: (grammar: Grammar) => Expression,
  options: Pick<CallGrammarOptions, "front" | "prefix">,
): string {
  const grammar = new Grammar();
  const context: CallContext = { grammar, tools: [], parallel: false, gap: callGap(grammar) };
  return grammar.toGbnf(withThought(context, format, contentOf(format, build(grammar), options), options));
}

function callsOf(context: CallContext, format: Format, { mode, prefix }: CallGrammarOptions): Expression {
  const lazy = mode === "lazy";
  if (format.kind === "plain") {
    // Special tokens that vanish may close the message, unless the calls must be the whole text.
    const closing = format.calls[0]?.bare === "whole" ? [] : (format.strip ?? []);
    const stripped = repeat(choice(...closing.map(text)), 0, 2);
    const calls = sequence(plainCalls(context, format, lazy), stripped);
    if (lazy) return calls;
    return sequence(context.gap, mode === "either" ? choice(calls, otherText(format)) : calls);
  }
  return routedCalls(context, format, { begun: begunHeader(format.start, prefix), lazy });
}

/** Whether calls of this format are recognised only when the text is complete: then no lazy grammar can begin where a call does. */
export function isToldByWhole(format: Format): boolean {
  return format.kind === "plain" && format.calls[0]?.bare === "whole";
}

/** Any text, or none, whose first character begins no call. */
function otherText({ calls }: PlainFormat): Expression {
  const starts = calls.flatMap((call) => [call.form === "object" ? "{" : "", "[", ...(call.open ?? [])]);
  const first = subtract(
    complement(codePoints("\t\n", " ")),
    union(...starts.flatMap(([c]) => (c ? [oneCodePoint(c)] : []))),
  );
  return optional(sequence(chars(first), repeat(chars(everyCodePoint), 0, null)));
}

function contentOf(format: Format, content: Expression, { prefix }: Pick<CallGrammarOptions, "prefix">): Expression {
  return format.kind === "plain" ? content : routedContent(format, begunHeader(format.start, prefix), content);
}

function withThought(
  context: CallContext,
  format: Format,
  body: Expression,
  { front, prefix }: Pick<CallGrammarOptions, "front" | "prefix">,
): Expression {
  if (front === undefined) return body;
  if (front === "end-of-thought") return sequence(context.gap, body);
  if (format.kind === "plain") return sequence(optional(sequence(plainThought(context, format), context.gap)), body);
  const thought = routedThought(context, format, begunHeader(format.start, prefix));
  return isNever(thought) ? body : sequence(optional(thought), body);
}

function plainThought({ grammar }: CallContext, { reasoning }: PlainFormat): Expression {
  if (reasoning === undefined) return empty;
  return sequence(text(reasoning.open[0] + (reasoning.label ?? "")), until(grammar, reasoning.close[0]));
}

/** What stands behind the last start of a message in the prompt, as far as it is a header. */
function begunHeader(start: string, prefix = ""): string {
  const at = prefix.lastIndexOf(start);
  return at < 0 ? "" : prefix.slice(at + start.length);
}

/** @throws {SchemaError} for a tool whose calls cannot be written; as one option of a choice it would vanish unnoticed. */
function checkWritable(context: CallContext, format: Format, tool: CallableTool): void {
  const [part] = tool.parts;
  const path = part?.path ?? "";
  const grammar = new Grammar();
  const alone: CallContext = { ...context, grammar, tools: [tool], gap: callGap(grammar) };
  const calls =
    format.kind === "plain" ? plainCalls(alone, format, false) : routedCalls(alone, format, { begun: "", lazy: false });
  try {
    grammar.check(calls);
  } catch (error) {
    if (!(error instanceof GrammarError)) throw error;
    throw new SchemaError(path, `no call of '${tool.name}' can satisfy its parameters: ${error.message}`, {
      cause: error,
    });
  }
}
