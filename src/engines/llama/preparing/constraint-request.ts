import { FailureError, invalidRequest } from "../../../wire/core/failure.ts";
import type { Tool } from "../../../wire/core/message.ts";
import type { OutputConstraint } from "../../../wire/core/request.ts";
import type { Format } from "../../../text/formats/format.ts";
import {
  answerGrammar,
  callGrammar,
  type CallGrammar,
  type CallGrammarOptions,
  isRecognizedAsWhole,
  schemaAnswer,
} from "../../../text/formats/grammar/call-grammar.ts";
import type { GrammarExpression } from "../../../text/formats/grammar/expression.ts";
import { GbnfError, LarkError, SchemaError, type SchemaGap } from "../../../text/formats/grammar/grammar-errors.ts";
import { type Grammar, GrammarError } from "../../../text/formats/grammar/grammar.ts";
import { larkToGbnf } from "../../../text/formats/grammar/lark-to-expression.ts";
import { readGbnf, refuseLeftRecursion } from "../../../text/formats/grammar/read-gbnf.ts";
import { RegexError } from "../../../text/formats/grammar/regex-syntax.ts";
import { regexExpression } from "../../../text/formats/grammar/regex-to-gbnf.ts";
import { textChoice } from "../../../text/formats/grammar/text-choice.ts";
import { anyValue, jsonSyntax } from "../../../text/formats/grammar/value-syntax.ts";
import { textStart } from "../../../text/formats/reasoning.ts";
import type { ModelRequest } from "../protocol.ts";
import type { AnswerCheckPlan, ConstraintPlan, PlannedGrammar } from "./constraint-plan.ts";
import type { AnswerParsing } from "./prepared-request.ts";

/** The constraint on the answer to a request. */
export interface Constraint {
  readonly plan: ConstraintPlan;
  /** Validation of the complete answer, for what the grammar cannot enforce. */
  readonly check?: AnswerCheckPlan;
  readonly warnings: readonly string[];
}

/** The properties of a model that constraints depend on. */
export interface ConstrainedModel {
  /** The template renders reasoning, so the model may open reasoning even if the prompt has not. */
  readonly writesReasoning: boolean;
  /** Calls that are not forced are constrained to the schemas of their tools, also without `strict`, as far as a grammar can. */
  readonly constrainsCalls: boolean;
}

/**
 * Returns the constraint on a request's answer, or undefined if there is none.
 *
 * @throws {FailureError} 400, with the path, for what no grammar can be made from, and with `strict` for what a grammar cannot enforce.
 */
export function constraintOf(
  request: ModelRequest,
  reading: AnswerParsing,
  model: ConstrainedModel,
): Constraint | undefined {
  const place = answerStart(reading, model.writesReasoning);
  const tools = reading.callsAllowed ? (reading.tools ?? []) : [];
  const output = request.output?.type === "text" ? undefined : request.output;
  const schema = output && schemaOf(output);
  if (tools.length > 0 && isForced(request)) return calls(request, reading, callable(request, tools), place);
  if (tools.length > 0 && output && schema)
    return calls(request, reading, tools, place, { answer: { ...schema, output } });
  if (output) return answer(output, reading.format, place);
  const isBound = tools.some((tool) => tool.strict || tool.inputGrammar) || request.parallelToolCalls === false;
  if (tools.length === 0) return undefined;
  if (isRecognizedAsWhole(reading.format)) {
    // If a call is recognized by the whole text, a grammar constrains every answer, so it must be requested.
    return isBound ? calls(request, reading, tools, place, { loose: new Set(tools) }) : undefined;
  }
  if (!model.constrainsCalls)
    return isBound ? calls(request, reading, tools, "with-call", { loose: new Set(tools) }) : undefined;
  return implicitCalls(request, reading, tools, isBound);
}

/**
 * Constrains calls that are not forced. The arguments of tools without `strict` are constrained if a grammar can be made for them, without
 * warnings, since the client did not request it. `isBound`: the client requested another constraint on calls.
 */
