import type { Format } from "../../../formats/format.ts";
import {
  answerGrammar,
  callGrammar,
  isToldByWhole,
  type CallGrammar,
  type CallGrammarOptions,
} from "../../../formats/grammar/call-grammar.ts";
import type { Expression } from "../../../formats/grammar/expression.ts";
import type { Grammar } from "../../../formats/grammar/grammar.ts";
import { larkToGbnf } from "../../../formats/grammar/lark-to-expression.ts";
import { regexExpression } from "../../../formats/grammar/regex-to-gbnf.ts";
import type { Gap } from "../../../formats/grammar/schema-error.ts";
import { schemaAnswer } from "../../../formats/grammar/schema-to-gbnf.ts";
import { textChoice } from "../../../formats/grammar/text-choice.ts";
import { anyValue, jsonSyntax } from "../../../formats/grammar/value-syntax.ts";
import { startOf } from "../../../formats/reading/start.ts";
import type { Tool } from "../../../core/message.ts";
import type { OutputConstraint } from "../../../core/request.ts";
import type { AskedOfModel } from "../protocol.ts";
import { FailureError } from "../../../core/failure.ts";
import { checkGrammar } from "./check-grammar.ts";
import { clientGrammar } from "./client-grammar.ts";
import { asInvalidRequest, refuseGaps, refuseInputGrammar } from "./constraint-refusal.ts";
import type { AnswerCheckPlan, ConstraintPlan, PlannedGrammar } from "./constraint-plan.ts";
import type { AnswerReading } from "./prepared-request.ts";

/** How a request's answer is held to what was asked. */
export interface Constraint {
  readonly plan: ConstraintPlan;
  /** What the grammar cannot enforce; it is checked when the answer is complete. */
  readonly check?: AnswerCheckPlan;
  readonly warnings: readonly string[];
}

/** What of a model matters to constraints. */
export interface ConstrainedModel {
  /** Its template writes thoughts, so it may open one even if the prompt has not. */
  readonly knowsThoughts: boolean;
  /** Calls that it makes by itself are held to their tools' schemas, also without `strict`, as far as a grammar can hold them. */
  readonly holdsCalls: boolean;
}

/**
 * The constraint on a request's answer; undefined: there is none.
 *
 * @throws {FailureError} 400, with the path, for what no grammar can be made of, and under `strict` for what a grammar cannot hold.
 */
export function constraintOf(
  request: AskedOfModel,
  reading: AnswerReading,
  model: ConstrainedModel,
): Constraint | undefined {
  const place = placeOf(reading, model.knowsThoughts);
  const tools = reading.callsAllowed ? (reading.tools ?? []) : [];
  const output = request.output?.type === "text" ? undefined : request.output;
  const schema = output && schemaOf(output);
  if (tools.length > 0 && isForced(request)) return calls(request, reading, callable(request, tools), place);
  if (tools.length > 0 && output && schema)
    return calls(request, reading, tools, place, { answer: { ...schema, output } });
  if (output) return answer(output, reading.format, place);
  const isBound = tools.some((tool) => tool.strict || tool.inputGrammar) || request.parallelToolCalls === false;
  if (tools.length === 0) return undefined;
  if (isToldByWhole(reading.format)) {
    // Where only the whole text tells a call, a grammar binds every answer: not unless that is asked for.
    return isBound ? calls(request, reading, tools, place, { loose: new Set(tools) }) : undefined;
  }
  if (!model.holdsCalls)
    return isBound ? calls(request, reading, tools, "with-call", { loose: new Set(tools) }) : undefined;
  return heldCalls(request, reading, tools, isBound);
}

/**
 * Calls that the model makes by itself. The arguments of tools without `strict` are held where a grammar can be made for them, and that
 * is not told: nobody asked for it. `isBound`: something else of the calls was asked for.
 */
function heldCalls(
  request: AskedOfModel,
  reading: AnswerReading,
  tools: readonly Tool[],
  isBound: boolean,
): Constraint | undefined {
  const attempt = (some: readonly Tool[], loose: readonly Tool[]): Constraint | undefined => {
    try {
      const made = calls(request, reading, some, "with-call", { loose: new Set(loose) });
      return made.plan.grammar.gbnf.length <= largestUnasked ? made : undefined;
    } catch (error) {
      if (error instanceof FailureError) return undefined;
      throw error;
    }
  };
  const unasked = tools.filter(isLoose);
  // The input of a custom tool is free text, whatever the model puts around it.
  if (unasked.length === 0 && !isBound) return undefined;
  let made = attempt(tools, []);
  if (made === undefined) {
    const unholdable = unasked.filter((tool) => attempt([tool], []) === undefined);
    if (unholdable.length > 0 && (isBound || unholdable.length < tools.length)) made = attempt(tools, unholdable);
  }
  if (isBound) return made ?? calls(request, reading, tools, "with-call", { loose: new Set(unasked) });
  return made && { ...made, plan: { ...made.plan, optional: true } };
}

/** Of a grammar that nobody asked for, in characters: llama.cpp reads so much in some milliseconds, and twelve tools of an agent take 36,000. */
const largestUnasked = 256 * 1024;

function within(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
}

function writesObjects(format: Format): boolean {
  return format.kind === "plain" && format.calls[0]?.form === "object";
}

