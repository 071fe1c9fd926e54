import { isObject } from "../../../core/json.ts";
import { textOfTokens, tokenOffence } from "../logprob-tokens.ts";
import { callIn, specialTokenIn, thoughtIn } from "../markup.ts";
import { shown } from "../place.ts";
import type { Offence } from "../rule.ts";
import { type Json, parsedJson } from "../view.ts";
import { nameOf, type ResponseDemands, responseDemands } from "./response-demands.ts";
import { callsOf, isWhole, type ResponseView, spokenParts, textOf } from "./response-view.ts";
import type { ResponseRule } from "./response-rule.ts";

const misunderstood = "requests are misunderstood";
const lost = "text is lost or wrong";
const probabilities = "log probabilities are wrong";

function demands({ exchange }: ResponseView): ResponseDemands {
  return responseDemands(exchange.request.body);
}

function hasText(view: ResponseView): boolean {
  return textOf(view) !== "";
}

function tokensOf({ logprobs }: Json): readonly Json[] {
  return Array.isArray(logprobs) ? logprobs.filter(isObject) : [];
}

/** What rounding leaves of a probability of 1: OpenAI has sent 0.000023. */
const roundedOff = 0.001;

function* tokenOffences(view: ResponseView): Generator<Offence> {
  for (const token of spokenParts(view).flatMap(tokensOf)) {
    for (const kind of ["shape", "bytes", "order"] as const) {
      const found = tokenOffence(token, kind);
      if (found !== undefined) yield view.at("logprobs", found);
    }
    const { logprob } = token;
    if (!(typeof logprob === "number" && logprob <= roundedOff)) yield view.at("logprob", `logprob ${shown(logprob)}`);
  }
}

/** Whether a response does what its request asked. Source: specification, `CreateResponse`. */
export const obedienceRules: readonly ResponseRule[] = [
  {
    id: "responses/required",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice required, or a named tool, there is a call.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    judges: "response",
    shown: (view) => isWhole(view) && demands(view).forced,
    *judge(view) {
      if (callsOf(view).length === 0) yield view.at("output", "no call");
    },
  },
  {
    id: "responses/named",
    severity: "error",
    concern: misunderstood,
    says: "With a named tool, only that tool is called.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    judges: "response",
    shown: (view) => demands(view).named !== undefined,
    *judge(view) {
      for (const call of callsOf(view))
        if (nameOf(call) !== demands(view).named) yield view.at("name", `a call of ${shown(nameOf(call))}`);
    },
  },
  {
    id: "responses/no-tools",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice none, or without tools, there is no call.",
    source: "specification: tool_choice",
    breaks: ["agents that want an answer in words"],
    judges: "response",
    shown: (view) => demands(view).silent,
    *judge(view) {
      for (const call of callsOf(view)) yield view.at("name", `a call of ${shown(nameOf(call))}`);
    },
  },
  {
    id: "responses/parallel",
    severity: "error",
    concern: misunderstood,
    says: "With parallel_tool_calls false there is at most one call.",
    source: "specification: parallel_tool_calls",
    breaks: ["agents whose tools must run one after the other"],
    judges: "response",
    shown: (view) => demands(view).single,
    *judge(view) {
      if (callsOf(view).length > 1) yield view.at("output", `${callsOf(view).length} calls`);
    },
  },
  {
    id: "responses/known-tool",
    severity: "error",
    concern: "tool calls break",
    says: "Only tools that the request declared (and allowed) are called; one in a namespace is called with it.",
    source: "specification: tools, FunctionToolCall.namespace; source code of Codex CLI",
    breaks: ["every agent (there is nothing to run)", "Codex (tools of MCP servers)"],
    judges: "response",
    shown: (view) => demands(view).tools !== undefined && callsOf(view).length > 0,
    *judge(view) {
      for (const call of callsOf(view))
        if (demands(view).tools?.has(nameOf(call)) === false) yield view.at("name", `a call of ${shown(nameOf(call))}`);
    },
  },
  {
    id: "responses/json-text",
    severity: "error",
    concern: misunderstood,
    says: "With text.format json_object or json_schema the text is one JSON value.",
    source: "specification: text.format",
    breaks: ["structured extraction (JSON.parse throws)"],
    judges: "response",
    shown: (view) => isWhole(view) && demands(view).json && hasText(view),
    *judge(view) {
      const texts = spokenParts(view).flatMap(({ text }) => (typeof text === "string" && text !== "" ? [text] : []));
      for (const text of texts)
        if (parsedJson(text) === undefined) yield view.at("text", `text that is not JSON: ${shown(text.slice(0, 40))}`);
    },
  },
  {
    id: "responses/max-output-tokens",
    severity: "error",
    concern: misunderstood,
    says: "The answer has no more tokens than max_output_tokens allows, thoughts included.",
    source: "specification: max_output_tokens",
    breaks: ["callers that budget"],
    judges: "response",
    shown: (view) => demands(view).limit !== undefined && isObject(view.response.usage),
    *judge(view) {
      const { usage } = view.response;
      const used = isObject(usage) ? usage.output_tokens : 0;
      const { limit = Infinity } = demands(view);
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
    judges: "response",
    shown: (view) => view.exchange.request.body !== undefined && isWhole(view) && hasText(view),
    *judge(view) {
      for (const part of spokenParts(view)) {
        if (typeof part.text !== "string" || part.text === "") continue;
        const list = tokensOf(part);
        if (demands(view).logprobs && list.length === 0) yield view.at("text", "a text without logprobs");
        else if (!demands(view).logprobs && list.length > 0)
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
    judges: "response",
    shown: (view) => spokenParts(view).some((part) => tokensOf(part).length > 0),
    judge: tokenOffences,
  },
  {
    id: "responses/sealed",
    severity: "warning",
    concern: misunderstood,
    says: "With include reasoning.encrypted_content every reasoning item has it.",
    source:
      "specification: include; recordings 642 of 642; source code of AI SDK: with store: false a thought without it is not sent back",
    breaks: ["AI SDK with store: false (the model forgets its thoughts between two calls)"],
    judges: "response",
    shown: (view) => demands(view).sealed && view.output.some(({ type }) => type === "reasoning"),
    *judge(view) {
      for (const { type, encrypted_content: sealed } of view.output)
        if (type === "reasoning" && !(typeof sealed === "string" && sealed !== ""))
          yield view.at("output", `encrypted_content is ${shown(sealed)}`);
    },
  },
  {
    id: "responses/reasoning-in-text",
    severity: "warning",
    concern: lost,
    says: "A text does not begin with reasoning in <think> or similar tags.",
    source: "LM Studio #1569, opencode #43770",
    breaks: ["clients that show the text", "structured output (the JSON begins with a thought)"],
    judges: "response",
    shown: hasText,
    *judge(view) {
      const thought = thoughtIn(textOf(view));
      if (thought !== undefined) yield view.at("text", `text that begins ${shown(thought)}`);
    },
  },
  {
    id: "responses/call-in-text",
    severity: "warning",
    concern: "tool calls break",
    says: "A text does not contain tool calls in the model's own markup.",
    source: "LM Studio #2115, oMLX #2565",
    breaks: ["every agent: it sees text and no call"],
    judges: "response",
    shown: (view) =>
      view.exchange.request.body !== undefined && !demands(view).silent && isWhole(view) && hasText(view),
    *judge(view) {
      const markup = callIn(textOf(view));
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
    judges: "response",
    shown: hasText,
    *judge(view) {
      const special = specialTokenIn(textOf(view));
      if (special !== undefined) yield view.at("text", `text that ends with ${special}`);
    },
  },
];
