import { createResponse, defaultEcho } from "../../../../wire/apis/responses/request-schema.ts";
import { bodyDemandsJson } from "../../../../wire/apis/tolerant/json-answer.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { textOfTokens, tokenViolation } from "../violations.ts";
import type { Expectations } from "../expectations.ts";
import { shown } from "../place.ts";
import { type Answer, requestRules } from "../request-rules.ts";
import type { Json } from "../view.ts";
import { clientCalls, isCompleted, responseText, type ResponseView, spokenParts } from "./response-view.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

/**
 * What a request expects of its response. The limit includes reasoning; a tool in a namespace is named `NAMESPACE NAME`. `tools` is
 * `undefined`, too, if tools may be loaded that the request does not name.
 */
interface ResponseExpectations extends Expectations {
  readonly logprobs: boolean;
  /** Reasoning items have `encrypted_content`. */
  readonly encrypted: boolean;
}

function expectationsOf({ exchange }: ResponseView): ResponseExpectations {
  const { body } = exchange.request;
  const { tool_choice: choice, include, max_output_tokens: limit } = body ?? {};
  const declared = body && clientTools(body);
  const list = body && Array.isArray(body.tools) ? body.tools : [];
  const chosen = isObject(choice) ? choice : {};
  const isNamed = chosen.type === "function" || chosen.type === "custom";
  const named = isNamed && declared?.has(toolName(chosen)) ? toolName(chosen) : undefined;
  const allowed =
    chosen.type === "allowed_tools" && Array.isArray(chosen.tools) ? chosen.tools.filter(isObject) : undefined;
  const allowsHosted = allowed?.some(({ type }) => !isRunByClient(type)) === true;
  const mustCall = choice === "required" || chosen.mode === "required";
  const wanted = Array.isArray(include) ? (include as unknown[]) : [];
  return {
    stops: [],
    named,
    forced:
      named !== undefined || (mustCall && declared !== undefined && declared.size === list.length && list.length > 0),
    silent:
      body !== undefined && (choice === "none" || (list.length === 0 && body.tools !== undefined) || hasNone(body)),
    single: body?.parallel_tool_calls === false,
    json: bodyDemandsJson(body),
    limit: Number.isInteger(limit) && (limit as number) > 0 ? (limit as number) : undefined,
    logprobs: wanted.includes("message.output_text.logprobs"),
    encrypted: wanted.includes("reasoning.encrypted_content"),
    tools: allowed && !allowsHosted ? new Set(allowed.map(toolName)) : declared,
  };
}

/** Whether the response has no tools. They may also be loaded on the way, or belong to a stored prompt. */
function hasNone({ tools, prompt, input }: Json): boolean {
  return tools === undefined && prompt === undefined && !JSON.stringify(input ?? "").includes('"tool_search');
}

function isRunByClient(type: unknown): boolean {
  return type === "function" || type === "custom";
}

/** Returns the name of a tool, with its namespace if it has one. */
function toolName({ namespace, name }: Json): string {
  return typeof namespace === "string" ? `${namespace} ${String(name)}` : String(name);
}

/** Returns `undefined` if tools may be loaded that the request does not name. */
function clientTools({ tools, input }: Json): ReadonlySet<string> | undefined {
  const list = Array.isArray(tools) ? tools.filter(isObject) : [];
  const loads = list.some(({ type }) => type === "tool_search") || JSON.stringify(input ?? "").includes('"tool_search');
  if (loads) return undefined;
  return new Set(
    list.flatMap((tool) => {
      if (isRunByClient(tool.type))
        return [toolName({ name: tool.name ?? (isObject(tool.function) ? tool.function.name : "") })];
      if (tool.type !== "namespace" || !Array.isArray(tool.tools)) return [];
      return tool.tools.filter(isObject).map(({ name }) => toolName({ namespace: tool.name, name }));
    }),
  );
}

function hasText(view: ResponseView): boolean {
  return responseText(view) !== "";
}

function tokensOf({ logprobs }: Json): readonly Json[] {
  return Array.isArray(logprobs) ? logprobs.filter(isObject) : [];
}

/** The largest log probability that rounding may leave: OpenAI has sent 0.000023. */
const roundedOff = 0.001;

function* tokenViolations(view: ResponseView): Generator<Violation> {
  for (const token of spokenParts(view).flatMap(tokensOf)) {
    for (const kind of ["shape", "bytes", "order"] as const) {
      const found = tokenViolation(token, kind);
      if (found !== undefined) yield view.at("logprobs", found);
    }
    const { logprob } = token;
    if (!(typeof logprob === "number" && logprob <= roundedOff)) yield view.at("logprob", `logprob ${shown(logprob)}`);
  }
}

function answerOf(view: ResponseView): Answer {
  const { usage } = view.response;
  const tokens = isObject(usage) ? usage.output_tokens : undefined;
  const texts = spokenParts(view).flatMap(({ text }) => (typeof text === "string" && text !== "" ? [text] : []));
  const at = (found: string) => view.at("text", found);
  return {
    exchange: view.exchange,
    expectations: expectationsOf(view),
    choices: [
      {
        texts: texts.map((text) => ({ text, at, atEnd: at })),
        json: texts,
        calls: clientCalls(view).map((call) => ({ name: toolName(call), at: (found) => view.at("name", found) })),
        isWhole: isCompleted(view),
        isCut: !isCompleted(view),
        atEnd: (found) => view.at("output", found),
      },
    ],
    tokens: typeof tokens === "number" ? tokens : undefined,
    atTokens: (found) => view.at("output_tokens", found),
  };
}