function implicitCalls(
  request: ModelRequest,
  reading: AnswerParsing,
  tools: readonly Tool[],
  isBound: boolean,
): Constraint | undefined {
  const attempt = (some: readonly Tool[], loose: readonly Tool[]): Constraint | undefined => {
    try {
      const made = calls(request, reading, some, "with-call", { loose: new Set(loose) });
      return made.plan.grammar.gbnf.length <= maxImplicitLength ? made : undefined;
    } catch (error) {
      if (error instanceof FailureError) return undefined;
      throw error;
    }
  };
  const unasked = tools.filter(isFreeByDefault);
  // The input of a custom tool is free text.
  if (unasked.length === 0 && !isBound) return undefined;
  let made = attempt(tools, []);
  if (made === undefined) {
    const unholdable = unasked.filter((tool) => attempt([tool], []) === undefined);
    if (unholdable.length > 0 && (isBound || unholdable.length < tools.length)) made = attempt(tools, unholdable);
  }
  if (isBound) return made ?? calls(request, reading, tools, "with-call", { loose: new Set(unasked) });
  return made && { ...made, plan: { ...made.plan, optional: true } };
}

/** Maximum length of a grammar that was not requested. llama.cpp parses it in milliseconds; twelve tools of an agent need 36,000. */
const maxImplicitLength = 256 * 1024;

function within(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
}

function writesObjects(format: Format): boolean {
  return format.kind === "plain" && format.calls[0]?.form === "object";
}

function isFreeByDefault(tool: Tool): boolean {
  return tool.strict !== true && tool.kind !== "custom";
}

/** What precedes the constrained text: the end of open reasoning, reasoning, nothing, or text before a call. */
type AnswerStart = "end-of-reasoning" | "reasoning" | "start" | "with-call";

const begins: Readonly<Record<AnswerStart, ConstraintPlan["begins"]>> = {
  "end-of-reasoning": "after-reasoning",
  reasoning: "immediately",
  start: "immediately",
  "with-call": "with-call",
};

function answerStart({ format, prefix, thinking }: AnswerParsing, writesReasoning: boolean): AnswerStart {
  if (format.kind === "routed") return thinking === false ? "start" : "reasoning";
  const { reasoning } = format;
  if (reasoning === undefined) return "start";
  if (textStart(reasoning, { prefix }).place === "inside") return "end-of-reasoning";
  const closed = reasoning.close.some((close) => prefix.includes(close));
  return writesReasoning && thinking !== false && !closed ? "reasoning" : "start";
}

function isForced({ toolChoice }: ModelRequest): boolean {
  return (
    toolChoice?.type === "required" ||
    toolChoice?.type === "named" ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required")
  );
}

function callable({ toolChoice }: ModelRequest, tools: readonly Tool[]): readonly Tool[] {
  return toolChoice?.type === "named" ? tools.filter((tool) => tool.name === toolChoice.name) : tools;
}

function calls(
  request: ModelRequest,
  { format, prefix }: AnswerParsing,
  tools: readonly Tool[],
  place: AnswerStart,
  options: {
    /** Tools without `strict` whose arguments may be any object. Default: all. */
    readonly loose?: ReadonlySet<Tool>;
    readonly answer?: NonNullable<CallGrammarOptions["orAnswer"]> & { readonly output: OutputConstraint };
  } = {},
): Constraint {
  const { loose, answer } = options;
  const paths = tools.map((tool) => parametersPath(request, tool));
  checkInputGrammars(tools, paths);
  const mode = place === "with-call" ? "lazy" : isForced(request) || answer ? "forced" : "either";
  const made = (): CallGrammar =>
    callGrammar(format, tools, {
      mode,
      parallel: request.parallelToolCalls !== false,
      prefix,
      pathOf: (index) => paths[index] ?? "tools",
      isFree: (tool) => isFreeByDefault(tool) && loose?.has(tool) !== false,
      ...front(place),
      ...(answer && { orAnswer: answer }),
    });
  const { plan, widened, exact } = planned(made, "tools");
  tools.forEach((tool, i) => {
    if (tool.strict) refuseGaps(widened, paths[i] ?? "", `function '${tool.name}'`, "invalid_function_parameters");
    if (tool.inputGrammar) refuseInputGrammar(widened, paths[i] ?? "", tool.name);
  });
  if (answer) refuseOutputGaps(widened, answer.output);
  const output = answer && { schema: answer.schema };
  // Constraints that were not requested are not validated, and cause no warnings.
  const requested = loose ? tools.filter((tool) => !isFreeByDefault(tool) || loose.has(tool)) : tools;
  const reported = widened.filter(({ path }) =>
    requested.some((tool) => within(path, paths[tools.indexOf(tool)] ?? "")),
  );
  return {
    plan: {
      grammar: plan,
      begins: begins[place],
      format,
      ...(writesObjects(format) && { json: true }),
    },
    ...(!exact && requested.length > 0 && { check: { tools: requested, ...output } }),
    warnings: warningsOf(answer ? widened : reported),
  };
}

