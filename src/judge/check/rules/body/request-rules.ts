import { expectationsOf } from "../expectations.ts";
import { callIn, notOnlyJson, reasoningTagIn, specialTokenIn } from "../violations.ts";
import { atName, bodyChoices, isAnswer, isChat, messageOf, objectOf, shown } from "../place.ts";
import type { BodyRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Json } from "../view.ts";

const expectations = (view: BodyView) => expectationsOf(view.exchange.request.body);

function textOf(choice: Json): string {
  const text = messageOf(choice).content ?? choice.text;
  return typeof text === "string" ? text : "";
}

function namesOf(choice: Json): readonly unknown[] {
  const calls = messageOf(choice).tool_calls;
  return (Array.isArray(calls) ? calls.filter(isObject) : []).map((call) => {
    const called = isObject(call.function) ? call.function : call.custom;
    return isObject(called) ? called.name : undefined;
  });
}

/** Returns whether neither the token limit nor a filter ended a choice. */
function isWhole(choice: Json): boolean {
  return choice.finish_reason === "stop" || choice.finish_reason === "tool_calls";
}

const requestRule = { severity: "error", concern: "requests are misunderstood", judges: "body" } as const;

const contentRule = { severity: "warning", concern: "text is lost or wrong", judges: "body", shown: isChat } as const;

/** Rules about whether an answer that is not streamed follows its request. Those of streams are in ../stream/. */
export const bodyRequestRules: readonly BodyRule[] = [
  {
    ...requestRule,
    id: "body/stop",
    says: "The text does not contain a stop string of the request.",
    source: "specification: 'The returned text will not contain the stop sequence'",
    breaks: ["agents that parse text up to a mark"],
    shown: (view) => isAnswer(view) && expectations(view).stops.length > 0,
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const stop = expectations(view).stops.find((one) => textOf(choice).includes(one));
        if (stop !== undefined) yield atName(view, "finish_reason", `the stop string ${shown(stop)} in the text`);
      }
    },
  },
  {
    ...requestRule,
    id: "body/max-tokens",
    says: "No choice has more tokens than max_completion_tokens (max_tokens) allows.",
    source: "specification",
    breaks: ["callers that budget"],
    shown: (view) => isAnswer(view) && expectations(view).limit !== undefined && isObject(objectOf(view).usage),
    *judge(view) {
      const { usage } = objectOf(view);
      const used = isObject(usage) ? usage.completion_tokens : 0;
      const allowed = (expectations(view).limit ?? Infinity) * Math.max(1, bodyChoices(view).length);
      if (typeof used === "number" && used > allowed)
        yield atName(view, "completion_tokens", `${used} tokens, ${allowed} allowed`);
    },
  },
  {
    ...requestRule,
    id: "body/required",
    says: "With tool_choice required, or a named tool, there is a call.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    shown: (view) => isChat(view) && expectations(view).forced,
    *judge(view) {
      for (const choice of bodyChoices(view))
        if (isWhole(choice) && namesOf(choice).length === 0) yield atName(view, "finish_reason", "no call");
    },
  },
  {
    ...requestRule,
    id: "body/named",
    says: "With a named tool, only that tool is called.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    shown: (view) => isChat(view) && expectations(view).named !== undefined,
    *judge(view) {
      for (const name of bodyChoices(view).flatMap(namesOf))
        if (name !== expectations(view).named) yield atName(view, "tool_calls", `a call of ${shown(name)}`);
    },
  },
  {
    ...requestRule,
    id: "body/no-tools",
    says: "With tool_choice none, or without tools, there is no call.",
    source: "specification: tool_choice; tt-inference-server #4386",
    breaks: ["agents that want an answer in words"],
    shown: (view) => isChat(view) && expectations(view).silent,
    *judge(view) {
      for (const name of bodyChoices(view).flatMap(namesOf))
        yield atName(view, "tool_calls", `a call of ${shown(name)}`);
    },
  },
  {
    ...requestRule,
    id: "body/parallel",
    says: "With parallel_tool_calls false there is at most one call.",
    source: "specification: parallel_tool_calls",
    breaks: ["agents whose tools must run one after the other"],
    shown: (view) => isChat(view) && expectations(view).single,
    *judge(view) {
      for (const choice of bodyChoices(view))
        if (namesOf(choice).length > 1) yield atName(view, "tool_calls", `${namesOf(choice).length} calls`);
    },
  },
  {
    id: "body/known-tool",
    severity: "error",
    concern: "tool calls break",
    says: "Only tools that the request declared are called.",
    source: "specification: tools",
    breaks: ["every agent (there is nothing to run)"],
    judges: "body",
    shown: (view) =>
      isChat(view) && expectations(view).tools !== undefined && bodyChoices(view).flatMap(namesOf).length > 0,
    *judge(view) {
      for (const name of bodyChoices(view).flatMap(namesOf))
        if (expectations(view).tools?.has(name) === false) yield atName(view, "tool_calls", `a call of ${shown(name)}`);
    },
  },
  {
    ...requestRule,
    id: "body/json-text",
    says: "With response_format json_object or json_schema the text is one JSON value.",
    source: "specification: response_format",
    breaks: ["structured extraction (JSON.parse throws)"],
    shown: (view) => isChat(view) && expectations(view).json && bodyChoices(view).some(isWhole),
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const hasText = namesOf(choice).length === 0 && typeof messageOf(choice).content === "string";
        if (!isWhole(choice) || !hasText) continue;
        for (const found of notOnlyJson(textOf(choice))) yield atName(view, "content", found);
      }
    },
  },
  {
    ...contentRule,
    id: "body/reasoning-in-content",
    says: "content does not begin with reasoning in <think> or similar tags.",
    source: "LM Studio #1569, opencode #43770",
    breaks: ["clients that show content", "structured output (the JSON begins with reasoning)"],
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const opening = reasoningTagIn(textOf(choice));
        if (opening !== undefined) yield atName(view, "content", `content that begins ${shown(opening)}`);
      }
    },
  },
  {
    id: "body/call-in-content",
    severity: "warning",
    concern: "tool calls break",
    says: "content does not contain tool calls in the model's own markup.",
    source: "LM Studio #2115, oMLX #2565",
    breaks: ["every agent: it sees text and no call"],
    judges: "body",
    shown: (view) => isChat(view) && view.exchange.request.body !== undefined && !expectations(view).silent,
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        // If the token limit ends a choice within the name of a call, the server can only send it as text.
        const markup = choice.finish_reason === "length" ? undefined : callIn(textOf(choice));
        if (markup !== undefined) yield atName(view, "content", `${markup} in content`);
      }
    },
  },
  {
    ...contentRule,
    id: "body/special-token",
    says: "content does not contain special tokens of the model.",
    source: "vLLM #2538, mlx-examples #489",
    breaks: ["users see <|im_end|>"],
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const special = specialTokenIn(textOf(choice));
        if (special !== undefined) yield atName(view, "content", `content that ends with ${special}`);
      }
    },
  },
];
