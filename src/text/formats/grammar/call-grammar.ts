import type { Format, PlainFormat } from "../format.ts";
import type { JsonSchema, Tool } from "../../../wire/core/message.ts";
import { plainCalls, routedCalls, routedContent, routedReasoning } from "./call-expression.ts";
import { callableTool, type CallableTool, callGap, type CallGrammarContext } from "./call-parts.ts";
import { codePoints, complement, everyCodePoint, oneCodePoint, subtract, union } from "./code-points.ts";
import {
  chars,
  choice,
  empty,
  type GrammarExpression,
  isNever,
  literal,
  optional,
  repeat,
  sequence,
} from "./expression.ts";
import { SchemaReader } from "./schema-reader.ts";
import { Grammar, GrammarError } from "./grammar.ts";
import { SchemaError, type SchemaGap } from "./grammar-errors.ts";
import { until } from "./strings.ts";
import { valueExpression } from "./value-expression.ts";
import { jsonSyntax } from "./value-syntax.ts";

export interface CallGrammarOptions {
  /**
   * - forced: the text consists of calls, with nothing before or after except what `front` allows;
   * - lazy: the grammar begins where a call begins, with its opener or the opener of its section;
   * - either: calls, or a text that does not begin like a call. For formats whose calls are recognized only when the text is complete
   * (`isToldByWhole`).
   */
  readonly mode: "forced" | "lazy" | "either";
  /** With false, at most one call. */
  readonly parallel: boolean;
  /** Tools whose arguments may be any object. Not with "forced". */
  readonly isFree?: (tool: Tool) => boolean;
  /**
   * What may precede the calls: reasoning, which the model may open (its template has reasoning, and the prompt has neither opened nor
   * closed one); or white space, if the grammar starts at the end of the reasoning. Default: neither.
   */
  readonly front?: "reasoning" | "end-of-reasoning";
  /** The end of the rendered prompt. The part of a header that it has begun (routed formats) is not written again. */
  readonly prefix?: string;
  /** An answer in JSON is allowed instead of a call: `response_format` with optional tools. */
  readonly orAnswer?: { readonly schema: JsonSchema; readonly path: string };
  /** The path of a tool's parameters in the request, by the index in `tools`. */
  readonly pathOf?: (index: number) => string;
}

export interface CallGrammar {
  /** The grammar, whose start is the rule `root`. */
  readonly gbnf: string;
  /** Assertions of the schemas that the grammar does not enforce. */
  readonly widened: readonly SchemaGap[];
  /** Whether every text of the grammar satisfies the schemas. */
  readonly exact: boolean;
}

/**
 * The grammar of the texts in which a model of this format calls these tools. It is made from the description that its answers are parsed
 * with, so that grammar and parser cannot disagree. Names are literals, arguments follow the tools' schemas (`schemaAnswer` describes how),
 * and parameters are in the order of the schema.
 *
 * A format without calls cannot be forced to make one: use `generic-json` with `toolInstruction`.
 *
 * @throws {SchemaError} if a schema is malformed or unsatisfiable, or the format cannot write what it requires.
 */
export function callGrammar(format: Format, tools: readonly Tool[], options: CallGrammarOptions): CallGrammar {
  const grammar = new Grammar();
  const pathOf = options.pathOf ?? ((index: number): string => `tools[${index}].function.parameters`);
  const callable = tools.map((tool, i) =>
    callableTool(tool, i, pathOf(i), options.mode !== "forced" && options.isFree?.(tool) === true),
  );
  const context: CallGrammarContext = { grammar, tools: callable, parallel: options.parallel, gap: callGap(grammar) };
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
    gbnf: grammar.toGbnf(options.mode === "lazy" ? root : withReasoning(context, format, root, options)),
    widened: readers.flatMap((reader) => reader.gaps),
    exact: readers.every((reader) => reader.gaps.length === 0 && !reader.sawOneOf),
  };
}

/** The grammar of an answer: visible text, after reasoning if the model may open it, and after the header of a routed format. */
export function answerGrammar(
  format: Format,
  build: (grammar: Grammar) => GrammarExpression,
  options: Pick<CallGrammarOptions, "front" | "prefix">,
): string {
  const grammar = new Grammar();
  const context: CallGrammarContext = { grammar, tools: [], parallel: false, gap: callGap(grammar) };
  return grammar.toGbnf(withReasoning(context, format, contentOf(format, build(grammar), options), options));
}

