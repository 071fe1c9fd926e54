import { expectationsOf } from "../expectations.ts";
import { atName, bodyChoices, isAnswer, isChat, messageOf, objectOf } from "../place.ts";
import { type Answer, type AnswerChoice, requestRules } from "../request-rules.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Json } from "../view.ts";
import { type Rules, whenAll } from "../rule.ts";

/** A whole answer of chat or completions. */
function answerOf(view: BodyView): Answer {
  const { usage } = objectOf(view);
  const tokens = isObject(usage) ? usage.completion_tokens : undefined;
  return {
    exchange: view.exchange,
    expectations: expectationsOf(view.exchange.request.body),
    choices: bodyChoices(view).map((choice) => choiceOf(view, choice)),
    tokens: typeof tokens === "number" ? tokens : undefined,
    atTokens: (found) => atName(view, "completion_tokens", found),
  };
}

function choiceOf(view: BodyView, choice: Json): AnswerChoice {
  const { content = choice.text, tool_calls: calls } = messageOf(choice);
  const { finish_reason: finish } = choice;
  const at = (found: string) => atName(view, "content", found);
  const texts = typeof content === "string" ? [content] : [];
  return {
    texts: texts.map((text) => ({ text, at, atEnd: at })),
    json: texts,
    calls: (Array.isArray(calls) ? calls.filter(isObject) : []).map((call) => {
      const called = isObject(call.function) ? call.function : call.custom;
      const name = isObject(called) ? called.name : undefined;
      return { name, at: (found) => atName(view, "tool_calls", found) };
    }),
    isWhole: typeof finish === "string" && finish !== "length" && finish !== "content_filter",
    isCut: finish === "length",
    atEnd: (found) => atName(view, "finish_reason", found),
  };
}

/** Rules about a whole answer and its request. */
export const bodyRequestRules: Rules<BodyView> = {
  ...whenAll(isAnswer, requestRules(answerOf, { stop: "body/stop", limit: "body/max-tokens" })),
  ...whenAll(
    isChat,
    requestRules(answerOf, {
      required: "body/required",
      named: "body/named",
      noTools: "body/no-tools",
      parallel: "body/parallel",
      knownTool: "body/known-tool",
      json: "body/json-text",
      reasoningInText: "body/reasoning-in-content",
      callInText: "body/call-in-content",
      specialToken: "body/special-token",
    }),
  ),
};