function isLoose(tool: Tool): boolean {
  return tool.strict !== true && tool.kind !== "custom";
}

/** Where the answer's visible part begins, or a call: what stands in front of it, and when a grammar begins to bind. */
type Place = "end-of-thought" | "thought" | "start" | "with-call";

const begins: Readonly<Record<Place, ConstraintPlan["begins"]>> = {
  "end-of-thought": "after-reasoning",
  thought: "at-once",
  start: "at-once",
  "with-call": "with-call",
};

function placeOf({ format, prefix, thinking }: AnswerReading, knowsThoughts: boolean): Place {
  if (format.kind === "routed") return thinking === false ? "start" : "thought";
  const { reasoning } = format;
  if (reasoning === undefined) return "start";
  if (startOf(reasoning, { prefix }).place === "inside") return "end-of-thought";
  const closed = reasoning.close.some((close) => prefix.includes(close));
  return knowsThoughts && thinking !== false && !closed ? "thought" : "start";
}

function isForced({ toolChoice }: AskedOfModel): boolean {
  return (
    toolChoice?.type === "required" ||
    toolChoice?.type === "named" ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required")
  );
}

function callable({ toolChoice }: AskedOfModel, tools: readonly Tool[]): readonly Tool[] {
  return toolChoice?.type === "named" ? tools.filter((tool) => tool.name === toolChoice.name) : tools;
}

function calls(
  request: AskedOfModel,
  { format, prefix }: AnswerReading,
  tools: readonly Tool[],
  place: Place,
  options: {
    /** Tools without `strict` whose arguments may be any object. */
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
      isFree: (tool) => isLoose(tool) && loose?.has(tool) !== false,
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
  // Of what nobody asked for, nothing is checked or told.
  const asked = loose ? tools.filter((tool) => !isLoose(tool) || loose.has(tool)) : tools;
  const told = widened.filter(({ path }) => asked.some((tool) => within(path, paths[tools.indexOf(tool)] ?? "")));
  return {
    plan: {
      grammar: plan,
      begins: begins[place],
      format,
      ...(writesObjects(format) && { json: true }),
    },
    ...(!exact && asked.length > 0 && { check: { tools: asked, ...output } }),
    warnings: warningsOf(answer ? widened : told),
  };
}

/** A custom tool's grammar that is malformed or unsupported is reported at its own path, not as an error of a schema. */
function checkInputGrammars(tools: readonly Tool[], paths: readonly string[]): void {
  tools.forEach(({ inputGrammar }, i) => {
    if (inputGrammar === undefined) return;
    const { syntax, definition } = inputGrammar;
    const make = (): unknown => (syntax === "regex" ? regexExpression(definition, "whole") : larkToGbnf(definition));
    asInvalidRequest(make, `${paths[i]}.definition`);
  });
}

function parametersPath({ tools = [], prompt }: AskedOfModel, tool: Tool): string {
  if (tool.path !== undefined) return tool.path;
  const index = tools.indexOf(tool);
  if (tool.kind === "custom") return `tools[${index}].custom.format.grammar`;
  const legacy = prompt.kind === "chat" && prompt.legacyFunctions === true;
  return legacy ? `functions[${index}].parameters` : `tools[${index}].function.parameters`;
}

function answer(output: OutputConstraint, format: Format, place: Place): Constraint {
  if (output.type === "grammar") {
    const grammar = clientGrammar(output.gbnf, output.path);
    return { plan: { grammar, begins: begins[place], format }, warnings: [] };
  }
  const make = (): CallGrammar => {
    const held: { widened: readonly Gap[]; exact: boolean } = { widened: [], exact: true };
    const build = (grammar: Grammar): Expression => {
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

/** Our grammars may hold a hundred thousand values. */
const elements = 4_000_000;

/** Makes a grammar and checks it. `path`: where in the request that is which it is made of. Throws FailureError, 400. */
function planned(make: () => CallGrammar, path: string): Omit<CallGrammar, "gbnf"> & { readonly plan: PlannedGrammar } {
  return asInvalidRequest(() => {
    const { gbnf, ...rest } = make();
    checkGrammar(gbnf, elements);
    return { ...rest, plan: { type: "ours", path, gbnf } };
  }, path);
}

function front(place: Place): Pick<CallGrammarOptions, "front"> {
  return place === "thought" || place === "end-of-thought" ? { front: place } : {};
}

/** The schema of an answer in JSON; undefined where the answer is something else. */
function schemaOf(output: OutputConstraint): NonNullable<CallGrammarOptions["orAnswer"]> | undefined {
  if (output.type === "json-schema") return { schema: output.schema, path: output.path };
  return output.type === "json-object" ? { schema: { type: "object" }, path: "response_format" } : undefined;
}

function refuseOutputGaps(widened: readonly Gap[], output: OutputConstraint): void {
  if (output.type !== "json-schema" || !output.strict) return;
  refuseGaps(widened, output.path, `response_format '${output.name}'`, "invalid_json_schema");
}

function warningsOf(widened: readonly Gap[]): string[] {
  return widened.map(
    ({ path, keyword }) => `'${keyword}' at ${path} is not enforced by the grammar; the answer is checked.`,
  );
}
