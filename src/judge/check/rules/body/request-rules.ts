import { expectationsOf } from "../expectations.ts";
import { callIn, notOnlyJson, reasoningTagIn, specialTokenIn } from "../violations.ts";
import { atName, bodyChoices, isAnswer, isChat, messageOf, objectOf, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Json } from "../view.ts";
import { type Rules, notShown } from "../rule.ts";

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

/** Rules about whether an answer that is not streamed follows its request. Those of streams are in ../stream/. */
export const bodyRequestRules: Rules<BodyView> = {
  *"body/stop"(view) {
    if (!isAnswer(view) || expectations(view).stops.length === 0) return notShown;
    for (const choice of bodyChoices(view)) {
      const stop = expectations(view).stops.find((one) => textOf(choice).includes(one));
      if (stop !== undefined) yield atName(view, "finish_reason", `the stop string ${shown(stop)} in the text`);
    }
  },
  *"body/max-tokens"(view) {
    if (!isAnswer(view) || expectations(view).limit === undefined || !isObject(objectOf(view).usage)) return notShown;
    const { usage } = objectOf(view);
    const used = isObject(usage) ? usage.completion_tokens : 0;
    const allowed = (expectations(view).limit ?? Infinity) * Math.max(1, bodyChoices(view).length);
    if (typeof used === "number" && used > allowed)
      yield atName(view, "completion_tokens", `${used} tokens, ${allowed} allowed`);
  },
  *"body/required"(view) {
    if (!isChat(view) || !expectations(view).forced) return notShown;
    for (const choice of bodyChoices(view))
      if (isWhole(choice) && namesOf(choice).length === 0) yield atName(view, "finish_reason", "no call");
  },
  *"body/named"(view) {
    if (!isChat(view) || expectations(view).named === undefined) return notShown;
    for (const name of bodyChoices(view).flatMap(namesOf))
      if (name !== expectations(view).named) yield atName(view, "tool_calls", `a call of ${shown(name)}`);
  },
  *"body/no-tools"(view) {
    if (!isChat(view) || !expectations(view).silent) return notShown;
    for (const name of bodyChoices(view).flatMap(namesOf)) yield atName(view, "tool_calls", `a call of ${shown(name)}`);
  },
  *"body/parallel"(view) {
    if (!isChat(view) || !expectations(view).single) return notShown;
    for (const choice of bodyChoices(view))
      if (namesOf(choice).length > 1) yield atName(view, "tool_calls", `${namesOf(choice).length} calls`);
  },
  *"body/known-tool"(view) {
    if (!isChat(view) || expectations(view).tools === undefined || bodyChoices(view).flatMap(namesOf).length === 0)
      return notShown;
    for (const name of bodyChoices(view).flatMap(namesOf))
      if (expectations(view).tools?.has(name) === false) yield atName(view, "tool_calls", `a call of ${shown(name)}`);
  },
  *"body/json-text"(view) {
    if (!isChat(view) || !expectations(view).json || !bodyChoices(view).some(isWhole)) return notShown;
    for (const choice of bodyChoices(view)) {
      const hasText = namesOf(choice).length === 0 && typeof messageOf(choice).content === "string";
      if (!isWhole(choice) || !hasText) continue;
      for (const found of notOnlyJson(textOf(choice))) yield atName(view, "content", found);
    }
  },
  *"body/reasoning-in-content"(view) {
    if (!isChat(view)) return notShown;
    for (const choice of bodyChoices(view)) {
      const opening = reasoningTagIn(textOf(choice));
      if (opening !== undefined) yield atName(view, "content", `content that begins ${shown(opening)}`);
    }
  },
  *"body/call-in-content"(view) {
    if (!isChat(view) || view.exchange.request.body === undefined || expectations(view).silent) return notShown;
    for (const choice of bodyChoices(view)) {
      // If the token limit ends a choice within the name of a call, the server can only send it as text.
      const markup = choice.finish_reason === "length" ? undefined : callIn(textOf(choice));
      if (markup !== undefined) yield atName(view, "content", `${markup} in content`);
    }
  },
  *"body/special-token"(view) {
    if (!isChat(view)) return notShown;
    for (const choice of bodyChoices(view)) {
      const special = specialTokenIn(textOf(choice));
      if (special !== undefined) yield atName(view, "content", `content that ends with ${special}`);
    }
  },
};