/** Reports a malformed or unsupported grammar of a custom tool at its own path. */
function checkInputGrammars(tools: readonly Tool[], paths: readonly string[]): void {
  tools.forEach(({ inputGrammar }, i) => {
    if (inputGrammar === undefined) return;
    const { syntax, definition } = inputGrammar;
    const make = (): unknown => (syntax === "regex" ? regexExpression(definition, "whole") : larkToGbnf(definition));
    asInvalidRequest(make, `${paths[i]}.definition`);
  });
}

function parametersPath({ tools = [], prompt }: ModelRequest, tool: Tool): string {
  if (tool.path !== undefined) return tool.path;
  const index = tools.indexOf(tool);
  if (tool.kind === "custom") return `tools[${index}].custom.format.grammar`;
  const legacy = prompt.kind === "chat" && prompt.legacyFunctions === true;
  return legacy ? `functions[${index}].parameters` : `tools[${index}].function.parameters`;
}

function answer(output: OutputConstraint, format: Format, place: AnswerStart): Constraint {
  if (output.type === "grammar") {
    const grammar = clientGrammar(output.gbnf, output.path);
    return { plan: { grammar, begins: begins[place], format }, warnings: [] };
  }
  const make = (): CallGrammar => {
    const held: { widened: readonly SchemaGap[]; exact: boolean } = { widened: [], exact: true };
    const build = (grammar: Grammar): GrammarExpression => {
      if (output.type === "json-schema") {
        const made = schemaAnswer(grammar, output.schema, output.path);
        Object.assign(held, { widened: made.widened, exact: made.exact });
        return made.root;
      }
      if (output.type === "regex") return regexExpression(output.pattern, "whole");
      if (output.type === "choice") return textChoice(grammar, output.options);
      return anyValue(grammar, jsonSyntax(grammar), "object");
    };
    const gbnf = answerGrammar(format, build, front(place));
    return { gbnf, ...held };
  };
  const path = "path" in output ? output.path : "response_format";
  const { plan, widened, exact } = planned(make, path);
  refuseOutputGaps(widened, output);
  return {
    plan: { grammar: plan, begins: begins[place], format, ...(output.type.startsWith("json-") && { json: true }) },
    ...(!exact && output.type === "json-schema" && { check: { tools: [], schema: output.schema } }),
    warnings: warningsOf(widened),
  };
}

/** Our own grammars may contain a hundred thousand values. */
const maxOwnElements = 4_000_000;

/** Makes a grammar and checks it. `path`: the path of its source in the request. Throws `FailureError` (400). */
function planned(make: () => CallGrammar, path: string): Omit<CallGrammar, "gbnf"> & { readonly plan: PlannedGrammar } {
  return asInvalidRequest(() => {
    const { gbnf, ...rest } = make();
    checkGrammar(gbnf, maxOwnElements);
    return { ...rest, plan: { type: "ours", path, gbnf } };
  }, path);
}

function front(place: AnswerStart): Pick<CallGrammarOptions, "front"> {
  return place === "reasoning" || place === "end-of-reasoning" ? { front: place } : {};
}

/** The schema of an answer in JSON; undefined for other answers. */
function schemaOf(output: OutputConstraint): NonNullable<CallGrammarOptions["orAnswer"]> | undefined {
  if (output.type === "json-schema") return { schema: output.schema, path: output.path };
  return output.type === "json-object" ? { schema: { type: "object" }, path: "response_format" } : undefined;
}

