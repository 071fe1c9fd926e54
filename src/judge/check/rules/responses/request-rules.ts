import { createResponse, defaultEcho } from "../../../../wire/apis/responses/request-schema.ts";
import { bodyDemandsJson } from "../../../../wire/apis/tolerant/json-answer.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { callIn, notOnlyJson, reasoningTagIn, specialTokenIn, textOfTokens, tokenViolation } from "../violations.ts";
import { shown } from "../place.ts";
import type { Violation } from "../rule.ts";
import type { Json } from "../view.ts";
import {
  clientCalls,
  isCompleted,
  type ResponseRule,
  responseRuleList,
  responseText,
  type ResponseView,
  spokenParts,
} from "./response-view.ts";

/**
 * What a request expects of its response; nothing if the request is not known. A request that a server may refuse (a required call without
 * tools) expects nothing: other rules judge whether it was refused.
 */
interface ResponseExpectations {
  /** The one tool that must be called. */
  readonly named: string | undefined;
  /** Some tool must be called. */
  readonly forced: boolean;
  /** No tool of the client may be called. */
  readonly silent: boolean;
  /** At most one call. */
  readonly single: boolean;
  /** The text must be JSON. */
  readonly json: boolean;
  /** The maximum number of output tokens, including reasoning. */
  readonly limit: number | undefined;
  readonly logprobs: boolean;
  /** Reasoning items have `encrypted_content`. */
  readonly encrypted: boolean;
  /** The tools that may be called, by name, in a namespace as `NAMESPACE NAME`; undefined if they are not known. */
  readonly tools: ReadonlySet<string> | undefined;
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

const misunderstood = "requests are misunderstood";
const lost = "text is lost or wrong";
const probabilities = "log probabilities are wrong";

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

/** Rules about what a request expects of its response. Source: specification, `CreateResponse`. */
export const responseRequestRules: readonly ResponseRule[] = responseRuleList([
  {
    id: "responses/required",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice required, or a named tool, there is a call.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    shown: (view) => isCompleted(view) && expectationsOf(view).forced,
    *judge(view) {
      if (clientCalls(view).length === 0) yield view.at("output", "no call");
    },
  },
  {
    id: "responses/named",
    severity: "error",
    concern: misunderstood,
    says: "With a named tool, only that tool is called.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    shown: (view) => expectationsOf(view).named !== undefined,
    *judge(view) {
      for (const call of clientCalls(view))
        if (toolName(call) !== expectationsOf(view).named) yield view.at("name", `a call of ${shown(toolName(call))}`);
    },
  },
  {
    id: "responses/no-tools",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice none, or without tools, there is no call.",
    source: "specification: tool_choice",
    breaks: ["agents that want an answer in words"],
    shown: (view) => expectationsOf(view).silent,
    *judge(view) {
      for (const call of clientCalls(view)) yield view.at("name", `a call of ${shown(toolName(call))}`);
    },
  },
  {
    id: "responses/parallel",
    severity: "error",
    concern: misunderstood,
    says: "With parallel_tool_calls false there is at most one call.",
    source: "specification: parallel_tool_calls",
    breaks: ["agents whose tools must run one after the other"],
    shown: (view) => expectationsOf(view).single,
    *judge(view) {
      if (clientCalls(view).length > 1) yield view.at("output", `${clientCalls(view).length} calls`);
    },
  },
  {
    id: "responses/known-tool",
    severity: "error",
    concern: "tool calls break",
    says: "Only tools that the request declared (and allowed) are called; one in a namespace is called with it.",
    source: "specification: tools, FunctionToolCall.namespace; source code of Codex CLI",
    breaks: ["every agent (there is nothing to run)", "Codex (tools of MCP servers)"],
    shown: (view) => expectationsOf(view).tools !== undefined && clientCalls(view).length > 0,
    *judge(view) {
      for (const call of clientCalls(view))
        if (expectationsOf(view).tools?.has(toolName(call)) === false)
          yield view.at("name", `a call of ${shown(toolName(call))}`);
    },
  },
  {
    id: "responses/json-text",
    severity: "error",
    concern: misunderstood,
    says: "With text.format json_object or json_schema the text is one JSON value.",
    source: "specification: text.format",
    breaks: ["structured extraction (JSON.parse throws)"],
    shown: (view) => isCompleted(view) && expectationsOf(view).json && hasText(view),
    *judge(view) {
      const texts = spokenParts(view).flatMap(({ text }) => (typeof text === "string" && text !== "" ? [text] : []));
      for (const text of texts) for (const found of notOnlyJson(text)) yield view.at("text", found);
    },
  },
  {
    id: "responses/max-output-tokens",
    severity: "error",
    concern: misunderstood,
    says: "The answer has no more tokens than max_output_tokens allows, reasoning included.",
    source: "specification: max_output_tokens",
    breaks: ["callers that budget"],
    shown: (view) => expectationsOf(view).limit !== undefined && isObject(view.response.usage),
    *judge(view) {
      const { usage } = view.response;
      const used = isObject(usage) ? usage.output_tokens : 0;
      const { limit = Infinity } = expectationsOf(view);
      if (typeof used === "number" && used > limit) yield view.at("output_tokens", `${used} tokens, ${limit} allowed`);
    },
  },
  {
    id: "responses/logprobs",
    severity: "error",
    concern: probabilities,
    says: "With include message.output_text.logprobs a text has the log probabilities of its tokens; without it has none.",
    source: "specification: include; recordings with log probabilities",
    breaks: ["evaluation tools", "clients that read them"],
    shown: (view) => view.exchange.request.body !== undefined && isCompleted(view) && hasText(view),
    *judge(view) {
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
  },
  {
    id: "responses/logprob-tokens",
    severity: "error",
    concern: probabilities,
    says: "A token has its text, a log probability of 0 or less, its bytes, and top_logprobs.",
    source: "specification: LogProb",
    breaks: ["evaluation tools", "typed clients (Go, Rust, Java, C#)"],
    shown: (view) => spokenParts(view).some((part) => tokensOf(part).length > 0),
    judge: tokenViolations,
  },
  {
    id: "responses/sealed",
    severity: "warning",
    concern: misunderstood,
    says: "With include reasoning.encrypted_content every reasoning item has it.",
    source:
      "specification: include; recordings 642 of 642; source code of AI SDK: with store: false reasoning without it is not sent back",
    breaks: ["AI SDK with store: false (the model forgets its reasoning between two calls)"],
    shown: (view) => expectationsOf(view).encrypted && view.output.some(({ type }) => type === "reasoning"),
    *judge(view) {
      for (const { type, encrypted_content: content } of view.output)
        if (type === "reasoning" && !(typeof content === "string" && content !== ""))
          yield view.at("output", `encrypted_content is ${shown(content)}`);
    },
  },
  {
    id: "responses/reasoning-in-text",
    severity: "warning",
    concern: lost,
    says: "A text does not begin with reasoning in <think> or similar tags.",
    source: "LM Studio #1569, opencode #43770",
    breaks: ["clients that show the text", "structured output (the JSON begins with reasoning)"],
    shown: hasText,
    *judge(view) {
      const reasoning = reasoningTagIn(responseText(view));
      if (reasoning !== undefined) yield view.at("text", `text that begins ${shown(reasoning)}`);
    },
  },
  {
    id: "responses/call-in-text",
    severity: "warning",
    concern: "tool calls break",
    says: "A text does not contain tool calls in the model's own markup.",
    source: "LM Studio #2115, oMLX #2565",
    breaks: ["every agent: it sees text and no call"],
    shown: (view) =>
      view.exchange.request.body !== undefined && !expectationsOf(view).silent && isCompleted(view) && hasText(view),
    *judge(view) {
      const markup = callIn(responseText(view));
      if (markup !== undefined) yield view.at("text", `${markup} in the text`);
    },
  },
  {
    id: "responses/special-token",
    severity: "warning",
    concern: lost,
    says: "A text does not contain special tokens of the model.",
    source: "vLLM #2538, mlx-examples #489",
    breaks: ["users see <|im_end|>"],
    shown: hasText,
    *judge(view) {
      const special = specialTokenIn(responseText(view));
      if (special !== undefined) yield view.at("text", `text that ends with ${special}`);
    },
  },
]);

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
export const echoRules: readonly ResponseRule[] = responseRuleList([
  {
    id: "responses/echo",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "The response repeats the parameters of its request: sampling, limits, tool_choice, the names of its tools, text.format, reasoning.effort, metadata, instructions.",
    source:
      "specification: Response; recordings 642 of 642; source code of dd-trace-py: openai_get_metadata_from_response reads the settings there",
    breaks: ["dd-trace-py (a trace shows other settings than those that were sent)"],
    shown: (view) => view.exchange.request.body !== undefined,
    *judge(view) {
      for (const [name, sent, echo] of compared(view))
        if (echo !== undefined && JSON.stringify(echo) !== JSON.stringify(sent))
          yield view.at(name, `${name} is ${shown(echo)}, ${shown(sent)} was sent`);
    },
  },
  {
    id: "responses/echo-members",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The response has every member that repeats a parameter, those that the request left out with their defaults.",
    source: "recordings 642 of 642",
    breaks: [],
    *judge(view) {
      const absent = repeated.filter((name) => !(name in view.response));
      if (absent.length > 0) yield view.at("object", `no ${absent.join(", ")}`);
    },
  },
]);

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