/** Rules about what a request expects of its response. Source: specification, `CreateResponse`. */
export const responseRequestRules: Rules<ResponseView> = {
  ...requestRules(answerOf, {
    required: "responses/required",
    named: "responses/named",
    noTools: "responses/no-tools",
    parallel: "responses/parallel",
    knownTool: "responses/known-tool",
    json: "responses/json-text",
    limit: "responses/max-output-tokens",
    reasoningInText: "responses/reasoning-in-text",
    callInText: "responses/call-in-text",
    specialToken: "responses/special-token",
  }),
  *"responses/logprobs"(view) {
    if (view.exchange.request.body === undefined || !isCompleted(view) || !hasText(view)) return notShown;
    for (const part of spokenParts(view)) {
      if (typeof part.text !== "string" || part.text === "") continue;
      const list = tokensOf(part);
      if (expectationsOf(view).logprobs && list.length === 0) yield view.at("text", "a text without logprobs");
      else if (!expectationsOf(view).logprobs && list.length > 0)
        yield view.at("logprobs", "logprobs that were not asked for");
      else if (list.length > 0 && textOfTokens(list) !== part.text)
        yield view.at("logprobs", `the tokens of another text: ${shown(textOfTokens(list))}`);
    }
  },
  *"responses/logprob-tokens"(view) {
    if (!spokenParts(view).some((part) => tokensOf(part).length > 0)) return notShown;
    return yield* tokenViolations(view);
  },
  *"responses/sealed"(view) {
    if (!expectationsOf(view).encrypted || !view.output.some(({ type }) => type === "reasoning")) return notShown;
    for (const { type, encrypted_content: content } of view.output)
      if (type === "reasoning" && !(typeof content === "string" && content !== ""))
        yield view.at("output", `encrypted_content is ${shown(content)}`);
  },
};

/** Members that are not compared with the request as they are. */
const otherwiseCompared: ReadonlySet<string> = new Set([
  "instructions",
  "metadata",
  "reasoning",
  "service_tier",
  "text",
  "tool_choice",
  "tools",
]);

/** The parameters that a response repeats. Servers without OpenAI's cache need not repeat how long it keeps prompts. */
const repeated = Object.keys(createResponse.shape).filter(
  (name) => name in defaultEcho && name !== "prompt_cache_retention",
);

/** Rules about the members of a response that repeat its request. Source: 920 recorded responses with their requests. */
export const echoRules: Rules<ResponseView> = {
  *"responses/echo"(view) {
    if (view.exchange.request.body === undefined) return notShown;
    for (const [name, sent, echo] of compared(view))
      if (echo !== undefined && JSON.stringify(echo) !== JSON.stringify(sent))
        yield view.at(name, `${name} is ${shown(echo)}, ${shown(sent)} was sent`);
  },
  *"responses/echo-members"(view) {
    const absent = repeated.filter((name) => !(name in view.response));
    if (absent.length > 0) yield view.at("object", `no ${absent.join(", ")}`);
  },
};

/** Returns the parameters that were sent, with what the response repeats of them, or `undefined`. */
function* compared({ exchange, response }: ResponseView): Generator<readonly [string, unknown, unknown]> {
  const body: Json = exchange.request.body ?? {};
  for (const name of repeated)
    if (!otherwiseCompared.has(name) && isSent(body[name])) yield [name, body[name], response[name]];
  if (typeof body.instructions === "string") yield ["instructions", body.instructions, response.instructions];
  if (isObject(body.metadata)) yield ["metadata", sorted(body.metadata), sorted(response.metadata)];
  if (typeof body.tool_choice === "string") yield ["tool_choice", body.tool_choice, response.tool_choice];
  const { text, reasoning, tools } = body;
  const { text: ownText, reasoning: ownReasoning } = response;
  if (isObject(text) && isObject(text.format) && isObject(ownText))
    yield ["text", text.format.type, isObject(ownText.format) ? ownText.format.type : undefined];
  if (isObject(reasoning) && isSent(reasoning.effort) && isObject(ownReasoning))
    yield ["reasoning", reasoning.effort, ownReasoning.effort];
  // If the client searches for tools, the response also repeats those that were found.
  const searches = Array.isArray(tools) && tools.some((tool) => isObject(tool) && tool.type === "tool_search");
  if (Array.isArray(tools) && !searches) yield ["tools", namesIn(tools), namesIn(response.tools)];
}

function isSent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function namesIn(tools: unknown): unknown {
  return Array.isArray(tools)
    ? tools.filter(isObject).map(({ name, type, function: fn }) => name ?? (isObject(fn) ? fn.name : type))
    : undefined;
}

function sorted(value: unknown): unknown {
  return isObject(value) ? Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)) : value;
}