function callsOf(context: CallGrammarContext, format: Format, { mode, prefix }: CallGrammarOptions): GrammarExpression {
  const lazy = mode === "lazy";
  if (format.kind === "plain") {
    // Special tokens that are removed may close the message, unless the calls must be the whole text.
    const closing = format.calls[0]?.bare === "whole" ? [] : (format.strip ?? []);
    const stripped = repeat(choice(...closing.map(literal)), 0, 2);
    const calls = sequence(plainCalls(context, format, lazy), stripped);
    if (lazy) return calls;
    return sequence(context.gap, mode === "either" ? choice(calls, otherText(format)) : calls);
  }
  return routedCalls(context, format, { begun: begunHeader(format.start, prefix), lazy });
}

/** Whether calls of this format are recognized only when the text is complete. Then a lazy grammar cannot start where a call begins. */
export function isRecognizedAsWhole(format: Format): boolean {
  return format.kind === "plain" && format.calls[0]?.bare === "whole";
}

/** Any text whose first character does not begin a call, or no text. */
function otherText({ calls }: PlainFormat): GrammarExpression {
  const starts = calls.flatMap((call) => [call.form === "object" ? "{" : "", "[", ...(call.open ?? [])]);
  const first = subtract(
    complement(codePoints("\t\n", " ")),
    union(...starts.flatMap(([c]) => (c ? [oneCodePoint(c)] : []))),
  );
  return optional(sequence(chars(first), repeat(chars(everyCodePoint), 0, null)));
}

function contentOf(
  format: Format,
  content: GrammarExpression,
  { prefix }: Pick<CallGrammarOptions, "prefix">,
): GrammarExpression {
  return format.kind === "plain" ? content : routedContent(format, begunHeader(format.start, prefix), content);
}

function withReasoning(
  context: CallGrammarContext,
  format: Format,
  body: GrammarExpression,
  { front, prefix }: Pick<CallGrammarOptions, "front" | "prefix">,
): GrammarExpression {
  if (front === undefined) return body;
  if (front === "end-of-reasoning") return sequence(context.gap, body);
  if (format.kind === "plain") return sequence(optional(sequence(plainReasoning(context, format), context.gap)), body);
  const reasoning = routedReasoning(context, format, begunHeader(format.start, prefix));
  return isNever(reasoning) ? body : sequence(optional(reasoning), body);
}

function plainReasoning({ grammar }: CallGrammarContext, { reasoning }: PlainFormat): GrammarExpression {
  if (reasoning === undefined) return empty;
  return sequence(literal(reasoning.open[0] + (reasoning.label ?? "")), until(grammar, reasoning.close[0]));
}

/** The part of the prompt after the last start of a message: the begun header. */
function begunHeader(start: string, prefix = ""): string {
  const at = prefix.lastIndexOf(start);
  return at < 0 ? "" : prefix.slice(at + start.length);
}

/** @throws {SchemaError} for a tool whose calls cannot be written. As one alternative of several, it would silently be left out. */
function checkWritable(context: CallGrammarContext, format: Format, tool: CallableTool): void {
  const [part] = tool.parts;
  const path = part?.path ?? "";
  const grammar = new Grammar();
  const alone: CallGrammarContext = { ...context, grammar, tools: [tool], gap: callGap(grammar) };
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

interface SchemaAnswer {
  readonly root: GrammarExpression;
  /** Assertions that the grammar does not enforce, each once, in the order of the schema. */
  readonly widened: readonly SchemaGap[];
  /** Whether every text of the grammar satisfies the schema. False with `widened`, and if a `oneOf` was read as `anyOf`. */
  readonly exact: boolean;
}

/**
 * Adds to `grammar` the JSON texts that satisfy a schema (2020-12 and draft-07; `nullable`, boolean `exclusiveMinimum` and int32/int64 of
 * OpenAPI).
 *
 * Every text of the grammar is valid, except for what `widened` names. Some valid texts are not in the grammar:
 * - properties are in the order of the schema, declared ones before others, and no key occurs twice except undeclared ones;
 * - a schema with `properties`, `patternProperties` or `prefixItems` that does not describe further members has none;
 * - a schema with keywords of some types, but without `type`, has only values of those types;
 * - numbers have at most 16 digits on each side of the point and an exponent of at most two digits; bounded numbers have no exponent;
 *   decimals that are multiples have exactly the digits of `multipleOf`;
 * - strings with a pattern or format are spelled as `JSON.stringify` spells them;
 * - white space is bounded (`jsonSyntax`).
 *
 * Annotations and unknown keywords are ignored. `path` is the prefix of all paths in results and errors.
 *
 * @throws {SchemaError} if the schema is malformed or contains a reference that cannot be resolved.
 */
export function schemaAnswer(grammar: Grammar, schema: JsonSchema, path: string): SchemaAnswer {
  const reader = new SchemaReader(schema, path);
  const root = valueExpression({ grammar, reader, syntax: jsonSyntax(grammar) }, [{ schema, path }], "root-value");
  return { root, widened: reader.gaps, exact: reader.gaps.length === 0 && !reader.sawOneOf };
}