function refuseOutputGaps(widened: readonly SchemaGap[], output: OutputConstraint): void {
  if (output.type !== "json-schema" || !output.strict) return;
  refuseGaps(widened, output.path, `response_format '${output.name}'`, "invalid_json_schema");
}

function warningsOf(widened: readonly SchemaGap[]): string[] {
  return widened.map(
    ({ path, keyword }) => `'${keyword}' at ${path} is not enforced by the grammar; the answer is checked.`,
  );
}

/** Maximum length of a grammar in characters. */
const maxGrammarLength = 64 * 1024;
/** Maximum number of elements of a client grammar. */
const maxClientElements = 250_000;

/**
 * Checks a client's own GBNF grammar, which is at `path` in the request.
 *
 * @throws {FailureError} 400 for a grammar that is malformed or too large.
 */
export function clientGrammar(gbnf: string, path: string): PlannedGrammar {
  if (gbnf.length > maxGrammarLength) {
    const why = `it has ${gbnf.length} characters, and ${maxGrammarLength} is the limit`;
    throw invalidRequest(`Invalid grammar at '${path}': ${why}.`, path, "invalid_grammar");
  }
  try {
    checkGrammar(gbnf, maxClientElements);
    return { type: "gbnf", path, gbnf };
  } catch (error) {
    throw invalidRequestOf(error, path);
  }
}

/** Maximum nesting of parentheses: the parser is recursive. */
const maxDepth = 200;

/**
 * Checks that a grammar can be used. Its cost is known only while an answer is sampled, and is limited there (`process/token-grammar.ts`).
 *
 * @param elements the maximum number of characters, classes and references after repetitions are expanded.
 * @throws {GbnfError} for a grammar that is malformed, too large or left-recursive.
 */
export function checkGrammar(gbnf: string, elements: number): void {
  refuseLeftRecursion(readGbnf(gbnf, { depth: maxDepth, elements }).rules);
}

/** Runs `make`, and converts its errors to 400. `path`: the path of the pattern or grammar. */
export function asInvalidRequest<T>(make: () => T, path = "tools"): T {
  try {
    return make();
  } catch (error) {
    throw invalidRequestOf(error, path);
  }
}

/** Converts an error about a grammar or schema to a 400. Other errors are returned unchanged. */
export function invalidRequestOf(error: unknown, path: string): unknown {
  if (error instanceof SchemaError)
    return invalidRequest(`Invalid schema at '${error.path}': ${error.message}.`, error.path, "invalid_json_schema");
  if (error instanceof RegexError)
    return invalidRequest(`Invalid pattern at '${path}': ${error.message}.`, path, "invalid_value");
  if (error instanceof LarkError)
    return invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_value");
  if (error instanceof GbnfError)
    return invalidRequest(`Invalid grammar at '${path}': ${error.message}.`, path, "invalid_grammar");
  if (error instanceof GrammarError)
    return invalidRequest(`Invalid value at '${path}': ${error.message}.`, path, "invalid_value");
  // The only recursion is into what the client sent.
  if (error instanceof RangeError)
    return invalidRequest(`Invalid value at '${path}': it is nested too deeply.`, path, "invalid_value");
  return error;
}

/**
 * Rejects a keyword below `path` that the grammar does not enforce: with `strict`, OpenAI guarantees that output matches the schema, and
 * rejects unsupported keywords (guide to structured outputs, "Supported schemas").
 */
export function refuseGaps(widened: readonly SchemaGap[], path: string, what: string, code: string): void {
  const gap = widened.find((gap) => gap.path === path || gap.path.startsWith(`${path}.`));
  if (gap === undefined) return;
  throw invalidRequest(
    `Invalid schema for ${what}: '${gap.keyword}' at '${gap.path}' cannot be enforced with strict: true.`,
    `${gap.path}.${gap.keyword}`,
    code,
  );
}

/** Rejects the grammar of a custom tool if this model's call syntax cannot enforce it. */
export function refuseInputGrammar(widened: readonly SchemaGap[], path: string, tool: string): void {
  if (!widened.some((gap) => gap.path.startsWith(`${path}.`))) return;
  throw invalidRequest(
    `Unsupported value: the grammar of the custom tool '${tool}' cannot be enforced in the way this model writes calls.`,
    `${path}.definition`,
    "unsupported_value",
  );
}
