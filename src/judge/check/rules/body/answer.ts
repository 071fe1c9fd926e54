import { chatCompletion, chatFinishReason, chatMessage } from "../../../../wire/apis/chat/schema.ts";
import { completion } from "../../../../wire/apis/completions/schema.ts";
import { memberNames } from "../../../../wire/apis/members.ts";
import { requestedChoices } from "../expectations.ts";
import { atName, bodyChoices, isAnswer, isChat, messageOf, notJson, objectOf, shown } from "../place.ts";
import { isTokenLists, textOfTokens, tokenListsViolation, tokenViolation, usageViolation } from "../violations.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Json } from "../view.ts";
import { type Rules, type Violation, notShown, whenAll } from "../rule.ts";

function* member(view: BodyView, name: string, isRight: (value: unknown) => boolean): Generator<Violation> {
  const value = objectOf(view)[name];
  if (!isRight(value)) yield atName(view, name, `${name} is ${shown(value)}`);
}

function* counted(view: BodyView, kind: "type" | "sum" | "details"): Generator<Violation> {
  const { usage } = objectOf(view);
  const found = isObject(usage) ? usageViolation(usage, kind) : undefined;
  if (found !== undefined) yield atName(view, "usage", found);
}

const hasUsage = (view: BodyView) => isAnswer(view) && isObject(objectOf(view).usage);
const finishReasons: ReadonlySet<unknown> = new Set(chatFinishReason.options);

/** Rules about an answer that is not streamed. Source: specification, `CreateChatCompletionResponse` and `CreateCompletionResponse`. */
export const answerRules: Rules<BodyView> = {
  // The specification gives a deletion no body.
  *"body/json"(view) {
    if (
      !(
        view.exchange.response.status === 200 &&
        !["other", "response-deletion", "conversation"].includes(view.exchange.endpoint)
      )
    )
      return notShown;
    if (!isObject(view.value)) yield notJson(view.exchange.response.body);
  },
  ...whenAll(isAnswer, {
    "body/id-prefix": (view) =>
      member(
        view,
        "id",
        (value) =>
          typeof value !== "string" || value.startsWith(view.exchange.endpoint === "chat" ? "chatcmpl-" : "cmpl-"),
      ),
    "body/choices": (view) =>
      member(view, "choices", (value) => Array.isArray(value) && value.length > 0 && value.every(isObject)),
    *"body/index"(view) {
      for (const [position, choice] of bodyChoices(view).entries())
        if (choice.index !== position) yield atName(view, "index", `index ${shown(choice.index)} at place ${position}`);
    },
    *"body/finish"(view) {
      for (const choice of bodyChoices(view))
        if (!finishReasons.has(choice.finish_reason))
          yield atName(view, "finish_reason", `finish_reason ${shown(choice.finish_reason)}`);
    },
    "body/usage": (view) => member(view, "usage", isObject),
    *"body/known-members"(view) {
      for (const name of Object.keys(objectOf(view)))
        if (!knownMembers.has(name)) yield atName(view, name, `the member ${name}`);
      for (const choice of bodyChoices(view)) {
        for (const name of Object.keys(messageOf(choice)))
          if (!knownInMessages.has(name)) yield atName(view, name, `the member ${name}`);
      }
    },
  }),
  *"body/n"(view) {
    if (!isAnswer(view) || view.exchange.request.body === undefined) return notShown;
    const count = requestedChoices(view.exchange.request.body ?? {});
    if (bodyChoices(view).length !== count)
      yield atName(view, "choices", `${bodyChoices(view).length} choices instead of ${count}`);
  },
  ...whenAll(hasUsage, {
    "body/usage-type": (view) => counted(view, "type"),
    "body/usage-sum": (view) => counted(view, "sum"),
    "body/usage-details": (view) => counted(view, "details"),
  }),
  *"body/logprobs"(view) {
    if (!isChat(view) || view.exchange.request.body?.logprobs !== true) return notShown;
    for (const choice of bodyChoices(view)) {
      const list = isObject(choice.logprobs) ? (choice.logprobs.content ?? choice.logprobs.refusal) : undefined;
      if (!Array.isArray(list)) {
        if (typeof messageOf(choice).content === "string" && messageOf(choice).content !== "")
          yield atName(view, "logprobs", `logprobs is ${shown(choice.logprobs)}`);
        continue;
      }
      for (const token of list) {
        const found = tokenViolation(token, "shape") ?? tokenViolation(token, "value");
        if (found !== undefined) yield atName(view, "logprobs", found);
      }
    }
  },
  *"body/logprobs-text"(view) {
    if (!isChat(view) || !bodyChoices(view).some((choice) => contentTokens(choice) !== undefined)) return notShown;
    for (const choice of bodyChoices(view)) {
      const list = contentTokens(choice);
      const text = messageOf(choice).content ?? "";
      if (list && textOfTokens(list) !== text) yield atName(view, "logprobs", "the joined tokens are not the text");
    }
  },
  *"body/token-lists"(view) {
    if (!isAnswer(view) || !bodyChoices(view).some(({ logprobs }) => isTokenLists(logprobs))) return notShown;
    for (const { logprobs } of bodyChoices(view)) {
      const found = isTokenLists(logprobs) ? tokenListsViolation(logprobs) : undefined;
      if (found) yield atName(view, found.member, found.found);
    }
  },
};

const knownMembers: ReadonlySet<string> = new Set([...memberNames(chatCompletion), ...memberNames(completion)]);
const knownInMessages: ReadonlySet<string> = new Set(memberNames(chatMessage));

/** Returns the tokens of a choice's text, or `undefined` if it has no list of them. */
function contentTokens(choice: Json): readonly Json[] | undefined {
  const list = isObject(choice.logprobs) ? choice.logprobs.content : undefined;
  return Array.isArray(list) ? list.filter(isObject) : undefined;
}
